"""Features and labels in files of their own, by node id or in the order of the nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..._core.errors import RawlsError, reading
from ..catalog import MASKS
from ..node_features import FILL_IN
from ..notes import GraphFacts
from .arrays import FEATURE_KEYS, LABEL_KEYS, Archive, read_npy
from .column_names import (
    LABEL_COLUMNS,
    NO_FEATURES,
    SPLIT_COLUMNS,
    features_have_header,
    is_number,
    labels_have_header,
    missing_column,
    require_split,
)
from .labels import encode_words, label_array, require_one_kind
from .node_numbers import NodeRows
from .table_formats import TABLES, separator_name
from .tables import TableFile, TableHeader, read_table
from .torch_files import read_tensor

Array = NDArray[Any]
TORCH = (".pt", ".pth")
"""Files of ``torch.save``."""


@dataclass
class NodeTable:
    """Values for the nodes; ``table`` holds their ids in the column ``key``, or is absent.

    Without a table the rows are in the order of the nodes, 0 to n - 1. ``absent`` is the value of
    nodes that the table does not list; None where it must list every node. ``columns`` are those
    of the values, and ``order`` the row of each node, if that is not its number.
    """

    path: Path
    values: Any
    masks: dict[str, Array] = field(default_factory=dict)
    table: TableFile | None = None
    key: int = 0
    columns: list[int] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    class_names: list[str] | None = None
    absent: int | None = None
    order: Array | None = None

    def __post_init__(self) -> None:
        if self.values.ndim == 0:
            raise RawlsError(f"{self.path} holds a single value: it must have one for each node")

    @property
    def rows(self) -> NodeRows:
        """Which nodes the rows belong to."""
        if self.table is None:
            return NodeRows(self.path, int(self.values.shape[0]))
        if self.absent is None:
            return feature_rows(self.table, self.ids)
        first, named = self.table.first_id, self.class_names
        if not named or self.values[0] < 0 or (self.values == self.values[0]).sum() > 1:
            return NodeRows(self.path, None, self.ids, complete=False)
        header = (
            f"{self.table.row(0)}: node '{first}' has no edge, and its class "
            f"'{named[int(self.values[0])]}' is in no other line: if these are names of columns, "
            "call them 'id' and 'label', else write these names above them"
        )
        return NodeRows(self.path, None, self.ids, False, first, header)

    def add_facts(self, facts: GraphFacts) -> None:
        """Report which columns are the ids, where it is not the first, and which are not used."""
        if self.table is not None:
            note_columns(self.table, self.key, self.ignored, facts)

    def ids(self, as_text: bool) -> Array:
        """The ids of the rows, of which none may appear twice."""
        assert self.table is not None
        with reading(self.path, "a table"):
            ids = self.table.ids(self.key, as_text)
            refuse_repeated(self.table, ids)
            return ids.to_numpy(dtype=object if as_text else np.int64)

    def place(self, node: int) -> str:
        """Name where the values of a node stand: the line, in a table."""
        row = node if self.order is None else int(self.order[node])
        return self.path.name if self.table is None else self.table.row(row)

    def take(self, rows: Array) -> None:
        """Put the rows into another order; -1 stands for a node that is not listed."""
        self.order, listed = rows, rows >= 0
        values = self.values[rows]
        self.values = values if listed.all() else np.where(listed, values, self.absent)
        self.masks = {key: mask[rows] & listed for key, mask in self.masks.items()}


def note_columns(table: TableHeader, key: int, ignored: list[str], facts: GraphFacts) -> None:
    """Report which column is the ids, where it is not the first, and which are not used."""
    if ignored:
        facts.columns_ignored.append((table.path.name, ", ".join(ignored[:3])))
    if key != 0:
        facts.columns_assumed.append((table.path.name, table.column(key), "the node ids"))


def refuse_unknown(table: TableFile, ids: Array, places: Array, what: str) -> None:
    """Refuse ids of which one is no node, whose place is -1; ``what`` says where it is not."""
    unknown = np.flatnonzero(places < 0)
    if len(unknown):
        row = int(unknown[0])
        header = ids.dtype == object and ids[row] == table.first_id and table.first + row == 0
        cure = ": if it is the name of a column, call it 'id'" if header else ""
        raise RawlsError(f"{table.row(row)}: node {ids[row]} is {what}{cure}")


def refuse_repeated(table: TableHeader, ids: Any, before: Array | None = None) -> None:
    """Refuse ids of which one appears twice, or ``before`` says that it was in an earlier row."""
    repeated = pd.Series(ids).duplicated().to_numpy()
    repeated = repeated if before is None else repeated | before
    if repeated.any():
        row = int(repeated.argmax())
        raise RawlsError(f"{table.row(row)}: node {ids[row]} appears twice")


def read_features(path: Path) -> NodeTable:
    """Features from .csv, .tsv, .parquet (id first), .npy, .pt, or .npz (dense or sparse)."""
    with reading(path, "features"):
        if path.suffix.lower() in TABLES:
            table = read_table(path, features_have_header)
            key, columns = feature_columns(table)
            values = feature_values(table, columns)
            nodes = NodeTable(path, values, table=table, key=key, columns=columns)
            nodes.ignored = no_features(table)
            return nodes
        return NodeTable(path, _read_array(path, "features")[0])


def read_labels(path: Path) -> NodeTable:
    """Labels from .csv, .tsv, .parquet (``id,label[,split]``), .npy, .pt, or .npz (with masks)."""
    with reading(path, "labels"):
        if path.suffix.lower() in TABLES:
            return _label_table(path)
        y, masks = _read_array(path, "labels")
        if isinstance(y, Tensor):
            if y.layout != torch.strided:
                raise RawlsError(f"{path} holds a sparse tensor: labels are a dense one")
            y = y.numpy()
        y, class_names = label_array(y, path.name)
        return NodeTable(path, y, masks, class_names=class_names)


def _read_array(path: Path, what: str) -> tuple[Any, dict[str, Array]]:
    """The features or labels of a file in the order of the nodes, and masks beside labels."""
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return read_npy(path), {}
    if suffix in TORCH:
        return read_tensor(path), {}
    if suffix != ".npz":
        raise RawlsError(
            f"{path}: {what} are read from .csv, .tsv, .txt, .parquet, .npy, .npz and .pt files"
        )
    archive = Archive(path)
    keys = LABEL_KEYS if what == "labels" else ("attr_data", *FEATURE_KEYS)
    if what == "labels":
        found = archive.first(LABEL_KEYS)
    else:
        whole = archive.whole()
        found = archive.features() if whole is None else whole.tocsr()
    if found is None and len(archive.keys) == 1:
        found = archive[next(iter(archive.keys))]
    if found is None:
        raise RawlsError(f"{path} has none of the keys {', '.join(keys)}")
    return found, archive.masks() if what == "labels" else {}


def _label_table(path: Path) -> NodeTable:
    table = read_table(path, labels_have_header)
    width = table.width
    key, columns = node_columns(table)
    split = table.find(SPLIT_COLUMNS, apart=[key])
    if table.names is None:
        if width > 3:
            raise RawlsError(f"{path} has {width} columns and no header: expected id,label[,split]")
        split = 2 if width == 3 else None
    label = table.find(LABEL_COLUMNS, apart=[key])
    if label is None:
        label = next((index for index in columns if index != split), None)
    if label is None and table.names is None:
        raise RawlsError(
            f"{path} has one column: give the node id first (of rows in node order: 0, 1, 2, …) "
            f"and the label after it, separated by {separator_name(path)}"
        )
    if label is None:
        raise missing_column(path, "labels", LABEL_COLUMNS)
    cells = table.frame[label]
    encoded = None
    if not pd.api.types.is_numeric_dtype(cells.dtype):
        encoded = encode_words(cells)
        words = cells.astype(object).map(lambda each: isinstance(each, str) and not is_number(each))
        if encoded is None and words.sum() > 1:  # a single one may be the name of a column
            require_one_kind(cells, lambda row: f"{table.row(row)}, {table.column(label)}")
    values, class_names = encoded or (table.numbers([label])[:, 0], None)
    nodes = NodeTable(path, values, table=table, key=key, columns=[label], absent=-1)
    nodes.class_names = class_names
    nodes.ignored = [table.column(index) for index in sorted(set(columns) - {label, split})]
    if split is not None:
        nodes.masks = _masks(table, split)
    return nodes


def _masks(table: TableFile, column: int) -> dict[str, Array]:
    """The masks of a column that says train, val or test, or nothing, for each node."""
    where = f", {table.column(column)}"
    codes = require_split(table.frame[column], lambda row: table.row(row) + where)
    return {key: codes == code for code, key in enumerate(MASKS)}


def node_columns(table: TableHeader) -> tuple[int, list[int]]:
    """The column of the ids, and the others; a pandas index beside the ids says nothing."""
    key = table.id_column()
    apart = {key, 0} if table.has_unnamed_index else {key}
    return key, [index for index in range(table.width) if index not in apart]


def feature_columns(table: TableHeader) -> tuple[int, list[int]]:
    """The column of the ids, and those of the features, of which there must be one."""
    key, columns = node_columns(table)
    others = [index for index in columns if table.names and table.words[index] in NO_FEATURES]
    columns = [index for index in columns if index not in others]
    if others and not columns:
        raise RawlsError(
            f"{table.path} has no features: beside the node ids it has {table.column(others[0])}, "
            "which is not one"
        )
    if not columns:
        raise RawlsError(
            f"{table.path} has one column: give the node id first and the features after it, "
            f"separated by {separator_name(table.path)}"
        )
    return key, columns


def feature_values(table: TableFile, columns: list[int]) -> Array:
    """The features in these columns."""
    return table.numbers(columns, "encode such a column as numbers, or remove it", FILL_IN)


def feature_rows(table: TableHeader, ids: Callable[[bool], Array]) -> NodeRows:
    """Which nodes the rows of a table of features belong to."""
    header = (
        f"{table.row(0)}: node '{table.first_id}' has no edge and no label: if it is the name of a "
        "column, call it 'id', else write a line of names above it, 'id' first"
    )
    return NodeRows(table.path, None, ids, first=table.first_id, header=header)


def no_features(table: TableHeader) -> list[str]:
    """The columns of a table of features that are none."""
    return [table.column(index) for index, word in enumerate(table.words) if word in NO_FEATURES]


def use_one_file_for_both(labels: NodeTable, path: Path, columns: Sequence[int]) -> bool:
    """Whether the features, in these columns of a file, are in the file of the labels.

    Raises:
        RawlsError: If the column of the labels is a feature too.
    """
    if labels.table is None or not columns or not path.samefile(labels.path):
        return False
    if labels.columns[0] in columns:
        column = labels.table.column(labels.columns[0])
        raise RawlsError(
            f"{path} has features and labels, and {column} would be both: call the column of the "
            "labels 'label'"
        )
    labels.ignored = []
    return True
