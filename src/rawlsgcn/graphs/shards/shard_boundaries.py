"""Where a graph is cut into shards: so that they share its bytes, of rows and of arcs, evenly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def boundaries(row_start: NDArray[Any], count: int) -> list[int]:
    """Return the rows at which shards begin, and the number of all rows."""
    nodes = len(row_start) - 1
    load = row_start + np.arange(nodes + 1)
    inner = np.searchsorted(load, load[-1] * np.arange(1, count) / count)
    # Every shard has a row of its own, however much one hub weighs.
    inner = np.maximum(inner, np.arange(1, count))
    inner = np.maximum.accumulate(inner - np.arange(1, count)) + np.arange(1, count)
    inner = np.minimum(inner, nodes - count + np.arange(1, count))
    return [0, *inner.tolist(), nodes]
