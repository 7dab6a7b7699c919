"""Class scores of a whole graph, layer by layer and block of rows by block of rows.

It needs one vector of hidden values for every node, never the matrix; with several processes each
computes its share of the rows and sends them to the others. Arcs and features are mapped: their
pages come and go, and are not counted within a limit of memory. Counted are a few numbers for each
node, the hidden values of all nodes, and the blocks of rows in use.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ..._core.memory import memory_left
from ..._core.sparse import csr_tensor
from ...methods import Settings
from ...methods._ops.convolution import GraphConvolutionalNetwork
from ...sampling import Factors
from .sources import Source

if TYPE_CHECKING:
    from ..._core.distributed_context import DistributedContext
    from ...graphs.shards.shards import Shards

#: Nodes whose features are read at once, if the memory allows it, and at least.
MOST_ROWS, LEAST_ROWS = 1 << 14, 1 << 8
#: Row starts, factors of the normalization, labels, masks, degrees and the scaling vector.
_NODE_BYTES = 80
#: A block of arcs that is multiplied at once: its numbers, columns, values and row starts.
_ARC_BYTES, _ARCS = 48, 1 << 21


def rows_at_once(
    shards: Shards, features: int, width: int, memory: int, what: str, before: int = 0
) -> int:
    """Return how many rows of features are read at once while all nodes are scored.

    ``width`` is the largest number of hidden values or classes of a node, and ``before`` the bytes
    beside those of the nodes that ``what`` is done needs before it.

    Raises:
        RawlsError: If the limit is too small; it names the least.
    """
    row = 12 * features + 8 * width  # as read, divided by their sums, and aligned
    nodes = shards.num_nodes * (_NODE_BYTES + 8 * width)  # two matrices of hidden values
    needed = nodes + _ARC_BYTES * min(_ARCS, shards.num_arcs) + LEAST_ROWS * row
    most = max(needed, _NODE_BYTES * shards.num_nodes + before)
    left: int = most - needed + memory_left(most, memory, what)
    return min(MOST_ROWS, LEAST_ROWS + left // row)


def rows_after_training(
    shards: Shards,
    features: int,
    settings: Settings,
    num_neighbors: Sequence[int],
    share: int,
    memory: int,
    workers: int = 0,
) -> int:
    """Return the rows that are read at once after sampled training, which must fit as well.

    A process has ``share`` training nodes of each step, and each worker draws two batches ahead.

    Raises:
        RawlsError: If the limit is too small for a batch, or for the scores of all nodes at the
            end; it names the least.
    """
    drawn = share
    for most in num_neighbors:
        drawn = shards.num_nodes if most < 0 else min(shards.num_nodes, drawn * (1 + most))
    batch = drawn * (12 * features + 32 * settings.hidden_channels) * (1 + 2 * workers)
    width = max(settings.hidden_channels, 4 * shards.classes)  # metrics are of double precision
    what = f"train on samples of a graph of this size with batches of {share:,} nodes"
    return rows_at_once(shards, features, width, memory, what, batch)


@torch.no_grad()
def whole_graph_logits(
    network: GraphConvolutionalNetwork,
    source: Source,
    factors: Factors,
    context: DistributedContext,
    rows_at_once: int = MOST_ROWS,
) -> Tensor:
    """H ← σ(diag(l) (A + I) diag(r) H W + b) for each layer, on the CPU."""
    nodes = source.adjacency.num_nodes
    cuts = np.linspace(0, nodes, context.world_size + 1).astype(int).tolist()
    first, last = cuts[context.rank : context.rank + 2]
    left, right = (torch.from_numpy(each[first:last]) for each in (factors.left, factors.right))
    hidden: Tensor | None = None
    for number, layer in enumerate(network.layers):
        weight, bias = (parameter.detach().cpu() for parameter in layer.parameters())
        product = torch.empty(nodes, weight.shape[1], dtype=weight.dtype)
        for start in range(first, last, rows_at_once):
            stop = min(start + rows_at_once, last)
            if hidden is None:
                rows = source.features(np.arange(start, stop)).to(weight.dtype)
            else:
                rows = torch.relu(hidden[start:stop])
            product[start:stop] = rows @ weight
        product[first:last] *= right.to(weight.dtype)[:, None]
        exchange_rows(product, cuts, context.device)
        hidden = None  # two matrices at a time, not three
        hidden = _neighbor_sums(source, product, first, last)
        hidden[first:last] *= left.to(weight.dtype)[:, None]
        hidden[first:last] += bias
        if number + 1 == len(network.layers):
            exchange_rows(hidden, cuts, context.device)
    assert hidden is not None
    return hidden


def _neighbor_sums(source: Source, product: Tensor, first: int, last: int) -> Tensor:
    """Rows ``first`` to ``last`` of (A + I) Z."""
    sums = torch.empty_like(product)
    adjacency = source.adjacency
    for start, stop in adjacency.row_blocks(first, last):
        begin = adjacency.row_start[start : stop + 1]
        arcs = np.arange(begin[0], begin[-1])
        weights = adjacency.arc_weights(arcs)
        values = torch.ones(len(arcs)) if weights is None else torch.from_numpy(weights)
        column = torch.from_numpy(adjacency.sources(arcs))
        crow = torch.from_numpy(begin - begin[0]).to(column.dtype)
        shape = (stop - start, len(product))
        block = csr_tensor(crow, column, values.to(product.dtype), shape)
        torch.mm(block, product, out=sums[start:stop])
        sums[start:stop] += product[start:stop]
    return sums


def exchange_rows(rows: Tensor, cuts: Sequence[int], device: torch.device) -> None:
    """Give every process the rows that the others computed, by way of their devices.

    ``cuts`` has the first row of each process, and the number of rows.
    """
    from torch import distributed

    for rank, (first, last) in enumerate(pairwise(cuts)):
        if len(cuts) > 2:
            sent = rows[first:last].to(device)
            distributed.broadcast(sent, rank)
            rows[first:last].copy_(sent)
