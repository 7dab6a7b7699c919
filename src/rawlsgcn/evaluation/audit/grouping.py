"""Which groups the table has: every value, quantiles, edges of the user's, or text as it is."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import RawlsError

Values = npt.NDArray[Any]
MOST_GROUPS = 12
"""More groups than this are not shown singly unless they are asked for."""
_QUANTILES = 5


@dataclass(frozen=True)
class Column:
    """What the nodes are grouped by: a number or a text of every node of the graph.

    ``whole`` columns (degrees, cores, text) are also looked at value by value: their single values
    are the groups of the paper's bias. Others (PageRank) only by bin.
    """

    name: str
    values: Values

    @property
    def ordered(self) -> bool:
        return self.values.dtype.kind in "biuf"

    @property
    def whole(self) -> bool:
        return not self.ordered or bool((self.values == np.floor(self.values)).all())


@dataclass(frozen=True)
class Bin:
    """A group's label and its least and greatest value; ``member`` finds the nodes in it."""

    label: str
    low: float
    high: float


def bins_of(values: Values, how: str | None) -> tuple[list[Bin], npt.NDArray[np.int64], str]:
    """The bins of the evaluated nodes' values, each node's bin, and in words how they were made.

    ``how`` is "degree" (every value alone), "quantile:K" or "edges:a,b,c", whose bins are up to a,
    over a up to b, …, over c. By default text and up to 12 different values stand alone, more
    are cut at their fifths. No value is in two bins: where many nodes share one, there are fewer
    and unequal bins.
    """
    if how is not None and not isinstance(how, str):
        raise RawlsError(f"bins must be a text such as 'quantile:4' or 'edges:1,3,10', not {how!r}")
    if values.dtype.kind not in "biuf":
        if how not in (None, "degree"):
            raise RawlsError(f"--bins {how} needs a column of numbers, and this one is text")
        texts, member = np.unique(values.astype(str), return_inverse=True)
        return [Bin(str(text), math.nan, math.nan) for text in texts], member, "every value"
    present = np.unique(values)
    if how is None:
        how = "degree" if len(present) <= MOST_GROUPS else f"quantile:{_QUANTILES}"
    kind, _, rest = how.partition(":")
    if kind == "degree" and not rest:
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


def _named(low: float, high: float) -> Bin:
    first, last = _shown(low), _shown(high)
    return Bin(first if first == last else f"{first}–{last}", low, high)


def _shown(value: float) -> str:
    return f"{value:.0f}" if value == math.floor(value) and abs(value) < 1e15 else f"{value:.3g}"


def _number(text: str, how: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text) or not 2 <= int(text) <= 1000:
        raise RawlsError(f"--bins {how}: give a number of groups from 2 to 1000, as quantile:4")
    return int(text)


def _edges(text: str, how: str) -> Values:
    try:
        edges = [float(part) for part in text.split(",")]
    except ValueError:
        edges = []
    if not edges or not all(map(math.isfinite, edges)) or sorted(set(edges)) != edges:
        raise RawlsError(f"--bins {how}: give rising numbers, as edges:1,3,10")
    return np.array(edges)
