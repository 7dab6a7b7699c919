"""The groups of nodes that an audit reports: every value, quantiles, given edges, or texts."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..._core.errors import RawlsError
from ..degree_bias import degree_quarters
from ..node_centralities import MOST_VALUES, NodeColumn

Values = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
MOST_GROUPS = 12
"""More values than this are binned unless the user asks for every value."""
MOST_TEXTS = 200
"""The most texts with a group of their own; the nodes of rarer ones form one group."""
MOST_BINS = 1000
"""The most groups of numbers, as every pair of them is compared."""


@dataclass(frozen=True)
class Bin:
    """A group's label and its least and greatest value; ``pooled`` for that of all rare texts."""

    label: str
    low: float = math.nan
    high: float = math.nan
    pooled: bool = False


def bins_of(values: Values, how: str | None) -> tuple[list[Bin], Ints, str]:
    """Bin the values of the evaluated nodes.

    No value is in two bins: where many nodes share one, there are fewer and unequal bins. Of texts
    the ``MOST_TEXTS`` with the most nodes have a bin each, and one more bin pools the others.

    Args:
        values: A number or a text of each node, (nodes,).
        how: "degree" (every value), "quantile:K" or "edges:a,b,c", whose bins are up to a, over a
            up to b, …, over c. By default up to 12 different values have a bin each, and more are
            cut into fifths.

    Returns:
        The bins, the bin of each node, and a description of how they were made.

    Raises:
        RawlsError: If ``how`` cannot be understood, or would make too many bins.
    """
    if how is not None and not isinstance(how, str):
        raise RawlsError(f"bins must be a string as 'quantile:4' or 'edges:1,3,10', not {how!r}")
    if values.dtype.kind not in "biuf":
        if how not in (None, "degree"):
            raise RawlsError(f"--bins {how} needs a column of numbers, and this one is text")
        return _texts(values)
    cuts, words = _cuts(values, how)
    found = np.searchsorted(cuts, values, side="left")
    ends = pd.Series(values).groupby(found).agg(["min", "max"]).astype(float)
    member = np.unique(found, return_inverse=True)[1]
    return [_named(low, high) for low, high in ends.itertuples(index=False)], member, words


def _cuts(values: Values, how: str | None) -> tuple[Values, str]:
    """The greatest values of all bins but the last, and how they were found."""
    present = np.unique(values)
    kind, _, rest = (how or "").partition(":")
    if how is None:
        kind, rest = ("degree", "") if len(present) <= MOST_GROUPS else ("quantile", "5")
    if kind == "degree" and not rest:
        if len(present) > MOST_BINS:
            raise RawlsError(
                f"--bins degree would make {len(present):,} groups, and {MOST_BINS:,} is the most "
                "that are compared: use --bins quantile:K"
            )
        return present[:-1], "every value"
    if kind == "quantile":
        if not re.fullmatch("[0-9]{1,9}", rest) or not 2 <= int(rest) <= MOST_BINS:
            raise RawlsError(
                f"--bins {how}: give a number of groups from 2 to {MOST_BINS}, as quantile:4"
            )
        shares = np.arange(1, int(rest)) / int(rest)
        return np.unique(np.quantile(values, shares, method="lower")), f"{rest} quantiles"
    if kind != "edges":
        raise RawlsError(
            f"--bins takes degree, quantile:K or edges:a,b,c (as edges:1,3,10), not '{how}'"
        )
    try:
        edges = [float(part) for part in rest.split(",")]
    except ValueError:
        edges = []
    if not 0 < len(edges) < MOST_BINS or sorted({e for e in edges if math.isfinite(e)}) != edges:
        raise RawlsError(
            f"--bins {how}: give rising numbers, at most {MOST_BINS - 1} of them, as edges:1,3,10"
        )
    return np.array(edges), f"edges {rest}"


def _texts(values: Values) -> tuple[list[Bin], Ints, str]:
    member, texts = pd.factorize(np.asarray(values, dtype=object), sort=True)
    if len(texts) <= MOST_TEXTS:
        return [Bin(text) for text in texts], member, "every value"
    common = np.sort(np.argsort(-np.bincount(member), kind="stable")[:MOST_TEXTS])
    place = np.full(len(texts), MOST_TEXTS)
    place[common] = np.arange(MOST_TEXTS)
    others = len(texts) - MOST_TEXTS
    bins = [Bin(texts[each]) for each in common]
    bins.append(Bin(f"all others ({others:,} values)", pooled=True))
    words = f"the {MOST_TEXTS} values of the most nodes, and the other {others:,} together"
    return bins, place[member], words


def _named(low: float, high: float) -> Bin:
    first, last = (
        f"{value:.0f}" if value == math.floor(value) and abs(value) < 1e15 else f"{value:.3g}"
        for value in (low, high)
    )
    return Bin(first if first == last else f"{first}–{last}", low, high)


@dataclass(frozen=True)
class Grouping:
    """The groups of the evaluated nodes: single values (degrees) for the bias, bins for the table.

    Where there are too many single values, or they are no whole numbers, bins take their place.
    """

    column: NodeColumn  #: what the nodes are grouped by
    degree: Ints  #: the degree of each node, (nodes,)
    bins: list[Bin]  #: the groups of the table
    description: str  #: how the bins were made
    member: Ints  #: the position of each node's value among the single values, (nodes,)
    value: Floats  #: the single values, or the middles of the bins
    labels: list[str]  #: the names of the single values
    bin_of: Ints  #: the bin of every single value

    @classmethod
    def of(cls, column: NodeColumn, degree: Ints, how: str | None) -> Grouping:
        """Group nodes by their ``column``; see :func:`bins_of` for ``how``."""
        bins, member, description = bins_of(column.values, how)
        labels, bin_of = [each.label for each in bins], np.arange(len(bins))
        value = np.array([(each.low + each.high) / 2 for each in bins])
        if column.single:
            present, position = np.unique(column.values, return_inverse=True)
            bin_of = np.zeros(len(present), np.int64)
            bin_of[position] = member
            member, value = position, present.astype(float)
            labels = [f"{each:.0f}" for each in present]
        return cls(column, degree, bins, description, member, value, labels, bin_of)

    @property
    def low_degree(self) -> float:
        """The 25th percentile of the degrees."""
        return degree_quarters(self.degree)[0]

    @property
    def low(self) -> npt.NDArray[np.bool_]:
        """Which nodes are of the quarter of lowest degree, (nodes,)."""
        return self.degree <= self.low_degree

    @property
    def bias_over(self) -> str:
        """What the bias is the variance over."""
        return f"single values of {self.column.name}" if self.column.single else "the groups"

    @property
    def note(self) -> str | None:
        """A sentence where there are too many different values to compare them one by one."""
        name, values = self.column.name, self.column.values
        if self.bins[-1].pooled:
            together = int((self.member == len(self.bins) - 1).sum())
            return (
                f"{name} has too many different values to compare them all: the "
                f"{len(self.bins) - 1} with the most nodes have a group each, and the nodes of all "
                f"others ({together:,}) form one, which is never named worst or best."
            )
        whole = self.column.ordered and bool((values == np.floor(values)).all())
        if whole and not self.column.single:
            return (
                f"{name} has more than {MOST_VALUES:,} different values: its bias is taken over "
                "the groups of the table, not over single values."
            )
        return None
