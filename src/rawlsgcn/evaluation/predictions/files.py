"""Predictions made anywhere, read from files a part at a time: .csv, .tsv, .parquet or .npz.

A row is a node: its id, and the predicted class or a score (probability or logit) of every class.
Nothing is held but the part at hand, so that a file of many gigabytes is only slow.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..._core.errors import RawlsError, reading
from ...graphs.readers.arrays import Archive
from ...graphs.readers.tables import (
    SEPARATORS,
    SURE_ID_NAMES,
    UNNAMED,
    first_line,
    is_number,
    open_parquet,
    read_chunks,
)
from .parquet_lists import list_columns, stacked

Array = npt.NDArray[Any]
FORMATS = (*SEPARATORS, ".parquet", ".npz")
CLASS_NAMES = frozenset(
    {
        "predicted",
        "prediction",
        "predictions",
        "pred",
        "y_pred",
        "predicted_class",
        "class",
        "label",
    }
)
_CELLS = 1 << 18
"""Cells read at once: 2 MB as numbers."""
_LISTS = 4096
"""Rows read at once where their width is not known beforehand."""
_COLUMNS = 50_000
"""Columns of a table at most: pandas takes tens of microseconds for each, in every part."""
_NUMBERED = re.compile(r"^(.*?)[ _.\-]?(\d{1,9})$")
_PARQUET_INDEX = re.compile(r"__index_level_\d+__")
"""What pandas calls an index without a name in a .parquet file."""
_FORM_OF_NAME = {
    "probabilities": re.compile(r"^(p|pr|prob|probs|proba|probability|probabilities|softmax)$"),
    "logits": re.compile(r"^(logit|logits|z)$"),
}


@dataclass(frozen=True)
class Part:
    """Some rows: ``ids`` as in the file, and ``predicted`` (rows,) or ``scores`` (rows, classes).

    ``first`` is the number of the first row, counted from 0. Rows without ids (None) are those of
    the nodes in their order.
    """

    first: int
    ids: pd.Series[Any] | None
    predicted: Array | None
    scores: Array | None


class PredictionFile:
    """A file of predictions, which may be gone through more than once."""

    def __init__(self, path: str | Path, text_ids: bool) -> None:
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
        self.named_form: str | None = None
        with reading(self.path, "predictions"):
            if suffix == ".npz":
                self._open_archive()
            else:
                self._open_table()

    def row(self, index: int) -> str:
        """Where a row stands, in the words of an error message."""
        if self.path.suffix.lower() in SEPARATORS:
            return f"{self.path.name}, line {index + 1 + self._header}"
        return f"{self.path.name}, row {index} (counted from 0)"

    def parts(self) -> Iterator[Part]:
        """The rows from the first to the last, some at a time."""
        with reading(self.path, "predictions"):
            if self.path.suffix.lower() == ".npz":
                yield from self._array_parts()
            else:
                yield from self._table_parts()

    # Tables -------------------------------------------------------------------------------------

    def _table_parts(self) -> Iterator[Part]:
        width = 1 + len(self._scores) + (self._class is not None)
        rows, first = max(1000, _CELLS // width) if self._list is None else _LISTS, 0
        parquet = self.path.suffix.lower() == ".parquet"
        for frame in self._parquet(rows) if parquet else self._text(rows):
            if frame.shape[1] != len(self._columns):
                raise RawlsError(
                    f"{self.row(first)} has {frame.shape[1]} cells, but the first line has "
                    f"{len(self._columns)}: give every row a cell for each column"
                )
            if not len(frame):
                continue
            predicted = None if self._class is None else self._numbers(frame, [self._class], first)
            scores = self._numbers(frame, self._scores, first) if self._scores else None
            if self._list is not None:
                scores = self._listed(frame[self._list], first)
            # The class of the largest score is what counts; a column of classes beside it is not.
            predicted = predicted[:, 0] if predicted is not None and scores is None else None
            yield Part(first, frame[self._id], predicted, scores)
            first += len(frame)
        if first == 0:
            raise RawlsError(f"{self.path} is empty")

    def _open_table(self) -> None:
        lists: list[int] = []
        if self.path.suffix.lower() == ".parquet":
            schema = open_parquet(self.path).schema_arrow
            cells, self._header = [str(name) for name in schema.names], True
            lists = list_columns(schema, self.path)
        else:
            cells = first_line(self.path)
            named = cells[0].strip().lower() in SURE_ID_NAMES | UNNAMED
            self._header = named or not all(is_number(cell) for cell in cells[1:] or cells)
        if not 0 < len(cells) <= _COLUMNS:
            raise RawlsError(
                f"{self.path} has {len(cells):,} columns: give the node id and a score of every "
                f"class, of {_COLUMNS:,} at most; .npz holds more"
            )
        names = [cell.strip().lower() for cell in cells] if self._header else []
        self._columns = cells if self._header else [f"{i + 1}" for i in range(len(cells))]
        self._id = self._id_column(names)
        others = [
            i
            for i in range(len(cells))
            if i != self._id and not (self._header and _is_unnamed(names[i]))
        ]
        self._class = next(
            (i for i in others if names and i not in lists and names[i] in CLASS_NAMES), None
        )
        self._scores = [i for i in others if i != self._class]
        self._list: int | None = None
        self._wide: int | None = None
        if lists:
            self._take_list(lists, names)
            return
        if self._class is None and len(self._scores) == 1:
            self._class, self._scores = self._scores[0], []
        if not self._scores and self._class is None:
            raise RawlsError(
                f"{self.path} has one column: give the node id first and the predicted class or "
                "a probability of every class after it"
            )
        if self._header:
            self._refuse_repeats(names)
            self._read_names(names)

    def _take_list(self, lists: list[int], names: list[str]) -> None:
        """Take the scores from one column of lists, which then is the only one of scores."""
        if self._scores != lists or len(lists) > 1:
            columns = ", ".join(f"'{self._columns[i]}'" for i in sorted({*self._scores, *lists}))
            raise RawlsError(
                f"{self.path}: of the columns {columns} only one can hold the scores: keep the "
                "node ids and one column of lists"
            )
        self._list, self._scores = lists[0], []
        for form, pattern in _FORM_OF_NAME.items():
            if pattern.match(names[self._list]):
                self.named_form = form

    def _listed(self, column: pd.Series[Any], first: int) -> Array:
        values = stacked(column, self._wide, lambda row: self.row(first + row))
        self._wide = values.shape[1]
        return values

    def _refuse_repeats(self, names: list[str]) -> None:
        counts = Counter(names)
        again = next((name for name in names if name not in UNNAMED and counts[name] > 1), None)
        if again is not None:
            raise RawlsError(
                f"{self.path} has more than one column '{again}': keep one, or rename the others"
            )

    def _id_column(self, names: list[str]) -> int:
        if not names:
            return 0
        sure = next((i for i, name in enumerate(names) if name in SURE_ID_NAMES), None)
        if sure is None:  # of a DataFrame whose index are the ids
            sure = next((i for i, name in enumerate(names) if _PARQUET_INDEX.fullmatch(name)), None)
        if sure is not None:
            return sure
        prefix = _NUMBERED.match(names[0])
        if names[0] in CLASS_NAMES or (
            prefix and any(form.match(prefix[1]) for form in _FORM_OF_NAME.values())
        ):
            raise RawlsError(
                f"{self.path} has no column of node ids: call it 'node' and put it first"
            )
        return 0

    def _read_names(self, names: list[str]) -> None:
        """The classes' order and, maybe, what kind of scores these are, from the header."""
        found = [_NUMBERED.match(names[i]) for i in self._scores]
        if not found or not all(found):
            return
        numbers = [int(match[2]) for match in found if match]
        prefixes = {match[1] for match in found if match}
        if sorted(numbers) == list(range(1, len(numbers) + 1)):
            raise RawlsError(
                f"{self.path}: the columns are numbered from 1, but classes are numbered from 0: "
                f"rename '{self._columns[self._scores[0]]}' and the others"
            )
        if sorted(numbers) == list(range(len(numbers))):
            self._scores = [i for _, i in sorted(zip(numbers, self._scores, strict=True))]
        elif len(prefixes) == 1:
            columns = ", ".join(self._columns[i] for i in self._scores[:12])
            more = ", …" if len(self._scores) > 12 else ""
            raise RawlsError(
                f"{self.path}: the columns {columns}{more} are not numbered 0 to "
                f"{len(numbers) - 1}, each once: give one column for every class"
            )
        for form, pattern in _FORM_OF_NAME.items():
            if len(prefixes) == 1 and pattern.match(next(iter(prefixes))):
                self.named_form = form

    def _text(self, rows: int) -> Iterator[pd.DataFrame]:
        as_text = {self._id: str} if self._text_ids else None
        yield from read_chunks(self.path, self._header, rows, dtype=as_text)

    def _numbers(self, frame: pd.DataFrame, columns: list[int], first: int) -> Array:
        values = np.column_stack([numbers_of(frame[index]) for index in columns])
        wrong = np.isnan(values)
        if wrong.any():
            row, place = np.unravel_index(int(wrong.argmax()), wrong.shape)
            value = frame[columns[place]].iloc[row]
            empty = value is None or value is pd.NA or value is pd.NaT or value != value
            said = "is empty or NaN" if empty else f"is '{value}'"
            raise RawlsError(
                f"{self.row(first + int(row))}, column '{self._columns[columns[place]]}' {said}: "
                "every predicted node needs numbers; leave out the row of one without them"
            )
        return values

    def _parquet(self, rows: int) -> Iterator[pd.DataFrame]:
        for batch in open_parquet(self.path).iter_batches(batch_size=rows):
            # What pandas wrote about itself would turn columns into an index.
            frame = batch.to_pandas(ignore_metadata=True)
            frame.columns = pd.RangeIndex(frame.shape[1])
            yield frame

    # Arrays -------------------------------------------------------------------------------------

    def _open_archive(self) -> None:
        self._header = False
        archive = Archive(self.path)
        self._node = archive.first(("node", "nodes", "node_ids", "ids"))
        classes = archive.first(("predicted", "prediction", "classes"))
        self._array, self._is_class = classes, True
        for key in ("probabilities", "logits", "scores"):
            if key in archive.keys:
                self._array, self._is_class = archive[key], False
                self.named_form = None if key == "scores" else key
                break
        if self._array is None:
            raise RawlsError(
                f"{self.path} has none of the keys probabilities, logits, scores and predicted"
            )
        if self._array.ndim != (1 if self._is_class else 2) or self._array.dtype.kind not in "biuf":
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

    def _array_parts(self) -> Iterator[Part]:
        assert self._array is not None
        wide = 1 if self._is_class else self._array.shape[1]
        rows = max(1000, _CELLS // max(wide, 1))
        for first in range(0, len(self._array), rows):
            values = self._array[first : first + rows].astype(np.float64)
            bad = np.isnan(values) if self._is_class else np.isnan(values).any(1)
            if bad.any():
                raise RawlsError(f"{self.row(first + int(bad.argmax()))} is NaN: fill it in")
            ids = None if self._node is None else pd.Series(self._node[first : first + rows])
            predicted, scores = (values, None) if self._is_class else (None, values)
            yield Part(first, ids, predicted, scores)


def _is_unnamed(name: str) -> bool:
    return name in UNNAMED or _PARQUET_INDEX.fullmatch(name) is not None


def numbers_of(column: pd.Series[Any]) -> npt.NDArray[np.float64]:
    """A column as float64, NaN where a cell is no number; dates and times are none."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    if column.dtype.kind in "mM":
        return np.full(len(column), np.nan)
    numbers = pd.to_numeric(column.astype(object), errors="coerce")
    return numbers.to_numpy(dtype=np.float64, na_value=np.nan)
