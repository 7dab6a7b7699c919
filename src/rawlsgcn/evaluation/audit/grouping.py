"""Which groups the table has: every value, quantiles, edges of the user's, or text as it is."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._core.errors import RawlsError

Values = npt.NDArray[Any]
MOST_GROUPS = 12
"""More groups than this are not shown singly unless they are asked for."""
MOST_TEXTS = 200
"""Texts that stand alone at most; the nodes of rarer ones are judged together."""
MOST_BINS = 1000
"""Groups of numbers at most: every pair of them is compared."""
COUNTS = ("degree", "in-degree", "core")
"""The graph's own counts, of which there are never many: n different degrees need n²/2 edges."""
MOST_VALUES = 2000
"""A user's column of more different whole numbers is looked at by bin only, as fractions are: every
value is a group of the bootstrap, whose memory grows with their number."""
_QUANTILES = 5


@dataclass(frozen=True)
class Column:
    """What the nodes are grouped by: a number or a text of every node of the graph.

    Whole numbers (degrees, cores) are also looked at value by value: their ``single`` values are
    the groups of the paper's bias. Of others (PageRank, text) the bins are.
    """

    name: str
    values: Values

    @property
    def ordered(self) -> bool:
        return self.values.dtype.kind in "biuf"

    @property
    def single(self) -> bool:
        if not self.ordered or not (self.values == np.floor(self.values)).all():
            return False
        return self.name in COUNTS or len(np.unique(self.values)) <= MOST_VALUES


@dataclass(frozen=True)
class Bin:
    """A group's label and its least and greatest value; ``pooled`` for the rest of the texts."""

    label: str
    low: float
    high: float
    pooled: bool = False


def bins_of(values: Values, how: str | None) -> tuple[list[Bin], npt.NDArray[np.int64], str]:
    """The bins of the evaluated nodes' values, each node's bin, and in words how they were made.

    ``how`` is "degree" (every value alone), "quantile:K" or "edges:a,b,c", whose bins are up to a,
    over a up to b, …, over c. By default up to 12 different values stand alone, more are cut at
    their fifths. No value is in two bins: where many nodes share one, there are fewer and unequal
    bins. Of texts those of the most nodes stand alone, ``MOST_TEXTS`` of them, and one more bin
    pools the others.
    """
    if how is not None and not isinstance(how, str):
        raise RawlsError(f"bins must be a text such as 'quantile:4' or 'edges:1,3,10', not {how!r}")
    if values.dtype.kind not in "biuf":
        if how not in (None, "degree"):
            raise RawlsError(f"--bins {how} needs a column of numbers, and this one is text")
        return _texts(values)
    present = np.unique(values)
    if how is None:
        how = "degree" if len(present) <= MOST_GROUPS else f"quantile:{_QUANTILES}"
    kind, _, rest = how.partition(":")
    if kind == "degree" and not rest:
        if len(present) > MOST_BINS:
            raise RawlsError(
                f"--bins degree would make {len(present):,} groups, and {MOST_BINS:,} is the most "
                "that are compared: take --bins quantile:K"
            )
        cuts, words = present[:-1], "every value"
    elif kind == "quantile":
        groups = _number(rest, how)
        cuts = np.unique(np.quantile(values, np.arange(1, groups) / groups, method="lower"))
        words = f"{rest} quantiles"
    elif kind == "edges":
        cuts, words = _edges(rest, how), f"edges {rest}"
    else:
        raise RawlsError(
            f"--bins takes degree, quantile:K or edges:a,b,c (as edges:1,3,10), not '{how}'"
        )
    found = np.searchsorted(cuts, values, side="left")
    numbers, member = np.unique(found, return_inverse=True)
    low, high = np.full(len(numbers), np.inf), np.full(len(numbers), -np.inf)
    np.minimum.at(low, member, values)
    np.maximum.at(high, member, values)
    return [_named(a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True)], member, words


def _texts(values: Values) -> tuple[list[Bin], npt.NDArray[np.int64], str]:
    import pandas as pd

    member, texts = pd.factorize(np.asarray(values, dtype=object), sort=True)
    if len(texts) <= MOST_TEXTS:
        return [Bin(text, math.nan, math.nan) for text in texts], member, "every value"
    common = np.sort(np.argsort(-np.bincount(member), kind="stable")[:MOST_TEXTS])
    place = np.full(len(texts), MOST_TEXTS)
    place[common] = np.arange(MOST_TEXTS)
    others = len(texts) - MOST_TEXTS
    bins = [Bin(texts[each], math.nan, math.nan) for each in common]
    bins.append(Bin(f"all others ({others:,} values)", math.nan, math.nan, pooled=True))
    words = f"the {MOST_TEXTS} values of the most nodes, and the other {others:,} together"
    return bins, place[member], words


def _named(low: float, high: float) -> Bin:
    first, last = _shown(low), _shown(high)
    return Bin(first if first == last else f"{first}–{last}", low, high)


def _shown(value: float) -> str:
    return f"{value:.0f}" if value == math.floor(value) and abs(value) < 1e15 else f"{value:.3g}"


def _number(text: str, how: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text) or not 2 <= int(text) <= MOST_BINS:
        raise RawlsError(
            f"--bins {how}: give a number of groups from 2 to {MOST_BINS}, as quantile:4"
        )
    return int(text)


def _edges(text: str, how: str) -> Values:
    try:
        edges = [float(part) for part in text.split(",")]
    except ValueError:
        edges = []
    if not edges or not all(map(math.isfinite, edges)) or sorted(set(edges)) != edges:
        raise RawlsError(f"--bins {how}: give rising numbers, as edges:1,3,10")
    if len(edges) >= MOST_BINS:
        raise RawlsError(f"--bins edges: give at most {MOST_BINS - 1} of them, not {len(edges):,}")
    return np.array(edges)
