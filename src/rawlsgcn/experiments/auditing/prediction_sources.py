"""The predictions that an audit is given: files, results, arrays, frames and torch modules."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from ..._core.errors import RawlsError
from ...evaluation.node_index import NodeIndex
from ...evaluation.predictions import Predictions
from ...graphs import check, load
from ...graphs.shards.shards import Shards

#: Parameters of ``forward`` that are attributes of a Data under the same name.
_ATTRIBUTES = ("x", "edge_index", "adj_t", "edge_weight", "edge_attr", "batch", "pos")


def prediction_sources(
    predictions: Any,
    graph: Data | str | Shards,
    index: NodeIndex,
    class_names: Sequence[str] | None,
) -> tuple[list[Predictions], dict[str, Any]]:
    """Return the predictions as they are read, and which of them are a :class:`Result`, by name.

    Models of the same name are numbered.
    """
    named: list[tuple[Any, Any]] = [(None, predictions)]
    if isinstance(predictions, Mapping):
        named = list(predictions.items())
    elif isinstance(predictions, list | tuple):
        of_one = _are_classes(predictions, index.nodes, class_names)
        named = [(None, each) for each in ([np.array(predictions)] if of_one else predictions)]
    if not named:
        raise RawlsError("there is nothing to audit: give the predictions of at least one model")
    sources = []
    for number, (name, each) in enumerate(named, start=1):
        if _is_result(each):
            run = each.best_run
            words = f"{each.method} on {each.dataset}, seed {each.seeds[run]}"
            logits, title = each.logits[run], name or each.title
            source = Predictions(logits, index, title, source=words, kind="logits")
        elif isinstance(each, nn.Module):
            source = Predictions(module_scores(each, graph), index, name or type(each).__name__)
        else:
            default = None if isinstance(each, str | Path) else f"model {number}"
            source = Predictions(each, index, name or default, class_names)
        sources.append(source)
    names = [source.name for source in sources]
    for number, source in enumerate(sources, start=1):
        if names.count(source.name) > 1 or source.name in names[: number - 1]:
            source.name = f"{source.name} #{number}"
    both = zip(sources, named, strict=True)
    return sources, {source.name: each for source, (_, each) in both if _is_result(each)}


def _is_result(value: Any) -> bool:
    """Whether this is a Result, which is not imported: it imports this module."""
    return hasattr(type(value), "best_run")


def _are_classes(values: Sequence[Any], nodes: int, class_names: Sequence[str] | None) -> bool:
    """Whether a list holds the predicted class of each node, and not one model an item."""
    if values and all(isinstance(each, int | float | np.number) for each in values):
        return True
    words = len(values) == nodes and all(isinstance(each, str) for each in values)
    return words and not set(class_names or ()).isdisjoint(values)


def module_scores(module: nn.Module, graph: Data | str | Shards) -> Tensor:
    """Compute the scores of every node in evaluation mode, without gradients.

    ``forward`` may take the parts of the graph by torch_geometric's names (``x``, ``edge_index``,
    and if it has them ``edge_weight``, ``edge_attr``, ``batch``, ``pos``), or the whole graph as
    ``data``. The graph is copied to the module's device; the module is left in its own mode.

    Returns:
        The scores, (nodes, classes), on the CPU.
    """
    if isinstance(graph, Shards):
        raise RawlsError("a module is called with the whole graph: give its predictions of shards")
    data = load(graph) if isinstance(graph, str) else graph
    if not isinstance(data, Data):  # networkx's
        data = check(data, need_features=False, need_labels=False)
    weight = next(chain(module.parameters(), module.buffers()), torch.empty(0))
    here = data.to(weight.device) if weight.device != torch.device("cpu") else data
    arguments = _arguments(module, here)
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        with torch.no_grad():
            scores = module(**arguments)
    finally:
        for part, training in modes:
            part.training = training
    if not isinstance(scores, Tensor) or scores.dim() != 2 or len(scores) != data.num_nodes:
        shape = f"a tensor {tuple(scores.shape)}" if isinstance(scores, Tensor) else "no tensor"
        raise RawlsError(
            f"{type(module).__name__} must return a score of every class for each of the "
            f"{data.num_nodes} nodes, (nodes, classes), but returned {shape}: audit the scores "
            "themselves"
        )
    return scores.detach().float().cpu()


def _arguments(module: nn.Module, data: Data) -> dict[str, Any]:
    """What ``forward`` is called with."""
    known = {name: data.get(name) for name in _ATTRIBUTES}
    # Layers take either, and transforms replace one by the other.
    for name, other in (("edge_index", "adj_t"), ("adj_t", "edge_index")):
        known[name] = data.get(other) if known[name] is None else known[name]
    known |= {"adj": known["adj_t"], "features": known["x"], "feats": known["x"]}
    known |= dict.fromkeys(("data", "graph", "batch_data"), data)
    found: dict[str, Any] = {}
    for name, parameter in inspect.signature(module.forward).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        value = known.get(name)
        if name == "batch" and value is None and not found:
            value = data  # the whole graph, in a model written for a loader
        if value is None and parameter.default is not parameter.empty:
            continue
        if value is None and name not in ("edge_weight", "edge_attr"):  # layers take None for these
            raise RawlsError(
                f"{type(module).__name__}.forward needs '{name}', which the graph does not have: "
                "call the model yourself and audit its scores, as rg.audit(graph, scores)"
            )
        found[name] = value
    return found
