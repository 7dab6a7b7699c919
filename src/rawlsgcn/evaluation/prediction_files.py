"""Predictions in files: .csv, .tsv, .parquet or .npz, made anywhere and read in chunks.

A row is a node: its id, and the predicted class or a score (probability or logit) of each class.
Only the current chunk is in memory, so that a file of many gigabytes can be read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._core.errors import RawlsError, reading
from ..graphs.readers.arrays import Archive
from ..graphs.readers.table_formats import (
    SEPARATORS,
    TABLES,
    TEXTS,
    ParquetTable,
    is_parquet,
    leading_comments,
)
from ..graphs.readers.tables import numbers_of, read_header
from .prediction_columns import PredictionColumns, find_columns, has_header, stacked

Array = npt.NDArray[Any]
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


@dataclass(frozen=True)
class FileChunk:
    """Some rows: ``ids`` as in the file, and ``predicted`` (rows,) or ``scores`` (rows, classes).

    ``first`` is the number of the first row, counted from 0. Rows without ids (None) are those of
    the nodes in their order.
    """

    first: int
    ids: pd.Series[Any] | None
    predicted: Array | None
    scores: Array | None


@dataclass(frozen=True)
class SplitChunk:
    """Some rows: ``ids`` as in :class:`FileChunk`, and the words of the column ``split``."""

    first: int
    ids: pd.Series[Any] | None
    words: pd.Series[Any]


class PredictionFile:
    """A file of predictions, which may be read more than once.

    Args:
        path: A .csv, .tsv, .parquet or .npz file; docs/audit.md lists the names of its columns.
        text_ids: Whether the node ids of the graph are text.
        class_names: The names of the classes in their order, where the labels are words.

    Raises:
        RawlsError: If there is no such file or a column is missing.

    Attributes:
        name: The name of the model: that of the file, or of its folder.
        source: The path as it was given.
        named_format: "probabilities" or "logits" where the names of the columns say so.
        has_split: Whether a column or array says which nodes train, validate and test.
    """

    def __init__(
        self, path: str | Path, text_ids: bool, class_names: Sequence[str] | None = None
    ) -> None:
        self.path = Path(path).expanduser()
        # 'train --out' calls every file predictions.csv: then the folder tells them apart.
        named = self.path.stem != "predictions" or not self.path.parent.name
        self.name = self.path.stem if named else self.path.parent.name
        self.source = str(path)
        if not os.path.isfile(self.path):  # Path.is_file raises on a name that is too long
            what = "is a folder, not a file" if os.path.isdir(self.path) else "does not exist"
            raise RawlsError(f"{path} {what}")
        suffix = self.path.suffix.lower()
        if suffix not in FORMATS:
            raise RawlsError(f"{path}: predictions are read from {', '.join(FORMATS)} files")
        self._text_ids = text_ids
        self._class_names = None if class_names is None else list(class_names)
        self.named_format: str | None = None
        self._is_archive = suffix == ".npz"
        self._headed = False
        self.has_split = False
        with reading(self.path, "predictions"):
            if self._is_archive:
                self._open_archive()
            else:
                self._open_table()

    def row(self, index: int) -> str:
        """Name a row for an error message."""
        if self.path.suffix.lower() in (*SEPARATORS, *TEXTS):
            before = leading_comments(self.path) + self._headed
            return f"{self.path.name}, line {index + 1 + before}"
        return f"{self.path.name}, row {index} (counted from 0)"

    def chunks(self) -> Iterator[FileChunk]:
        """Read the rows from the first to the last, some at a time."""
        with reading(self.path, "predictions"):
            yield from self._array_chunks() if self._is_archive else self._table_chunks()

    def split_chunks(self) -> Iterator[SplitChunk]:
        """Read which nodes train, validate and test, some rows at a time."""
        with reading(self.path, "predictions"):
            if self._is_archive:
                ids = None if self._node is None else pd.Series(self._node)
                yield SplitChunk(0, ids, pd.Series(self._split_words, dtype=object))
                return
            node, split, first = self._columns.node, self._columns.split, 0
            assert split is not None
            text = [split, node] if self._text_ids else [split]
            for frame in self._header.chunks(_CELLS, text, only=sorted({node, split})):
                yield SplitChunk(first, frame[node], frame[split])
                first += len(frame)

    # Tables -------------------------------------------------------------------------------------

    def _open_table(self) -> None:
        self._header = read_header(self.path, has_header, _COLUMNS)
        self._headed = self._header.names is not None
        lists = _list_columns(self.path) if is_parquet(self.path) else []
        self._columns: PredictionColumns = find_columns(self._header, lists, self._class_names)
        self.named_format = self._columns.kind
        self.has_split = self._columns.split is not None
        self._classes_in_list: int | None = None

    def _table_chunks(self) -> Iterator[FileChunk]:
        columns, first = self._columns, 0
        rows = max(1000, _CELLS // (2 + len(columns.scores)))
        rows = rows if columns.score_list is None else _LISTS
        for frame in self._header.chunks(rows, [columns.node] if self._text_ids else ()):
            if frame.shape[1] != self._header.width:
                raise RawlsError(
                    f"{self.row(first)} has {frame.shape[1]} cells, but the first line has "
                    f"{self._header.width}: give every row a cell for each column"
                )
            if not len(frame):
                continue
            # The class of the largest score is what counts; a column of classes beside it is not.
            predicted = scores = None
            if columns.score_list is not None:
                scores = self._listed(frame[columns.score_list], first)
            elif columns.scores:
                scores = self._numbers(frame, columns.scores, first)
            else:
                assert columns.predicted is not None
                predicted = self._classes(frame, columns.predicted, first)
            yield FileChunk(first, frame[columns.node], predicted, scores)
            first += len(frame)
        if first == 0:
            raise RawlsError(f"{self.path} is empty")

    def _classes(self, frame: pd.DataFrame, column: int, first: int) -> Array:
        """The predicted classes as numbers; words are those that the labels have."""
        cells = frame[column]
        if self._class_names is not None and not pd.api.types.is_numeric_dtype(cells.dtype):
            numbers = {name: number for number, name in enumerate(self._class_names)}
            texts = cells.astype(object).map(lambda cell: str(cell).strip())
            frame = pd.DataFrame({column: texts.map(lambda text: numbers.get(text, text))})
        return self._numbers(frame, [column], first)[:, 0]

    def _listed(self, column: pd.Series[Any], first: int) -> Array:
        values = stacked(column, self._classes_in_list, lambda row: self.row(first + row))
        self._classes_in_list = values.shape[1]
        return values

    def _numbers(self, frame: pd.DataFrame, columns: list[int], first: int) -> Array:
        values = np.column_stack([numbers_of(frame[index]) for index in columns])
        wrong = np.isnan(values)
        if wrong.any():
            row, place = np.unravel_index(int(wrong.argmax()), wrong.shape)
            value = frame[columns[place]].iloc[row]
            empty = value is None or value is pd.NA or value is pd.NaT or value != value
            said = "is empty or NaN" if empty else f"is '{value}'"
            raise RawlsError(
                f"{self.row(first + int(row))}, {self._header.column(columns[place])} {said}: "
                f"every predicted node needs {self._expected()}; leave out the row of one without "
                "them"
            )
        return values

    def _expected(self) -> str:
        if self._class_names is None or self._columns.scores:
            return "numbers"
        some = ", ".join(self._class_names[:5])
        return f"one of the classes of the labels ({some}{', …' * (len(self._class_names) > 5)})"

    # Arrays -------------------------------------------------------------------------------------

    def _open_archive(self) -> None:
        archive = Archive(self.path)
        self._node = archive.first(NODE_KEYS)
        # Where there are scores, the class of the largest is what counts.
        key = next((key for key in SCORE_KEYS if key in archive.keys), None)
        self._of_classes = key is None
        self._array = archive.first(PREDICTED_KEYS) if key is None else archive[key]
        self.named_format = None if key == "scores" else key
        if self._array is None:
            raise RawlsError(
                f"{self.path} has none of the keys {', '.join((*SCORE_KEYS, *PREDICTED_KEYS))}"
            )
        if self._of_classes and self._array.dtype.kind == "U" and self._array.ndim == 1:
            self._array = self._named_classes(self._array)
        expected = 1 if self._of_classes else 2
        if self._array.ndim != expected or self._array.dtype.kind not in "biuf":
            raise RawlsError(
                f"{self.path}: scores must be numbers of the shape (nodes, classes) and predicted "
                f"classes of the shape (nodes,), they are {self._array.dtype} of the shape "
                f"{self._array.shape}"
            )
        if self._node is not None and self._node.dtype.kind not in "iufU":
            raise RawlsError(
                f"{self.path}: the node ids are {self._node.dtype}: give whole numbers or text"
            )
        if self._node is not None and self._node.shape != self._array.shape[:1]:
            raise RawlsError(
                f"{self.path} has node ids of the shape {self._node.shape} for "
                f"{len(self._array):,} predictions: give one id for each, of the shape "
                f"({len(self._array)},)"
            )
        if not len(self._array):
            raise RawlsError(f"{self.path} is empty")
        split = archive.first(("split",))
        if split is not None and split.shape == self._array.shape[:1]:
            self._split_words, self.has_split = split.tolist(), True

    def _array_chunks(self) -> Iterator[FileChunk]:
        assert self._array is not None
        wide = 1 if self._of_classes else self._array.shape[1]
        rows = max(1000, _CELLS // max(wide, 1))
        for first in range(0, len(self._array), rows):
            values = self._array[first : first + rows].astype(np.float64)
            bad = np.isnan(values) if self._of_classes else np.isnan(values).any(1)
            if bad.any():
                raise RawlsError(f"{self.row(first + int(bad.argmax()))} is NaN: fill it in")
            ids = None if self._node is None else pd.Series(self._node[first : first + rows])
            predicted, scores = (values, None) if self._of_classes else (None, values)
            yield FileChunk(first, ids, predicted, scores)

    def _named_classes(self, words: Array) -> Array:
        """Predicted classes as numbers, where they are the words that the labels have."""
        known = {name: number for number, name in enumerate(self._class_names or ())}
        numbers = pd.Series(words.tolist(), dtype=object).map(known)
        if numbers.isna().any():
            row = int(numbers.isna().to_numpy().argmax())
            raise RawlsError(
                f"{self.row(row)} is '{words[row]}', which is none of the classes of the labels"
            )
        return numbers.to_numpy(dtype=np.float64)


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
