"""Where a graph is cut into shards: which range of rows each of them has."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._core.errors import RawlsError
from ..._core.serialization import is_nonnegative_int
from ..._core.text import plural

Array = NDArray[Any]


def require_count(count: int, nodes: int) -> None:
    """Raise an error if a graph of so many nodes cannot be cut into ``count`` shards."""
    if not 1 <= count <= nodes:
        raise RawlsError(
            f"a graph of {plural(nodes, 'node')} cannot be cut into {plural(count, 'shard')}, of "
            f"which each has a node or more: give a --count of 1 to {nodes:,}"
        )


def shard_cuts(row_start: Array, count: int) -> list[int]:
    """Rows at which to cut so that rows and arcs together, the bytes, are shared evenly."""
    nodes = len(row_start) - 1
    load = row_start + np.arange(nodes + 1)
    inner = np.searchsorted(load, load[-1] * np.arange(1, count) / count)
    # Every shard has a row of its own, however much one hub weighs.
    inner = np.maximum(inner, np.arange(1, count))
    inner = np.maximum.accumulate(inner - np.arange(1, count)) + np.arange(1, count)
    inner = np.minimum(inner, nodes - count + np.arange(1, count))
    return [0, *inner.tolist(), nodes]


def are_cuts(value: Any) -> bool:
    """Whether a value of the manifest can be where a graph was cut."""
    return (
        isinstance(value, list)
        and len(value) > 1
        and all(map(is_nonnegative_int, value))
        and value[0] == 0
        and all(a < b for a, b in pairwise(value))
    )
