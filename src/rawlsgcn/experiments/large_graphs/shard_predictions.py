"""Class probabilities of all nodes of a graph in shards, a block of nodes at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..._core.distributed_context import DistributedContext
from ..._core.errors import RawlsError
from ..._core.memory import memory_left
from ..._core.progress import ProgressCallback, no_progress
from ..._core.serialization import require_matching_tensors
from ...graphs.shards.shard_fingerprint import shard_edge_digest
from ...graphs.shards.shard_graph import ShardNodes, graph_of_shards
from ...graphs.shards.shards import Shards
from ...graphs.splits import MASKS, SPLIT_WORDS
from ...methods import Convolutional, Settings
from ...methods._ops.convolution import GraphConvolutionalNetwork
from ...methods.ensemble import EnsembleRun, EnsembleSettings, state_of_run
from ...sampling import Factors
from ...training.engine_choice import GraphSize, require_whole_graph
from ...training.sampled.inference import rows_at_once, whole_graph_logits
from ...training.sampled.sources import Source
from ...training.smoothed.row_scores import RowModel, row_scores
from ...training.smoothed.smooth_shards import smooth_shards
from ...training.smoothed.smoothed_files import READ_BYTES, SmoothedForm, SmoothedRows, why_not_rows
from ..saved_models import TrainedModel, require_finite, require_width

#: Nodes of a block, where all scores are computed at once; and of one of smoothed rows, at least.
_ROWS, _LEAST_ROWS = 1 << 16, 1 << 8
#: What the number and the part of the split of each node take.
_NODE_BYTES = 40


def predict_shards(
    model: TrainedModel,
    shards: Shards,
    *,
    memory: int,
    device: torch.device | str = "cpu",
    progress: ProgressCallback = no_progress,
) -> Iterator[tuple[int, Tensor]]:
    """Compute the class probabilities of every node, in the order of the nodes.

    smoothed-mlp reads the smoothed rows block by block. The GCN family goes through the graph layer
    by layer, with a vector of hidden values for each node. Other models need the whole graph.

    Args:
        model: A saved model.
        shards: The graph.
        memory: Bytes that may be used.
        device: The device that rows are multiplied on.
        progress: Called with the nodes done and in total.

    Yields:
        The number of the first node of a block, and probabilities of shape (nodes, classes).

    Raises:
        RawlsError: If the graph has another number of features, the scores are not finite, or the
            model needs the whole graph and it does not fit in memory.
    """
    size, context = GraphSize.of_shards(shards), DistributedContext(device=torch.device(device))
    require_width(model, size.features // size.nodes, f"the graph in {shards.folder}")
    models = row_models(model, shards, context, memory, progress)
    if models is not None:
        block = _block_bytes(models, model, size.nodes, memory)
        temperature = getattr(model.settings, "temperature", None)
        scored = row_scores(models, np.arange(size.nodes), temperature, block)
        blocks = ((part.start, scores) for part, scores in scored)
    else:
        if isinstance(model.method, Convolutional):
            logits = _propagated(model, model.method, shards, context, memory, progress)
        else:
            require_whole_graph(model.method, model.settings, size, memory)
            logits = model.logits(graph_of_shards(shards), device=str(device))
        blocks = ((first, logits[first : first + _ROWS]) for first in range(0, size.nodes, _ROWS))
    for first, scores in blocks:
        require_finite(model, scores)
        progress(first + len(scores), size.nodes, "predicting")
        yield first, torch.softmax(scores, -1)


def _block_bytes(models: list[RowModel], model: TrainedModel, num_nodes: int, memory: int) -> int:
    """How many bytes of smoothed rows are scored at once, of every file that is read."""
    row = 4 * model.num_features
    hidden = max(weight.shape[-1] for each in models for weight in each.network.parameters())
    # The rows of each file, hidden values, and for the file that is written texts of each number.
    all_rows = 2 * row * len({id(each.file) for each in models}) + 16 * hidden
    all_rows += 16 * model.num_classes * (len(models) + 4)
    what = "predict on a graph of this size"
    left = memory_left(_NODE_BYTES * num_nodes + _LEAST_ROWS * all_rows, memory, what)
    return min(READ_BYTES, row * (_LEAST_ROWS + left // all_rows))


def _propagated(
    model: TrainedModel,
    method: Convolutional,
    shards: Shards,
    context: DistributedContext,
    memory: int,
    progress: ProgressCallback,
) -> Tensor:
    """The scores of a GCN, all neighbors of every node being used."""
    width = max(model.num_classes, model.settings.hidden_channels * (model.settings.num_layers > 1))
    what = f"predict with {method.name} on a graph of this size"
    rows = rows_at_once(shards, model.num_features, width, memory, what)
    kind = method.forward_normalization(model.settings)
    source = Source.of_shards(shards, labeled=False)
    if kind == "doubly-stochastic":
        source = source.balanced(shards, context, memory, progress)
    # As the model was trained, also where features of this graph are negative.
    source = replace(source, normalize=model.row_normalized)
    factors = Factors.of(source.adjacency, kind, source.scale)
    network = _restored_network(model, model.settings, model.state)
    return whole_graph_logits(network, source, factors, context, rows)


def row_models(
    model: TrainedModel,
    shards: Shards,
    context: DistributedContext,
    memory: int,
    progress: ProgressCallback = no_progress,
) -> list[RowModel] | None:
    """The networks of smoothed-mlp, or of a mean of them, with the rows that they read.

    None if the model needs more of the graph than smoothed rows.
    """
    runs = [(EnsembleRun(model.method.name, model.settings, 1.0), model.state)]
    if isinstance(model.settings, EnsembleSettings):
        each = enumerate(model.settings.parsed)
        runs = [(run, state_of_run(model.state, number)) for number, run in each]
    if not runs or any(why_not_rows(run.settings) for run, _ in runs):
        return None
    files: dict[SmoothedForm, SmoothedRows] = {}
    models = []
    for run, state in runs:
        # As the model was trained, also where features of this graph are negative.
        form = replace(SmoothedForm.of(shards, run.settings), row_normalized=model.row_normalized)
        if form not in files:
            made = smooth_shards(shards, form, context, memory=memory, progress=progress)
            files[form] = made.rows
        network = _restored_network(model, run.settings, state).to(context.device)
        models.append(RowModel(network, files[form], run.weight))
    return models


def _restored_network(
    model: TrainedModel, settings: Settings, state: Mapping[str, Tensor]
) -> GraphConvolutionalNetwork:
    """A network of the GCN family or of smoothed-mlp, which is the model or a part of it."""
    hidden = [settings.hidden_channels] * (settings.num_layers - 1)
    sizes = [model.num_features, *hidden, model.num_classes]
    network = GraphConvolutionalNetwork(sizes, settings.dropout)
    try:
        require_matching_tensors(state, network.state_dict())
    except RawlsError as error:
        raise RawlsError(
            f"the weights in {model.folder} do not fit its settings ({error}): one of the files "
            "was changed; train again"
        ) from error
    network.load_state_dict(state)
    return network.eval()


def shard_split(model: TrainedModel, shards: Shards) -> NDArray[np.str_] | None:
    """Whether the model was trained, validated or tested on each node of a graph in shards.

    "train", "val", "test" or ""; None if it is not the graph that the model was trained on.
    """
    words: NDArray[np.str_] = np.array(["", *SPLIT_WORDS])
    known = model.training_graph
    if model.fingerprint == shards.fingerprint:
        return np.take(words, ShardNodes.of(shards).split)
    masks = [] if known is None else known.masks
    fitting = [len(mask) for mask in masks] == [shards.num_nodes] * len(MASKS)
    if known is None or not fitting or shard_edge_digest(shards) != known.edges:
        return None
    parts = np.zeros(shards.num_nodes, dtype=np.uint8)
    for number, mask in enumerate(masks, start=1):
        parts[mask.numpy().astype(bool)] = number
    return np.take(words, parts)


def block_ids(shards: Shards) -> Callable[[int, int], NDArray[Any]]:
    """A function of the first node of a block and the one after the last: the nodes' ids."""
    parts = [shards.open(number) for number in range(len(shards))]

    def ids(first: int, last: int) -> NDArray[Any]:
        places = ((part, max(first, part.first), min(last, part.last)) for part in parts)
        return np.concatenate([part.node_ids(a, b) for part, a, b in places if a < b])

    return ids
