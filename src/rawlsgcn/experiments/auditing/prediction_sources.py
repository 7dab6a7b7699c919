"""The predictions that an audit is given: files, results, arrays, frames and torch modules."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from ..._core.errors import RawlsError, reading
from ...evaluation.node_index import NodeIndex, require_all
from ...evaluation.prediction_files import PredictionFile
from ...evaluation.prediction_formats import PredictionChunk, PredictionSource
from ...graphs import load
from ...graphs.shards.shards import Shards

Array = npt.NDArray[Any]
_CELLS = 1 << 18
"""The scores of an array that are copied at once, to float64."""
#: Parameters of ``forward`` that are attributes of a Data under the same name.
_ATTRIBUTES = ("x", "edge_index", "adj_t", "edge_weight", "edge_attr", "batch", "pos")
_OTHER_NAMES = {"adj": "adj_t", "features": "x", "feats": "x"}
#: Layers take either, and transforms replace one by the other.
_EITHER = {"edge_index": "adj_t", "adj_t": "edge_index"}
_WHOLE = ("data", "graph", "batch_data")
#: What layers take None for where the graph has no such values.
_MAY_BE_NONE = ("edge_weight", "edge_attr")


def prediction_sources(
    predictions: Any,
    graph: Data | str | Shards,
    index: NodeIndex,
    class_names: Sequence[str] | None,
) -> tuple[list[PredictionSource], dict[str, Any]]:
    """Return the predictions as they are read, and which of them are a :class:`Result`, by name.

    Models of the same name are numbered.
    """
    if isinstance(predictions, Mapping):
        named = list(predictions.items())
    elif isinstance(predictions, list | tuple):
        of_one = _are_classes(predictions, index.nodes, class_names)
        named = [(None, each) for each in ([np.array(predictions)] if of_one else predictions)]
    else:
        named = [(None, predictions)]
    if not named:
        raise RawlsError("there is nothing to audit: give the predictions of at least one model")
    sources: list[PredictionSource] = []
    results: list[Any] = []
    for number, (name, each) in enumerate(named, start=1):
        results.append(None)
        if isinstance(each, str | Path):
            sources.append(PredictionFile(each, index, name, class_names))
        elif hasattr(type(each), "best_run"):  # a Result, not imported: it imports this module
            run, results[-1] = each.best_run, each
            words = f"{each.method} on {each.dataset}, seed {each.seeds[run]}"
            logits, title = each.logits[run], name or each.title
            sources.append(PredictionArray(logits, index.nodes, title, words, "logits"))
        else:
            if isinstance(each, nn.Module):
                name, each = name or type(each).__name__, module_scores(each, graph)
            called = name or f"model {number}"
            if isinstance(each, pd.DataFrame | pd.Series):
                table = index.with_ids(each, f"predictions '{called}'")
                sources.append(PredictionFile(table, index, called, class_names))
            else:
                sources.append(PredictionArray(each, index.nodes, called, class_names=class_names))
    names = [source.name for source in sources]
    for number, source in enumerate(sources, start=1):
        if names.count(source.name) > 1 or source.name in names[: number - 1]:
            source.name = f"{source.name} #{number}"
    given = zip(sources, results, strict=True)
    return sources, {source.name: result for source, result in given if result is not None}


def _are_classes(values: Sequence[Any], nodes: int, class_names: Sequence[str] | None) -> bool:
    """Whether a list holds the predicted class of each node, and not one model an item."""
    if values and all(isinstance(each, int | float | np.number) for each in values):
        return True
    words = len(values) == nodes and all(isinstance(each, str) for each in values)
    return words and not set(class_names or ()).isdisjoint(values)


class PredictionArray:
    """Predictions as an array: scores (nodes, classes) or classes (nodes,), in node order.

    ``named_format`` is "probabilities" or "logits" if it is known which they are; words are
    understood by the ``class_names``.
    """

    def __init__(
        self,
        values: Any,
        nodes: int,
        name: str,
        source: str = "an array",
        named_format: str | None = None,
        class_names: Sequence[str] | None = None,
    ) -> None:
        with reading(f"predictions '{name}'", "an array"):
            if hasattr(values, "detach"):
                values = values.detach().cpu()
                # numpy has no bfloat16, whose values single precision represents exactly.
                brain = str(values.dtype) == "torch.bfloat16"
                values = (values.float() if brain else values).numpy()
            values = np.asarray(values)
        if values.ndim == 1 and values.dtype.kind in "OU" and class_names is not None:
            values = _class_numbers(values, class_names, name)
        if values.ndim not in (1, 2) or values.dtype.kind not in "biuf":
            raise RawlsError(
                f"predictions '{name}' must be scores (nodes, classes) or classes (nodes,), they "
                f"are {values.dtype} of the shape {values.shape}"
            )
        require_all(len(values), nodes, f"predictions '{name}'")
        bad = np.isnan(values) if values.ndim == 1 else np.isnan(values).any(1)
        if bad.any():
            raise RawlsError(
                f"predictions '{name}': {self.row(int(bad.argmax()))} is NaN: fill it in, or write "
                "the others to a file with their node ids"
            )
        self.name, self.source, self._values = name, source, values
        self.named_format = named_format

    def row(self, index: int) -> str:
        """Name a row for an error message."""
        return f"row {index} (counted from 0)"

    def chunks(self) -> Iterator[PredictionChunk]:
        """Copy the rows from the first to the last, some at a time."""
        step = max(1000, _CELLS // max(self._values[:1].size, 1))
        for first in range(0, len(self._values), step):
            values = self._values[first : first + step].astype(np.float64)
            yield PredictionChunk(np.arange(first, first + len(values)), first, values)


def _class_numbers(values: Array, class_names: Sequence[str], name: str) -> Array:
    """The numbers of classes that are given by their names."""
    numbers = {str(each): number for number, each in enumerate(class_names)}
    found = pd.Series(values).astype(str).map(numbers)
    if found.isna().any():
        raise RawlsError(
            f"predictions '{name}': '{values[int(found.isna().argmax())]}' is not a class of the "
            f"graph, which has {', '.join(list(numbers)[:8])}"
        )
    return found.to_numpy(dtype=np.int64)


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
    found: dict[str, Any] = {}
    for name, parameter in inspect.signature(module.forward).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        key = _OTHER_NAMES.get(name, name)
        value = data if name in _WHOLE else data.get(key) if key in _ATTRIBUTES else None
        if value is None and key in _EITHER:
            value = data.get(_EITHER[key])
        if name == "batch" and value is None and not found:
            value = data  # the whole graph, in a model written for a loader
        if value is not None:
            found[name] = value
        elif key in _MAY_BE_NONE and parameter.default is parameter.empty:
            found[name] = None
        elif parameter.default is parameter.empty:
            raise RawlsError(
                f"{type(module).__name__}.forward needs '{name}', which the graph does not have: "
                "call the model yourself and audit its scores, as rg.audit(graph, scores)"
            )
    return found
