"""What sampled training and the scores of a whole graph need, within a limit of memory.

Arcs and features are mapped: their pages come and go, and are not counted. Counted are a few
numbers for each node, the hidden values of all nodes, and the batches or blocks of rows in use.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..._core.memory import memory_left
from ...graphs.shards.shards import Shards
from ...methods import Settings

#: Nodes whose features are read at once, if the memory allows it, and at least.
MOST_ROWS, LEAST_ROWS = 1 << 14, 1 << 8
#: Row starts, factors of the normalization, labels, masks, degrees and the scaling vector.
_NODE_BYTES = 80
#: A block of arcs that is multiplied at once: its numbers, columns, values and row starts.
_ARC_BYTES, _ARCS = 48, 1 << 21


def rows_at_once(shards: Shards, features: int, width: int, memory: int, what: str) -> int:
    """Return how many rows of features are read at once while all nodes are scored.

    Args:
        shards: The graph.
        features: The number of features.
        width: The largest number of hidden values or classes of a node.
        memory: Bytes that this process may use.
        what: What is done, for the error.

    Returns:
        As many as fit, at most 16,384.

    Raises:
        RawlsError: If the limit is too small; it names the least.
    """
    row = 12 * features + 8 * width  # as read, divided by their sums, and aligned
    left = memory_left(_all_nodes(shards, width) + LEAST_ROWS * row, memory, what)
    return min(MOST_ROWS, LEAST_ROWS + left // row)


def sampled_rows(
    shards: Shards,
    features: int,
    settings: Settings,
    num_neighbors: Sequence[int],
    share: int,
    memory: int,
    workers: int = 0,
) -> int:
    """Check that sampled training fits in memory, and return the rows of its scores of all nodes.

    Args:
        shards: The graph.
        features: The number of features.
        settings: The method's settings.
        num_neighbors: Neighbors drawn for each node and layer; −1 for all.
        share: Training nodes of a step in this process.
        memory: Bytes that this process may use.
        workers: Further processes, each of which draws two batches ahead.

    Returns:
        As :func:`rows_at_once` does.

    Raises:
        RawlsError: If the limit is too small for a batch, or for the scores of all nodes at the
            end; it names the least.
    """
    drawn = share
    for most in num_neighbors:
        drawn = shards.num_nodes if most < 0 else min(shards.num_nodes, drawn * (1 + most))
    batch = drawn * (12 * features + 32 * settings.hidden_channels) * (1 + 2 * workers)
    what = f"train on samples of a graph of this size with batches of {share:,} nodes"
    memory_left(_NODE_BYTES * shards.num_nodes + batch, memory, what)
    width = max(settings.hidden_channels, 4 * shards.classes)  # metrics are of double precision
    what = "score all nodes of a graph of this size after training on samples"
    return rows_at_once(shards, features, width, memory, what)


def _all_nodes(shards: Shards, width: int) -> int:
    arcs: int = _ARC_BYTES * min(_ARCS, shards.num_arcs)
    nodes: int = shards.num_nodes * (_NODE_BYTES + 8 * width)  # two matrices of hidden values
    return nodes + arcs
