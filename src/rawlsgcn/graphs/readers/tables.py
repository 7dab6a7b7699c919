"""Tables in .csv, .tsv, .txt or .parquet files: whole for graphs, in chunks for predictions."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Set
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..._core.errors import RawlsError, reading
from .column_names import (
    COLUMN_NAMES,
    UNNAMED_COLUMNS,
    HeaderRule,
    is_number,
)
from .table_formats import (
    ParquetTable,
    first_lines,
    is_parquet,
    no_rows,
    read_text,
    require_width,
    text_chunks,
    text_format,
)

Array = NDArray[Any]
_CHUNK = 1 << 20
MOST_COLUMNS = 20_000
"""pandas needs its time for every column, also of a single row."""
_MISSING = frozenset({"nan", "na", "n/a", "<na>", "none", "null", "?", "-"})
"""Words for a number that is missing, in lower case."""
_TEXT = frozenset({"string", "integer", "mixed-integer", "boolean", "empty", "floating", "decimal"})
"""The kinds of cells that may be ids, as pandas calls them: not dates, lists or bytes."""


@dataclass
class TableHeader:
    """The columns of a table, numbered from 0; ``names`` are those of its header, if it has one."""

    path: Path
    names: list[str] | None
    width: int

    def row(self, index: int) -> str:
        """Name a row for an error message."""
        if is_parquet(self.path):
            return f"{self.path.name}, row {index} (counted from 0)"
        before = text_format(self.path).before + (self.names is not None)
        return f"{self.path.name}, line {index + 1 + before}"

    def column(self, index: int) -> str:
        """Name a column for an error message."""
        return f"column '{self.names[index]}'" if self.names else f"column {index + 1}"

    @cached_property
    def words(self) -> list[str]:
        """The names in lower case, as they are compared; none without a header."""
        return [name.strip().lower() for name in self.names or []]

    def find(self, names: Set[str], apart: Collection[int] = ()) -> int | None:
        """The first column with one of these names, in upper or lower case; not one ``apart``."""
        places = (i for i, word in enumerate(self.words) if word in names and i not in apart)
        return next(places, None)

    @property
    def has_unnamed_index(self) -> bool:
        """Whether the first column is the index of a pandas DataFrame that had no name."""
        return self.names is not None and self.words[0] in UNNAMED_COLUMNS

    @property
    def first_id(self) -> str:
        """The id in the first line of a table without a header; empty if it has one."""
        if self.names is not None:
            return ""
        first = read_text(self.path, False, nrows=1, usecols=[0], dtype=str).fillna("")
        return str(first.iloc[0, 0]).strip()

    def chunks(
        self, rows: int, text: Collection[int] = (), only: list[int] | None = None
    ) -> Iterator[pd.DataFrame]:
        """The rows, so many at a time; the columns in ``text`` exactly as they are written.

        ``only`` are the columns that are needed; others may be left out.
        """
        if is_parquet(self.path):
            return ParquetTable(self.path).chunks(rows, only)
        types = dict.fromkeys(text, str) or None
        return text_chunks(self.path, self.names is not None, rows, dtype=types, usecols=only)

    def require_rows(self) -> None:
        """Refuse a table without rows, or whose rows have fewer cells than its header."""
        frame = next(self.chunks(1), None)
        if frame is None:
            raise no_rows(self.path)
        _require_cells(self, frame)

    def tables(
        self, rows: int, text: Collection[int] = (), only: list[int] | None = None
    ) -> Iterator[TableFile]:
        """The rows as tables of so many each, whose errors name the rows of the file."""
        first = 0
        for frame in self.chunks(rows, text, only):
            yield TableFile(self.path, self.names, self.width, frame, first)
            first += len(frame)


@dataclass
class TableFile(TableHeader):
    """A whole table, or the rows of one from ``first`` on."""

    frame: pd.DataFrame
    first: int = 0

    def tables(
        self, rows: int, text: Collection[int] = (), only: list[int] | None = None
    ) -> Iterator[TableFile]:
        """The rows, all at once: they are in memory."""
        yield self

    def row(self, index: int) -> str:
        """Name a row for an error message."""
        return super().row(self.first + index)

    def has_text_ids(self, index: int) -> bool:
        """Whether the ids of a column are text, that is, not all of them whole numbers."""
        column = self.frame[index]
        self._refuse_empty(index, column.isna())
        return not _is_int64(column)

    def ids(self, index: int, as_text: bool) -> pd.Series[Any]:
        """A column of ids, as whole numbers or as written: 007 and 7 are two texts.

        Only blanks around a text go, which nobody sees.
        """
        column = self.frame[index]
        if not as_text:
            if not _is_int64(column):
                self._refuse(index, "a whole number, as the graph's node ids are", _is_whole)
            return column.astype(np.int64)
        if column.dtype.kind == "O" and pd.api.types.infer_dtype(column) not in _TEXT:
            self._refuse(index, "a text or a whole number", lambda cell: isinstance(cell, str))
        if _is_numeric(column) and not is_parquet(self.path):
            column = read_text(self.path, self.names is not None, usecols=[index], dtype=str)[index]
        texts = column.astype(str).str.strip()
        self._refuse_empty(index, texts == "")
        return texts

    def _refuse_empty(self, index: int, empty: pd.Series[Any]) -> None:
        if empty.any():
            row = int(empty.to_numpy().argmax())
            raise RawlsError(f"{self.row(row)}: the id in {self.column(index)} is empty")

    def numbers(self, columns: list[int], cure: str = "", fill_in: str = "") -> Array:
        """Columns as one float or integer matrix; a text cell is named in the error.

        ``cure`` is for text, ``fill_in`` for words such as NaN.
        """
        for index in columns:
            column = self.frame[index]
            # Numbers that pandas takes for text, of more than 64 bits, say, are numbers.
            if not (_is_numeric(column) or all(map(_is_number_or_empty, column))):
                self._refuse(index, "a number", _is_number_or_empty, cure, fill_in)
        matrix = self.frame[columns].to_numpy()
        if matrix.dtype.kind in "biuf":
            return matrix
        return self.frame[columns].to_numpy(dtype=np.float64, na_value=np.nan)

    def _refuse(
        self,
        index: int,
        expected: str,
        holds: Callable[[Any], bool],
        cure: str = "",
        fill_in: str = "",
    ) -> NoReturn:
        column = self.frame[index]
        row = next((row for row, cell in enumerate(column) if not holds(cell)), 0)
        cell = column.iloc[row]
        word = str(cell).strip().lower()
        cure = fill_in if word in _MISSING else cure
        end = f": {cure}" if cure else ""
        if word in COLUMN_NAMES:
            end = ", but the name of a column: the header must be the first line, and only there"
        raise RawlsError(f"{self.row(row)}, {self.column(index)}: '{cell}' is not {expected}{end}")


def read_header(
    path: Path, has_header: HeaderRule, most_columns: int = MOST_COLUMNS, *, whole: bool = False
) -> TableHeader:
    """Read the columns of a table whose rows are read later, with :meth:`TableHeader.chunks`.

    If the first lines do not say so, ``whole`` columns show whether there is a header.
    """
    if is_parquet(path):
        table = ParquetTable(path)
        require_width(path, table.num_columns, most_columns)  # also of those within others
        return TableHeader(path, table.names, len(table.names))
    sample = first_lines(path, most_columns)

    def numeric_sample(index: int) -> bool:
        return len(sample) > 1 and all(map(is_number, sample[index][1:]))

    def numeric_below(index: int) -> bool:
        frames = text_chunks(path, True, _CHUNK, usecols=[index])  # up to the first text
        return all(_is_numeric(frame[index]) for frame in frames)

    cells = sample.iloc[0].tolist()
    named = has_header(cells, numeric_sample)
    named = named and (not whole or has_header(cells, numeric_below))
    return TableHeader(path, cells if named else None, len(cells))


def read_table(path: Path, has_header: HeaderRule) -> TableFile:
    """Read a table; for text files ``has_header`` judges whether the first line is a header."""
    # A text further down than a sample may show that the first line was no header.
    names = read_header(path, has_header, whole=True).names
    with reading(path, "a table"):
        parquet = is_parquet(path)
        frame = ParquetTable(path).read() if parquet else read_text(path, names is not None)
    if frame.empty:
        raise no_rows(path)
    table = TableFile(path, names, frame.shape[1], frame)
    _require_cells(table, frame)
    return table


def _require_cells(table: TableHeader, below: pd.DataFrame) -> None:
    header, cells = len(table.names or ()), below.shape[1]
    if header not in (0, cells):
        raise RawlsError(f"{table.path} has {header} columns in its header and {cells} below it")


def _is_numeric(column: pd.Series[Any]) -> bool:
    return pd.api.types.is_numeric_dtype(column.dtype)


def _is_int64(column: pd.Series[Any]) -> bool:
    return column.dtype.kind in "iu" and column.dtype != np.uint64


def _is_number_or_empty(cell: Any) -> bool:
    if isinstance(cell, str):
        return is_number(cell) and "_" not in cell and not math.isnan(float(cell))
    return cell is None or (isinstance(cell, int | float | np.number) and is_number(cell))


def _is_whole(cell: Any) -> bool:
    """Whether a cell of any kind is a whole number that fits 64 bits."""
    return is_number(cell) and float(cell).is_integer() and abs(float(cell)) < 2**63


def numbers_of(column: pd.Series[Any]) -> NDArray[np.float64]:
    """A column as float64, NaN where a cell is no number; dates and times are none."""
    if _is_numeric(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    if column.dtype.kind in "mM":
        return np.full(len(column), np.nan)
    numbers = pd.to_numeric(column.astype(object), errors="coerce")
    return numbers.to_numpy(dtype=np.float64, na_value=np.nan)
