"""Predictions in files: .csv, .tsv, .parquet or .npz, made anywhere and read in chunks.

A row is a node: its id, and the predicted class or a score (probability or logit) of each class.
Only the current chunk is in memory, so that a file of many gigabytes can be read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._core.errors import RawlsError, reading, require_file
from ..graphs.readers.arrays import Archive
from ..graphs.readers.column_names import LABEL_COLUMNS, require_split
from ..graphs.readers.table_formats import TABLES, ParquetTable, is_parquet, no_rows
from ..graphs.readers.tables import TableHeader, numbers_of, read_header
from .node_index import NodeIndex
from .prediction_columns import PredictionColumns, find_columns, has_header
from .prediction_formats import PredictionChunk

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
FORMATS = (*TABLES, ".npz")
NODE_KEYS = ("node", "nodes", "node_ids", "ids")
PREDICTED_KEYS = ("predicted", "prediction", "classes")
SCORE_KEYS = ("probabilities", "logits", "scores")
_CELLS = 1 << 18
"""Cells read at once: 2 MB as numbers."""
_LISTS = 4096
"""Rows read at once where their width is not known beforehand."""
_COLUMNS = 50_000
"""Columns of a table at most: pandas takes tens of microseconds for each, in every chunk."""


def label_column(path: str | Path) -> str | None:
    """The column of labels in a table of predictions, in words; None if it has none."""
    require_file(path)
    if Path(path).suffix.lower() not in TABLES:
        return None
    with reading(path, "predictions"):
        header = read_header(Path(path).expanduser(), has_header, _COLUMNS)
    found = header.find(LABEL_COLUMNS)
    # Beside the node ids alone it is the predicted class.
    return header.column(found) if found is not None and header.width > 2 else None


class PredictionFile:
    """A file of predictions, matched with the nodes of a graph, which may be read more than once.

    Args:
        path: A .csv, .tsv, .parquet or .npz file; docs/audit.md lists the names of its columns. Or
            a DataFrame with these columns, and the ``name``.
        index: Finds the nodes of the graph by their ids.
        name: The name of the model, by default that of the file, or of its folder.
        class_names: The names of the classes in their order, where the labels are words.

    Raises:
        RawlsError: If there is no such file or a column is missing.

    Attributes:
        name: The name of the model.
        source: The path as it was given.
        named_format: "probabilities" or "logits" where the names of the columns say so.
    """

    def __init__(
        self,
        path: str | Path | pd.DataFrame,
        index: NodeIndex,
        name: str | None = None,
        class_names: Sequence[str] | None = None,
    ) -> None:
        self._index = index
        self._class_names = None if class_names is None else list(class_names)
        self._table: TableHeader
        if isinstance(path, pd.DataFrame):
            self.name, self.source = str(name), "a DataFrame"
            self._table = _FrameTable(Path(f"predictions '{name}'"), path)
            self.path = self._table.path
            with reading(self.path, "predictions"):
                first = next(path.itertuples(index=False, name=None), ())
                nested = [isinstance(each, list | np.ndarray) for each in first]
                lists = np.flatnonzero(nested).tolist()
                self._columns = find_columns(self._table, lists, self._class_names)
            self.named_format, self.row = self._columns.kind, self._table.row
            return
        self.path = Path(path).expanduser()
        # 'train --out' calls every file predictions.csv: then the folder tells them apart.
        named = self.path.stem != "predictions" or not self.path.parent.name
        self.name = name or (self.path.stem if named else self.path.parent.name)
        self.source = str(path)
        require_file(path)
        suffix = self.path.suffix.lower()
        if suffix not in FORMATS:
            raise RawlsError(f"{path}: predictions are read from {', '.join(FORMATS)} files")
        with reading(self.path, "predictions"):
            if suffix == ".npz":
                self._table, self._columns = _archive_table(self.path)
            else:
                self._table = read_header(self.path, has_header, _COLUMNS)
                lists = _list_columns(self.path) if is_parquet(self.path) else []
                self._columns = find_columns(self._table, lists, self._class_names)
        self.named_format = self._columns.kind
        self.row = self._table.row

    def chunks(self) -> Iterator[PredictionChunk]:
        """Read the rows from the first to the last, some at a time."""
        columns, first, classes = self._columns, 0, None
        rows = max(1000, _CELLS // (2 + len(columns.scores)))
        rows = rows if columns.score_list is None else _LISTS
        text = [] if columns.node is None or not self._index.as_text else [columns.node]
        with reading(self.path, "predictions"):
            for frame in self._table.chunks(rows, text):
                if frame.shape[1] != self._table.width:
                    raise RawlsError(
                        f"{self.row(first)} has {frame.shape[1]} cells, but the first line has "
                        f"{self._table.width}: give every row a cell for each column"
                    )
                if not len(frame):
                    continue
                # Of scores the largest is what counts; a column of classes beside them is not.
                if columns.score_list is not None:
                    values = self._listed(frame[columns.score_list], first, classes)
                    classes = values.shape[1]
                elif columns.scores:
                    values = self._numbers(frame, columns.scores, first)
                else:
                    assert columns.predicted is not None
                    values = self._classes(frame, columns.predicted, first)
                yield PredictionChunk(self._positions(frame, first), first, values)
                first += len(frame)
            if first == 0:
                raise no_rows(self.path)
            if columns.node is None and first != self._index.nodes:
                raise RawlsError(
                    f"{self.source} has {first:,} rows without node ids, but the graph has "
                    f"{self._index.nodes:,} nodes: add their ids as 'node'"
                )

    def split(self) -> npt.NDArray[np.int64] | None:
        """Which nodes the file says to train (0), validate (1) and test (2); -1 for others.

        None if it does not say.
        """
        node, split, first = self._columns.node, self._columns.split, 0
        if split is None:
            return None
        codes = np.full(self._index.nodes, -1)
        needed = [split] if node is None else sorted({node, split})
        text = needed if self._index.as_text else [split]
        with reading(self.path, "predictions"):
            for frame in self._table.chunks(_CELLS, text, only=needed):
                found = require_split(frame[split], partial(self._cell, split, first))
                codes[self._positions(frame, first)] = found
                first += len(frame)
        return codes if bool((codes >= 0).any()) else None

    def _cell(self, column: int, first: int, row: int) -> str:
        """Name a cell for an error message."""
        return f"{self.row(first + row)}, {self._table.column(column)}"

    def _positions(self, frame: pd.DataFrame, first: int) -> npt.NDArray[np.int64]:
        """The nodes of the rows, which without ids are in the order of the graph."""
        if self._columns.node is not None:
            return self._index.positions(frame[self._columns.node], self.row, first)
        if first + len(frame) > self._index.nodes:
            raise RawlsError(
                f"{self.source} has more rows than the graph has nodes ({self._index.nodes:,}), "
                "and no node ids: do they belong together?"
            )
        return np.arange(first, first + len(frame))

    def _classes(self, frame: pd.DataFrame, column: int, first: int) -> Floats:
        """The predicted classes as numbers; words are those that the labels have."""
        cells = frame[column]
        if self._class_names is not None and not pd.api.types.is_numeric_dtype(cells.dtype):
            numbers = {name: number for number, name in enumerate(self._class_names)}
            texts = cells.astype(object).map(lambda cell: str(cell).strip())
            frame = pd.DataFrame({column: texts.map(lambda text: numbers.get(text, text))})
        return self._numbers(frame, [column], first)[:, 0]

    def _listed(self, column: pd.Series[Any], first: int, wide: int | None) -> Floats:
        """The lists as rows (nodes, classes), each as long as the first one, or ``wide``."""
        lengths = column.str.len().fillna(0).to_numpy(dtype=np.int64)
        wide = wide or int(lengths[0])
        wrong = (lengths == 0) | (lengths != wide)
        if wrong.any():
            row = int(wrong.argmax())
            where = self.row(first + row)
            if lengths[row] == 0:
                raise RawlsError(f"{where}: the list of scores is empty: {self._cure}")
            raise RawlsError(
                f"{where}: the list has {lengths[row]} scores, the first one has {wide}: give a "
                "score of every class"
            )
        values = np.stack(column.to_list()).astype(np.float64)
        bad = np.isnan(values).any(1)
        if bad.any():
            where = self.row(first + int(bad.argmax()))
            raise RawlsError(f"{where}: the list has an empty or NaN score")
        return values

    @property
    def _cure(self) -> str:
        """What to do with a node that has no prediction: only with ids can its row be missing."""
        if self._columns.node is None:
            return "give the others with their node ids as 'node'"
        return "leave out the row of one without them"

    def _numbers(self, frame: pd.DataFrame, columns: list[int], first: int) -> Floats:
        if all(map(pd.api.types.is_numeric_dtype, frame.dtypes[columns])):
            values = frame[columns].to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            values = np.column_stack([numbers_of(frame[index]) for index in columns])
        wrong = np.isnan(values)
        if wrong.any():
            row, place = np.unravel_index(int(wrong.argmax()), wrong.shape)
            value = frame[columns[place]].iloc[row]
            empty = value is None or value is pd.NA or value is pd.NaT or value != value
            said = "is empty or NaN" if empty else f"is '{value}'"
            expected = "numbers"
            if self._class_names is not None and not self._columns.scores:
                more = ", …" * (len(self._class_names) > 5)
                some = ", ".join(self._class_names[:5])
                expected = f"one of the classes of the labels ({some}{more})"
            raise RawlsError(
                f"{self._cell(columns[place], first, int(row))} {said}: "
                f"every predicted node needs {expected}; {self._cure}"
            )
        return values


class _FrameTable(TableHeader):
    """A DataFrame as a table."""

    def __init__(self, path: Path, frame: pd.DataFrame) -> None:
        super().__init__(path, [str(name) for name in frame.columns], frame.shape[1])
        self._frame = frame.set_axis(range(self.width), axis=1)

    def row(self, index: int) -> str:
        return f"{self.path}, row {index} (counted from 0)"

    def chunks(
        self, rows: int, text: Collection[int] = (), only: list[int] | None = None
    ) -> Iterator[pd.DataFrame]:
        for first in range(0, len(self._frame), rows):
            frame = self._frame.iloc[first : first + rows]
            yield frame if only is None else frame[only]


class _ArchiveTable(TableHeader):
    """The arrays of an .npz file as a table: the predictions, and columns beside them."""

    def __init__(self, path: Path, names: list[str], values: Array, beside: list[Array]) -> None:
        super().__init__(path, names, len(names))
        self._values, self._beside = values, beside

    def row(self, index: int) -> str:
        return f"{self.path.name}, row {index} (counted from 0)"

    def chunks(
        self, rows: int, text: Collection[int] = (), only: list[int] | None = None
    ) -> Iterator[pd.DataFrame]:
        for first in range(0, len(self._values), rows):
            frame = pd.DataFrame(self._values[first : first + rows])
            for array in self._beside:
                frame[frame.shape[1]] = array[first : first + rows]
            yield frame if only is None else frame[only]


def _archive_table(path: Path) -> tuple[_ArchiveTable, PredictionColumns]:
    """Scores or predicted classes from an .npz file, with the ids of the nodes if it has them."""
    archive = Archive(path)
    # Where there are scores, the class of the largest is what counts.
    key = next((key for key in SCORE_KEYS if key in archive.keys), None)
    array = archive.first(PREDICTED_KEYS) if key is None else archive[key]
    if array is None:
        raise RawlsError(f"{path} has none of the keys {', '.join((*SCORE_KEYS, *PREDICTED_KEYS))}")
    wide, kinds = (1, "biufU") if key is None else (2, "biuf")
    if array.ndim != wide or array.dtype.kind not in kinds or 0 in array.shape[1:]:
        raise RawlsError(
            f"{path}: scores must be numbers of the shape (nodes, classes) and predicted classes "
            f"of the shape (nodes,), they are {array.dtype} of the shape {array.shape}"
        )
    node, split = archive.first(NODE_KEYS), archive.first(("split",))
    if node is not None and node.dtype.kind not in "iufU":
        raise RawlsError(f"{path}: the node ids are {node.dtype}: give whole numbers or text")
    if node is not None and node.shape != array.shape[:1]:
        raise RawlsError(
            f"{path} has node ids of the shape {node.shape} for {len(array):,} predictions: give "
            f"one id for each, of the shape ({len(array)},)"
        )
    if key is None:
        names, found = ["predicted"], PredictionColumns(None, predicted=0)
    else:
        names = [f"{key}[:, {number}]" for number in range(array.shape[1])]
        found = PredictionColumns(None, scores=list(range(array.shape[1])))
        found.kind = None if key == "scores" else key
    beside = []
    if node is not None:
        found.node = len(names)
        names.append("node")
        beside.append(node)
    if split is not None and split.shape == array.shape[:1]:
        found.split = len(names)
        names.append("split")
        beside.append(split)
    return _ArchiveTable(path, names, array, beside), found


def _list_columns(path: Path) -> list[int]:
    """Which columns of a Parquet file hold lists of numbers; other nested ones are refused."""
    from pyarrow import types as arrow

    table, found = ParquetTable(path), []
    for place, kind in enumerate(table.types):
        if not arrow.is_nested(kind):
            continue
        is_list = arrow.is_list(kind) or arrow.is_large_list(kind) or arrow.is_fixed_size_list(kind)
        if not is_list or not (
            arrow.is_floating(kind.value_type) or arrow.is_integer(kind.value_type)
        ):
            raise RawlsError(
                f"{path}: the column '{table.names[place]}' holds {kind}: give a column of numbers "
                "for each class, or one column of lists of numbers"
            )
        found.append(place)
    return found
