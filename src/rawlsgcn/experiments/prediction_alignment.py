"""The inputs of an audit: the graph, and predictions and columns in the order of its nodes."""

from __future__ import annotations

import copy
import operator
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from torch_geometric.data import Data

from .._core.errors import RawlsError, reading
from ..evaluation.audit.prediction_formats import PredictionChunk
from ..evaluation.prediction_files import FileChunk, PredictionFile
from ..graphs import check, load
from ..graphs.edges import in_degrees, is_symmetric
from ..graphs.graph_objects import raw_from_object
from ..graphs.notes import GraphFacts
from ..graphs.readers.tables import SPLIT_VALUES, numbers_of
from ..graphs.shard_nodes import ShardNodes
from ..graphs.shards import MANIFEST, Shards
from ..graphs.splits import MASKS, has_own_split

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
_CELLS = 1 << 18
"""The scores of an array that are copied at once, to float64."""


def whole_number(name: str, value: Any) -> int:
    """Check a number of draws or a seed."""
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if number < 0:
        raise RawlsError(f"{name} must be a whole number of 0 or more, not {value!r}")
    return number


def checked_graph(graph: Data | Shards | str, by: Any) -> tuple[Data, Ints | None]:
    """Check the graph, and count its in-degrees if nodes are grouped by them.

    Where every edge goes both ways the directions are not known, or there never were any. Of
    shards only the degrees, labels and masks are read, not the edges.
    """
    if isinstance(graph, Shards):
        if isinstance(by, str) and by == "in-degree":
            raise RawlsError(
                "shards have every edge in both directions, so that in-degrees are not known: "
                "audit the directed file with --graph, or give a column: --by FILE "
                "(by=(name, values))"
            )
        if isinstance(by, str) and by in ("pagerank", "core"):
            raise RawlsError(
                f"the {by} of nodes needs all edges in memory, which an audit of shards does not "
                "read: group by degree or by a file of node ids and values"
            )
        return ShardNodes.of(graph).graph, None
    if isinstance(graph, str):
        if (Path(graph) / MANIFEST).is_file():
            raise RawlsError(
                f"'{graph}' is a folder of shards, and a text is the name of a dataset: give "
                f"rawlsgcn.graphs.shards.Shards('{graph}')"
            )
        return load(graph, sparse=True), None
    data = check(graph, sparse=True, need_features=False, need_labels=False)
    incoming = graph.get("in_degree") if isinstance(graph, Data) else None
    if isinstance(by, str) and by == "in-degree" and incoming is None:
        raw = raw_from_object(graph)
        source, target = raw.source, raw.target
        if not is_symmetric(source, target, int(data.num_nodes)):
            incoming = in_degrees(source, target, int(data.num_nodes))
    if data.get("y") is None:
        left_out = dict(GraphFacts.of(data).left_out)
        why = left_out.get("labels", "give them with --labels (labels=...)")
        raise RawlsError(f"there are no labels to compare the predictions with: {why}")
    return data, None if incoming is None else np.asarray(incoming)


def without_made_split(data: Data, *, noted: bool = True) -> Data:
    """Remove masks that the validation made: the predictions come from elsewhere."""
    if has_own_split(data) or not all(key in data for key in MASKS):
        return data
    data = copy.copy(data)
    for key in MASKS:
        del data[key]
    facts = GraphFacts.of(data)
    facts.split_made, facts.split_drawn, facts.split_removed = "", "", noted
    data.facts = facts.pairs()
    return data


class NodeIndex:
    """From the ids in the user's files to positions in the graph.

    Args:
        node_ids: The ids of the graph's nodes; None if they are numbered from 0.
        nodes: The number of nodes.
    """

    def __init__(self, node_ids: Any, nodes: int) -> None:
        self.nodes, self.numbered = nodes, node_ids is None
        self.as_text = False
        if self.numbered:
            return
        self.as_text = pd.api.types.infer_dtype(node_ids, skipna=False) != "integer"
        # Not an array of texts: in one, each takes the memory of the longest.
        known = [str(each).strip() for each in node_ids] if self.as_text else node_ids
        self._index = pd.Index(known)

    def positions(self, ids: pd.Series[Any], row_name: Any, first: int) -> Ints:
        """Find the positions of ``ids``; ``row_name(row)`` names a row in error messages."""
        empty = ids.isna().to_numpy()
        if empty.any():
            raise RawlsError(
                f"{row_name(first + int(empty.argmax()))}: the node id is empty: fill it in or "
                "remove that row"
            )
        if self.as_text:
            positions = self._index.get_indexer(pd.Index(ids.astype(str).str.strip()))
        else:
            numbers = _whole_ids(ids, row_name, first)
            if self.numbered:
                positions = np.where((numbers >= 0) & (numbers < self.nodes), numbers, -1)
            else:
                positions = self._index.get_indexer(pd.Index(numbers))
        unknown = np.flatnonzero(positions < 0)
        if len(unknown):
            raise self._unknown(ids, unknown, row_name, first)
        return np.asarray(positions, dtype=np.int64)

    def _unknown(self, ids: pd.Series[Any], unknown: Ints, row_name: Any, first: int) -> RawlsError:
        row = int(unknown[0])
        named = ", ".join(str(ids.iloc[int(i)]) for i in unknown[:3])
        numbered = f"numbered from 0 to {self.nodes - 1}" if self.numbered else ""
        here = f"{ids.iloc[row]} ({row_name(first + row)})"
        if len(unknown) > len(ids) / 2:
            return RawlsError(
                f"the graph and the predictions do not belong together: {len(unknown):,} of "
                f"{len(ids):,} predicted nodes are not among the graph's {self.nodes:,}"
                f"{numbered and f' ({numbered})'}; the first is {here}"
            )
        more = f" (of {len(unknown):,} such, the first are {named})" if len(unknown) > 1 else ""
        return RawlsError(
            f"{row_name(first + row)}: node {ids.iloc[row]} is not in the graph"
            f"{numbered and f', whose nodes are {numbered}'}{more}: remove it"
        )


