"""The groups of nodes that an audit reports: every value, quantiles, given edges, or texts."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

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
_QUANTILES = 5


@dataclass(frozen=True)
class Bin:
    """A group's label and its least and greatest value; ``pooled`` for that of all rare texts."""

    label: str
    low: float
    high: float
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
    present = np.unique(values)
    if how is None:
        how = "degree" if len(present) <= MOST_GROUPS else f"quantile:{_QUANTILES}"
    kind, _, rest = how.partition(":")
    if kind == "degree" and not rest:
        if len(present) > MOST_BINS:
            raise RawlsError(
                f"--bins degree would make {len(present):,} groups, and {MOST_BINS:,} is the most "
                "that are compared: use --bins quantile:K"
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


def _texts(values: Values) -> tuple[list[Bin], Ints, str]:
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


@dataclass(frozen=True)
class Grouping:
    """The groups of the evaluated nodes: single values (degrees) for the bias, bins for the table.

    Attributes:
        member: The position of each node's value among the single values, (nodes,).
        labels: The names of the single values.
        value: The single values, or the middles of the bins where these take their place.
        bins: The groups of the table.
        bin_of: The bin of every single value.
        description: How the bins were made.
        column: The name of the column that the nodes are grouped by.
        ordered: Whether its values are numbers.
        degree: The degree of each node, (nodes,).
        low_degree: The 25th percentile of these degrees.
        bias_over: What the bias is the variance over: single values or bins.
        note: A sentence for the user where there are too many values to compare, or None.
    """

    member: Ints
    labels: list[str]
    value: Floats
    bins: list[Bin]
    bin_of: Ints
    description: str
    column: str
    ordered: bool
    degree: Ints
    low_degree: float
    bias_over: str
    note: str | None

    @classmethod
    def of(cls, column: NodeColumn, degree: Ints, bins: str | None) -> Grouping:
        """Group nodes by their ``column``; see :func:`bins_of` for ``bins``."""
        table, member, description = bins_of(column.values, bins)
        bin_of = np.arange(len(table))
        value = np.array([(each.low + each.high) / 2 for each in table])
        labels = [each.label for each in table]
        single = column.single
        note = _too_many_values(column, table, member, single)
        if single:
            present, position = np.unique(column.values, return_inverse=True)
            bin_of = np.zeros(len(present), np.int64)
            bin_of[position] = member
            member, value = position, present.astype(float)
            labels = [f"{each:.0f}" for each in present]
        return cls(
            member=member,
            labels=labels,
            value=value,
            bins=table,
            bin_of=bin_of,
            description=description,
            column=column.name,
            ordered=column.ordered,
            degree=degree,
            low_degree=degree_quarters(degree)[0],
            bias_over=f"single values of {column.name}" if single else "the groups",
            note=note,
        )

    @property
    def low(self) -> npt.NDArray[np.bool_]:
        """Which nodes are of the quarter of lowest degree, (nodes,)."""
        return self.degree <= self.low_degree


def _too_many_values(
    column: NodeColumn, table: list[Bin], member: Ints, single: bool
) -> str | None:
    """The note where there are too many different values to compare them one by one."""
    if table[-1].pooled:
        alone, together = len(table) - 1, int((member == len(table) - 1).sum())
        return (
            f"{column.name} has too many different values to compare them all: the {alone} with "
            f"the most nodes have a group each, and the nodes of all others ({together:,}) form "
            "one, which is never named worst or best."
        )
    if column.ordered and not single and bool((column.values == np.floor(column.values)).all()):
        return (
            f"{column.name} has more than {MOST_VALUES:,} different values: its bias is taken over "
            "the groups of the table, not over single values."
        )
    return None
