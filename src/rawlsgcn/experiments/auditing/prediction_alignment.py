"""The predictions that an audit is given: each model's name, and its rows matched with nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from torch import nn
from torch_geometric.data import Data

from ..._core.errors import RawlsError, reading
from ...evaluation.audit.prediction_formats import PredictionChunk, PredictionSource
from ...evaluation.prediction_files import FileChunk, PredictionFile
from ...graphs import load
from ...graphs.readers.column_names import split_codes
from ...graphs.shards.shards import Shards
from .module_predictions import module_scores
from .node_index import NodeIndex

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
_CELLS = 1 << 18
"""The scores of an array that are copied at once, to float64."""


def is_result(predictions: Any) -> bool:
    """Whether these are a :class:`Result`, which is not imported here: it imports this module."""
    return hasattr(type(predictions), "best_run")


def named_predictions(
    predictions: Any, graph: Data | str | Shards, nodes: int, class_names: Sequence[str] | None
) -> list[tuple[Any, Any]]:
    """Each model's name, if it has one, and its predictions: of a torch module its scores."""
    if isinstance(predictions, Mapping):
        named = list(predictions.items())
    elif isinstance(predictions, list | tuple) and _are_classes(predictions, nodes, class_names):
        named = [(None, np.array(predictions))]
    elif isinstance(predictions, list | tuple):
        named = [(None, each) for each in predictions]
    else:
        named = [(None, predictions)]
    if not named:
        raise RawlsError("there is nothing to audit: give the predictions of at least one model")
    if not any(isinstance(each, nn.Module) for _, each in named):
        return named
    if isinstance(graph, Shards):
        raise RawlsError("a module is called with the whole graph: give its predictions of shards")
    data = load(graph) if isinstance(graph, str) else graph
    return [
        (name or type(each).__name__, module_scores(each, data))
        if isinstance(each, nn.Module)
        else (name, each)
        for name, each in named
    ]


def _are_classes(values: Sequence[Any], nodes: int, class_names: Sequence[str] | None) -> bool:
    """Whether a list holds the predicted class of each node, and not one model an item."""
    if values and all(isinstance(each, int | float | np.number) for each in values):
        return True
    words = len(values) == nodes and all(isinstance(each, str) for each in values)
    return words and not set(class_names or ()).isdisjoint(values)


def prediction_sources(
    named: Sequence[tuple[Any, Any]], index: NodeIndex, class_names: list[str] | None
) -> list[PredictionSource]:
    """The predictions as they are read; models of the same name are numbered."""
    sources: list[PredictionSource] = []
    for number, (name, each) in enumerate(named, start=1):
        if isinstance(each, str | Path):
            sources.append(AlignedFile(each, index, name, class_names))
        elif is_result(each):
            run = each.best_run
            words = f"{each.method} on {each.dataset}, seed {each.seeds[run]}"
            logits, title = each.logits[run], name or each.title
            sources.append(AlignedArray(logits, index.nodes, title, words, "logits"))
        else:
            called = name or f"model {number}"
            ordered = index.in_order(each, f"predictions '{called}'")
            ordered = _in_class_order(ordered, class_names, f"predictions '{called}'")
            sources.append(AlignedArray(ordered, index.nodes, called, class_names=class_names))
    names = [source.name for source in sources]
    for number, source in enumerate(sources, start=1):
        if names.count(source.name) > 1 or source.name in names[: number - 1]:
            source.name = f"{source.name} #{number}"
    return sources


class AlignedFile:
    """A file of predictions, whose name is the model's by default, matched with the nodes."""

    def __init__(
        self,
        path: str | Path,
        index: NodeIndex,
        name: str | None = None,
        class_names: Sequence[str] | None = None,
    ) -> None:
        self._file, self._index = PredictionFile(path, index.as_text, class_names), index
        self.name, self.source = name or self._file.name, self._file.source
        self.named_format, self.row = self._file.named_format, self._file.row

    def chunks(self) -> Iterator[PredictionChunk]:
        """Read the rows from the first to the last, some at a time."""
        total, has_ids = 0, True
        for chunk in self._file.chunks():
            has_ids = chunk.ids is not None
            with reading(self._file.path, "predictions"):
                nodes = self._positions(chunk)
            total += len(nodes)
            yield PredictionChunk(nodes, chunk.first, chunk.predicted, chunk.scores)
        if not has_ids and total != self._index.nodes:
            raise RawlsError(
                f"{self.source} has {total:,} rows without node ids, but the graph has "
                f"{self._index.nodes:,} nodes: add their ids as 'node'"
            )

    def split(self) -> Ints | None:
        """Which nodes the file says to train (0), validate (1) and test (2); -1 for others.

        None if it does not say, or in other words than these.
        """
        if not self._file.has_split:
            return None
        codes = np.full(self._index.nodes, -1)
        for chunk in self._file.split_chunks():
            found, wrong = split_codes(chunk.words)
            if wrong.any():
                return None
            nodes = np.arange(chunk.first, chunk.first + len(found))
            if chunk.ids is not None:
                with reading(self._file.path, "predictions"):
                    nodes = self._index.positions(chunk.ids, self.row, chunk.first)
            elif len(found) > self._index.nodes:
                return None  # an error is raised where the predictions are read
            codes[nodes] = found
        return codes if bool((codes >= 0).any()) else None

    def _positions(self, chunk: FileChunk) -> Ints:
        if chunk.ids is not None:
            return self._index.positions(chunk.ids, self.row, chunk.first)
        values = chunk.predicted if chunk.scores is None else chunk.scores
        assert values is not None
        if chunk.first + len(values) > self._index.nodes:
            raise RawlsError(
                f"{self.source} has more rows than the graph has nodes ({self._index.nodes:,}), "
                "and no node ids: do they belong together?"
            )
        return np.arange(chunk.first, chunk.first + len(values))


class AlignedArray:
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
        if len(values) != nodes:
            raise RawlsError(
                f"predictions '{name}' are for {len(values):,} nodes, but the graph has {nodes:,}: "
                "do they belong together?"
            )
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
        classes_only = self._values.ndim == 1
        step = max(1000, _CELLS // (1 if classes_only else max(self._values.shape[1], 1)))
        for first in range(0, len(self._values), step):
            values = self._values[first : first + step].astype(np.float64)
            nodes = np.arange(first, first + len(values))
            yield PredictionChunk(
                nodes, first, values if classes_only else None, None if classes_only else values
            )


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


def _in_class_order(values: Any, class_names: Sequence[str] | None, name: str) -> Any:
    """The columns of a DataFrame in the order of the classes, by their names or numbers."""
    if not isinstance(values, pd.DataFrame):
        return values
    if values.shape[1] == 1:
        return values.iloc[:, 0]
    columns = [str(column) for column in values.columns]
    count = len(columns) if class_names is None else len(class_names)
    known = [*map(str, range(count))] if class_names is None else [*map(str, class_names)]
    if sorted(columns) != sorted(known) and columns != [*map(str, range(len(columns)))]:
        raise RawlsError(
            f"{name}: its columns must be the classes {', '.join(known[:8])}, not "
            f"{', '.join(columns[:8])}: rename them, or give an array in that order"
        )
    order = known if sorted(columns) == sorted(known) else columns
    return values.iloc[:, [columns.index(column) for column in order]]