def _whole_ids(ids: pd.Series[Any], row_name: Any, first: int) -> Ints:
    """Ids as whole numbers, without rounding."""
    numbers = ids
    if not pd.api.types.is_integer_dtype(ids.dtype):
        numbers = pd.to_numeric(ids.astype(object), errors="coerce")
    if ids.dtype.kind in "bmM":
        bad = np.ones(len(ids), bool)  # True, or a date, is no number
    elif pd.api.types.is_integer_dtype(numbers.dtype):
        bad = (numbers > np.iinfo(np.int64).max).to_numpy(dtype=bool)
    else:
        numbers = pd.Series(numbers_of(ids))
        # From 2^53 on not every whole number is a float.
        bad = ~((numbers.abs() < 2**53) & (numbers == np.floor(numbers))).to_numpy()
    if bad.any():
        row = int(bad.argmax())
        raise RawlsError(
            f"{row_name(first + row)}: the node id '{ids.iloc[row]}' is not a whole number, as "
            "the graph's are"
        )
    return numbers.to_numpy().astype(np.int64)


class AlignedFile:
    """A file of predictions whose rows are matched with the nodes of the graph.

    Args:
        path: The file.
        index: The ids of the graph's nodes.
        name: The model's name; by default the file's.
        class_names: The names of the graph's classes, if they have any.
    """

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
            words = chunk.words.astype(object).fillna("").astype(str).str.strip().str.lower()
            if not words.isin([*SPLIT_VALUES, "", "none"]).all():
                return None
            nodes = np.arange(chunk.first, chunk.first + len(words))
            if chunk.ids is not None:
                with reading(self._file.path, "predictions"):
                    nodes = self._index.positions(chunk.ids, self.row, chunk.first)
            elif len(words) > self._index.nodes:
                return None  # an error is raised where the predictions are read
            codes[nodes] = words.map(SPLIT_VALUES).fillna(-1).to_numpy(dtype=np.int64)
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

    Args:
        values: An array, a tensor or anything that numpy makes an array of.
        nodes: The number of nodes of the graph.
        name: The model's name.
        source: Where the predictions come from.
        named_format: "probabilities" or "logits" if it is known which they are.
        class_names: The names of the graph's classes, by which words are understood.
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
    unknown = [str(each) for each in values if str(each) not in numbers]
    if unknown:
        raise RawlsError(
            f"predictions '{name}': '{unknown[0]}' is not a class of the graph, which has "
            f"{', '.join(list(numbers)[:8])}"
        )
    return np.array([numbers[str(each)] for each in values])


def read_column(path: Path, index: NodeIndex) -> tuple[str, Array]:
    """Read a user's column in the order of the nodes; NaN or '' where a node has no value."""
    from ..graphs.readers.table_formats import TABLES
    from ..graphs.readers.tables import is_number, read_table

    if path.suffix.lower() not in TABLES:
        raise RawlsError(f"{path}: columns are read from {', '.join(TABLES)} files (id,value)")
    with reading(path, "a table"):
        table = read_table(path, lambda cells, numeric: not all(map(is_number, cells[1:])))
        key = table.id_column()
        others = [i for i in range(table.width) if i != key]
        if not others:
            raise RawlsError(
                f"{path} has one column: give the node id first and its value after it"
            )
        name = table.names[others[0]] if table.names else path.stem
        ids = table.ids(key, as_text=True) if index.as_text else table.frame[key]
        positions = index.positions(ids, table.row, 0)
        again = pd.Series(positions).duplicated().to_numpy()
        if again.any():
            raise RawlsError(f"{table.row(int(again.argmax()))}: this node appears twice")
        column = table.frame[others[0]]
        values: Array
        if pd.api.types.is_numeric_dtype(column.dtype):
            values = np.full(index.nodes, np.nan)
            values[positions] = numbers_of(column)
        else:
            values = np.full(index.nodes, "", dtype=object)
            values[positions] = column.astype(str).str.strip().where(column.notna(), "").to_numpy()
    return name, values
