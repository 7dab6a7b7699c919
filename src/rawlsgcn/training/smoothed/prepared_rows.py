"""The smoothed rows of shards: those that ``rawlsgcn smooth`` wrote, or made now."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..._core.progress import ProgressCallback, no_progress
from ...balancing import propagation_matrix
from ...graphs.shard_graph import graph_of_shards
from ...graphs.shards import Shards
from ...methods._ops.smoothing import PageRankSmoothing
from ...methods.row_normalization import row_normalized
from ...methods.smoothed_mlp_inputs import SmoothedMLPSettings
from ..sampled.distributed_context import DistributedContext
from .row_reading import RowFile
from .smoothed_files import find_smoothed


def smoothed_rows(
    shards: Shards,
    settings: SmoothedMLPSettings,
    *,
    memory: int,
    context: DistributedContext | None = None,
    progress: ProgressCallback = no_progress,
) -> RowFile:
    """Return the smoothed rows of shards; make them if they are not there.

    Args:
        shards: The shards.
        settings: The settings of smoothed-mlp.
        memory: Bytes that this process may use.
        context: Which of how many processes this one is; by default the only one.
        progress: Called with the work done and in total.

    Returns:
        The rows of all nodes.
    """
    found = find_smoothed(shards, settings)
    if found is not None:
        return found
    graph = graph_of_shards(shards)
    x = graph.x if graph.x.layout == torch.strided else graph.x.to_dense()
    if settings.normalize_features and not shards.negative_features:
        x = row_normalized(x)
    matrix = propagation_matrix(
        graph.edge_index, graph.get("edge_weight"), shards.num_nodes, settings.normalization
    )
    smoothing = PageRankSmoothing(matrix.to(x.dtype), settings.teleport, settings.steps)
    return _ArrayRows(smoothing(x).numpy())


class _ArrayRows:
    """Rows of an array in memory."""

    def __init__(self, x: NDArray[Any]) -> None:
        self.x, self.num_features = x, int(x.shape[1])

    def read(self, first: int, last: int) -> NDArray[np.float32]:
        return np.array(self.x[first:last], dtype=np.float32)
