"""Labels and features in files of their own, by node id or in the order of the nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..._core.errors import RawlsError, reading
from ..._core.progress import ProgressCallback, no_progress
from ..._core.threads import ordered_map
from ..notes import GraphFacts
from ..raw_graph import RawGraph
from .arrays import FEATURE_KEYS, LABEL_KEYS, Archive, read_npy
from .column_names import FIRST_ID_COLUMNS, ID_COLUMNS
from .node_numbers import NodeNumbers, TextIdsError, no_row
from .table_formats import ParquetTable, is_parquet
from .tables import TableFile, TableHeader
from .torch_files import read_tensor

Array = NDArray[Any]
TORCH = (".pt", ".pth")
"""Files of ``torch.save``."""
#: Rows of ids and of edges that are read at a time.
ROWS = 1 << 20
_SAMPLED_BYTES = 1 << 20


@dataclass
class NodeTable:
    """Values for the nodes.

    Attributes:
        path: Their file.
        values: Those of all rows; None for a table that is read in batches.
        masks: The masks beside labels.
        table: The table whose column ``key`` has the ids of the rows; None where the rows are in
            the order of the nodes, 0 to n - 1.
        columns: Those of the values in the table.
        ignored: Columns that are not used.
        class_names: The names of the classes, for labels that are words.
        absent: The value of nodes that are not listed; None where every node must be.
        order: The row of each node, if that is not its number.
        progress: Called while the ids of a large table are read.
    """

    path: Path
    values: Any
    masks: dict[str, Array] = field(default_factory=dict)
    table: TableHeader | None = None
    key: int = 0
    columns: list[int] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    class_names: list[str] | None = None
    absent: int | None = None
    order: Array | None = None
    progress: ProgressCallback = no_progress

    def __post_init__(self) -> None:
        if self.values is not None and self.values.ndim == 0:
            raise RawlsError(f"{self.path} holds a single value: it must have one for each node")

    @property
    def complete(self) -> bool:
        """Whether every node must be listed."""
        return self.absent is None

    @property
    def num_rows(self) -> int:
        """The number of rows, if they are in memory."""
        return int(self.values.shape[0])

    @property
    def num_columns(self) -> int:
        """The number of columns of the values."""
        return int(self.values.shape[1]) if self.table is None else len(self.columns)

    @property
    def has_text_ids(self) -> bool:
        """Whether the ids are known to be texts, for a table that is in memory."""
        return isinstance(self.table, TableFile) and self.table.has_text_ids(self.key)

    @property
    def first_row(self) -> tuple[str, str]:
        """The id in a first line that may hold names of columns, else "", and what to say then."""
        if self.table is None or not (first := self.table.first_id):
            return "", ""
        said = f"{self.table.row(0)}: node '{first}' has no edge and"
        if self.complete:
            return first, (
                f"{said} no label: if it is the name of a column, call it 'id', else write a line "
                "of names above it, 'id' first"
            )
        names, label = self.class_names, self.values[0]
        if not names or label < 0 or (self.values == label).sum() > 1:
            return "", ""
        return first, (
            f"{said.removesuffix(' and')}, and its class '{names[int(label)]}' is in no other "
            "line: if these are names of columns, call them 'id' and 'label', else write these "
            "names above them"
        )

    def add_facts(self, facts: GraphFacts) -> None:
        """Report which column is the ids, where it is not the first, and which are not used."""
        if self.ignored:
            facts.columns_ignored.append((self.path.name, ", ".join(self.ignored[:3])))
        if self.table is not None and self.key != 0:
            column = self.table.column(self.key)
            facts.columns_assumed.append((self.path.name, column, "the node ids"))

    def tables(
        self, rows: int, as_text: bool, only: list[int] | None = None
    ) -> Iterator[TableFile]:
        """The rows in tables, so many at a time."""
        assert self.table is not None
        return self.table.tables(rows, (self.key,) if as_text else (), only)

    def ids(self, as_text: bool) -> Array:
        """The ids of all rows, of which none may appear twice; a large table is read for them.

        Raises:
            TextIdsError: If one is text, and not ``as_text``.
        """
        assert self.table is not None
        with reading(self.path, "a table"):
            parts, done, rows = [], 0, estimated_rows(self.table)
            tables = self.tables(ROWS, as_text, [self.key])
            for part in ordered_map(lambda table: ids_of(table, self.key, as_text), tables):
                parts.append(part)
                done += len(part)
                self.progress(done, max(done, rows), f"reading the ids of {self.path.name}")
            ids = pd.concat(parts, ignore_index=True)
            refuse_repeated(self.table, ids)
        return ids.to_numpy(dtype=object if as_text else np.int64)

    def place(self, node: int) -> str:
        """Name where the values of a node stand: the line, in a table."""
        row = node if self.order is None else int(self.order[node])
        return self.path.name if self.table is None else self.table.row(row)

    def attach(self, raw: RawGraph, numbers: NodeNumbers, others: list[str]) -> None:
        """Bring the rows into the order of the nodes, which the files ``others`` name too."""
        if self.table is None:
            return
        assert isinstance(self.table, TableFile)
        ids = self.ids(numbers.is_text)
        where = others[-1] if numbers.is_range else " or ".join(others)
        refuse_unknown(self.table, ids, numbers.find(ids), numbers.unknown(where))
        rows = NodeNumbers(ids).find(numbers.order)
        self.order, listed = rows, rows >= 0
        values = self.values[rows]
        if not listed.all():
            missing = np.flatnonzero(~listed)
            if self.complete:
                raise no_row(self.path, numbers.order, missing)
            raw.facts.not_in_labels = len(missing)
            values = np.where(listed, values, self.absent)
        self.values = values
        self.masks = {key: mask[rows] & listed for key, mask in self.masks.items()}


def ids_of(table: TableFile, column: int, as_text: bool) -> pd.Series[Any]:
    """The ids in a column; texts instead of numbers, unless ``as_text``, are a TextIdsError."""
    is_text = table.has_text_ids(column)  # looks for empty ids
    try:
        return table.ids(column, as_text)
    except RawlsError as error:
        if is_text and not as_text:
            raise TextIdsError(str(error)) from error
        raise


def estimated_rows(table: TableHeader) -> int:
    """About how many rows a table has, for the progress."""
    if isinstance(table, TableFile):
        return len(table.frame)
    if is_parquet(table.path):
        return int(ParquetTable(table.path).num_rows)
    with table.path.open("rb") as file:
        start = file.read(_SAMPLED_BYTES)
    return table.path.stat().st_size * max(1, start.count(b"\n")) // max(1, len(start))


def refuse_unknown(table: TableFile, ids: Array, places: Array, what: str) -> None:
    """Refuse ids of which one is no node, whose place is -1; ``what`` says where it is not."""
    unknown = np.flatnonzero(places < 0)
    if len(unknown):
        row = int(unknown[0])
        first = ids.dtype == object and table.first + row == 0
        header = first and ids[row] == table.first_id
        cure = ": if it is the name of a column, call it 'id'" if header else ""
        raise RawlsError(f"{table.row(row)}: node {ids[row]} is {what}{cure}")


def refuse_repeated(table: TableHeader, ids: Any, before: Array | None = None) -> None:
    """Refuse ids of which one appears twice, or ``before`` says that it was in an earlier row."""
    repeated = pd.Series(ids).duplicated().to_numpy()
    repeated = repeated if before is None else repeated | before
    if repeated.any():
        row = int(repeated.argmax())
        raise RawlsError(f"{table.row(row)}: node {ids[row]} appears twice")


def node_columns(table: TableHeader) -> tuple[int, list[int]]:
    """The column of the ids, the first by default, and the others but a pandas index beside it."""
    key = 0
    if table.names is not None and table.words[0] not in FIRST_ID_COLUMNS:
        names = FIRST_ID_COLUMNS if table.has_unnamed_index else ID_COLUMNS
        key = table.find(names) or 0
    apart = {key, 0} if table.has_unnamed_index else {key}
    return key, [index for index in range(table.width) if index not in apart]


def read_array(path: Path, what: str) -> tuple[Any, dict[str, Array]]:
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
    found = archive.first(LABEL_KEYS) if what == "labels" else archive.features()
    if found is None and len(archive.keys) == 1:
        found = archive[next(iter(archive.keys))]
    if found is None:
        raise RawlsError(f"{path} has none of the keys {', '.join(keys)}")
    return found, archive.masks() if what == "labels" else {}
