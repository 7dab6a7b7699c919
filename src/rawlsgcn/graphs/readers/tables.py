"""Tables the user gives as .csv, .tsv or .parquet, read by column without a loop over rows."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Callable, Collection, Iterator, Set
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..._core.errors import RawlsError, missing_extra, reading
from .arrays import LARGEST_UNPACKED, MOST_CELLS, SMALL_FILE

Array = NDArray[Any]
HeaderRule = Callable[[list[str], Callable[[int], bool]], bool]
"""Judges the cells of the first line; it may ask whether a column is all numbers below it."""

SEPARATORS = {".csv": ",", ".tsv": "\t"}
TABLES = (*SEPARATORS, ".parquet")
SURE_ID_NAMES = frozenset({"id", "ids", "node", "node_id", "nodeid"})
ID_NAMES = SURE_ID_NAMES | {"nodes", "name", "index"}
UNNAMED = frozenset({"", "unnamed: 0"})
"""What pandas calls an index that it writes, or reads back, as the first column."""
_SAMPLE = 100
_MOST_COLUMNS = 20_000
"""pandas takes its time for every column, also of a single row."""
_TEXT = frozenset({"string", "integer", "mixed-integer", "boolean", "empty", "floating", "decimal"})
"""The kinds of cells that may be ids, as pandas calls them: not dates, lists or bytes."""


@dataclass
class TableFile:
    """A table whose columns are numbered from 0; ``names`` is its header, if it has one."""

    path: Path
    frame: pd.DataFrame
    names: list[str] | None

    def row(self, index: int) -> str:
        """Where a row stands, in the words of an error message."""
        if self.path.suffix.lower() == ".parquet":
            return f"{self.path.name}, row {index} (counted from 0)"
        return f"{self.path.name}, line {index + 1 + (self.names is not None)}"

    def column(self, index: int) -> str:
        return f"column '{self.names[index]}'" if self.names else f"column {index + 1}"

    def find(self, names: Set[str], apart: Collection[int] = ()) -> int | None:
        """The first column with one of these names, in upper or lower case; not one ``apart``."""
        for index, name in enumerate(self.names or []):
            if name.strip().lower() in names and index not in apart:
                return index
        return None

    @property
    def has_unnamed_index(self) -> bool:
        """Whether the first column is the index of a pandas DataFrame that had no name."""
        return self.names is not None and self.names[0].strip().lower() in UNNAMED

    def id_column(self) -> int:
        """The column of the node ids: the one that the header calls so, else the first."""
        if self.names is None or self.names[0].strip().lower() in ID_NAMES:
            return 0
        return self.find(ID_NAMES if self.has_unnamed_index else SURE_ID_NAMES) or 0

    def has_text_ids(self, index: int) -> bool:
        """Whether the ids of a column are text, that is, not all of them whole numbers."""
        column = self.frame[index]
        self._refuse_empty(index, column.isna())
        return column.dtype.kind not in "iu" or column.dtype == np.uint64

    def ids(self, index: int, as_text: bool) -> pd.Series[Any]:
        """A column of ids, as whole numbers or as written: 007 and 7 are two texts.

        Only blanks around a text go, which nobody sees.
        """
        column = self.frame[index]
        if not as_text:
            if column.dtype.kind not in "iu" or column.dtype == np.uint64:
                self._refuse(index, "a whole number, as the graph's node ids are", _is_whole)
            return column.astype(np.int64)
        if column.dtype.kind == "O" and pd.api.types.infer_dtype(column) not in _TEXT:
            self._refuse(index, "a text or a whole number", lambda cell: isinstance(cell, str))
        if pd.api.types.is_numeric_dtype(column.dtype) and self.path.suffix.lower() != ".parquet":
            column = _read_text(self.path, self.names is not None, usecols=[index], dtype=str)[
                index
            ]
        texts = column.astype(str).str.strip()
        self._refuse_empty(index, texts == "")
        return texts

    def _refuse_empty(self, index: int, empty: pd.Series[Any]) -> None:
        if empty.any():
            row = int(empty.to_numpy().argmax())
            raise RawlsError(f"{self.row(row)}: the id in {self.column(index)} is empty")

    def numbers(self, columns: list[int]) -> Array:
        """Columns as one float or integer matrix; a text cell is named in the error."""
        for index in columns:
            if not pd.api.types.is_numeric_dtype(self.frame[index].dtype):
                self._refuse(index, "a number", _is_number_or_empty)
        matrix = self.frame[columns].to_numpy()
        if matrix.dtype.kind in "biuf":
            return matrix
        return self.frame[columns].to_numpy(dtype=np.float64, na_value=np.nan)

    def _refuse(self, index: int, expected: str, holds: Callable[[Any], bool]) -> NoReturn:
        column = self.frame[index]
        row = next((row for row, cell in enumerate(column) if not holds(cell)), 0)
        raise RawlsError(
            f"{self.row(row)}, {self.column(index)}: '{column.iloc[row]}' is not {expected}"
        )


def read_table(path: Path, has_header: HeaderRule) -> TableFile:
    """Read a table; for text files ``has_header`` judges whether the first line is a header."""
    if path.suffix.lower() == ".parquet":
        return _read_parquet(path)
    _require_width(path, len(first_line(path)))
    sample = _read_text(path, False, nrows=_SAMPLE, dtype=str).fillna("")
    first = [str(cell) for cell in sample.iloc[0]]
    if has_header(first, lambda index: len(sample) > 1 and all(map(is_number, sample[index][1:]))):
        frame = _read_text(path, True)
        # A text further down than the sample may show that the first line was no header.
        if has_header(first, lambda index: pd.api.types.is_numeric_dtype(frame[index].dtype)):
            if frame.shape[1] != len(first):
                raise RawlsError(
                    f"{path} has {len(first)} columns in its header and {frame.shape[1]} below it"
                )
            return TableFile(path, frame, first)
    return TableFile(path, _read_text(path, False), None)


def is_index_header(cells: list[str]) -> bool:
    """Whether this is the first line of ``DataFrame.to_csv()``, which writes the index too."""
    rest = [cell.strip() for cell in cells[1:]]
    if cells[0].strip().lower() not in UNNAMED or not rest:
        return False
    return rest == [str(i) for i in range(len(rest))] or not any(map(is_number, rest))


def is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (ValueError, TypeError, OverflowError):
        return False
    return True


def _is_number_or_empty(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str | int | float | np.number) and is_number(cell))


def _is_whole(cell: Any) -> bool:
    """Whether a cell of any kind is a whole number that fits 64 bits."""
    return is_number(cell) and float(cell).is_integer() and abs(float(cell)) < 2**63


def read_chunks(path: Path, header: bool, rows: int, **options: Any) -> Iterator[pd.DataFrame]:
    """The rows of a text table, ``rows`` at a time, so that a large file is never held whole."""
    with (
        _as_table(path),
        pd.read_csv(path, chunksize=rows, **_options(path, header, options)) as all_,
    ):
        yield from all_


def first_line(path: Path) -> list[str]:
    """The cells of the first line, as text; the second line may not have more of them.

    pandas takes its time for each column, and memory.
    """
    _refuse_wide_text(path)
    separator = SEPARATORS[path.suffix.lower()]
    with _as_table(path), path.open(encoding="utf-8-sig", newline="") as file:
        lines = filter(None, csv.reader(file, delimiter=separator, skipinitialspace=True))
        first, second = next(lines, None), next(lines, [])
    if first is None:
        raise RawlsError(f"{path} is empty")
    if len(second) > len(first):
        raise RawlsError(
            f"{path}, line 2 has {len(second)} cells, but the first line has {len(first)}: give "
            "every row a cell for each column"
        )
    return first


def _read_text(path: Path, header: bool, **options: Any) -> pd.DataFrame:
    with _as_table(path):
        frame: pd.DataFrame = pd.read_csv(path, **_options(path, header, options))
    return frame


def _options(path: Path, header: bool, more: dict[str, Any]) -> dict[str, Any]:
    """Of ``pandas.read_csv``, so that only an empty cell is missing: NA and null may be ids."""
    return {
        "sep": SEPARATORS[path.suffix.lower()],
        "header": None,
        "skiprows": int(header),
        "keep_default_na": False,
        "na_values": [""],
        "low_memory": False,
        "skipinitialspace": True,
        "encoding": "utf-8-sig",
        **more,
    }


@contextlib.contextmanager
def _as_table(path: Path) -> Iterator[None]:
    """Turn what pandas raises on a file that is no table into one sentence."""
    with reading(path, "a table"):
        try:
            yield
        except pd.errors.EmptyDataError as error:
            raise RawlsError(f"{path} is empty") from error
        except UnicodeDecodeError as error:
            raise RawlsError(f"{path} is not a table in UTF-8 text: save it as UTF-8") from error
        except pd.errors.ParserError as error:
            reason = str(error).removeprefix("Error tokenizing data. ")
            raise RawlsError(f"{path} cannot be read as a table: {reason}") from error


def _refuse_wide_text(path: Path) -> None:
    """UTF-16 without a mark passes for UTF-8, with a NUL beside every letter."""
    with path.open("rb") as file:
        if b"\0" in file.read(4096):
            raise RawlsError(
                f"{path} holds NUL bytes, as UTF-16 text or a foreign file does: save it as UTF-8"
            )


def _require_width(path: Path, columns: int) -> None:
    if columns > _MOST_COLUMNS:
        raise RawlsError(
            f"{path} has {columns:,} columns, more than the {_MOST_COLUMNS:,} that are read from a "
            "table: give the features as .npy or .npz"
        )


def open_parquet(path: Path) -> Any:
    """A ``pyarrow.parquet.ParquetFile`` that does not unpack to much more than its size."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise missing_extra(f"reading {path.name}", "parquet") from error
    with reading(path, "parquet"):
        file, size = pyarrow.parquet.ParquetFile(path), path.stat().st_size
        about = file.metadata
        cells = about.num_rows * max(about.num_columns, 1)
        groups = [about.row_group(i).total_byte_size for i in range(about.num_row_groups)]
        if size < SMALL_FILE and (cells > MOST_CELLS or sum(groups) > LARGEST_UNPACKED):
            raise RawlsError(
                f"{path} has {size:,} bytes and unpacks to {cells:,} cells of {sum(groups):,} "
                "bytes: write it without compression"
            )
        return file


def _read_parquet(path: Path) -> TableFile:
    file = open_parquet(path)
    with reading(path, "parquet"):
        _require_width(path, file.metadata.num_columns)
        frame = pd.read_parquet(path, engine="pyarrow")
        if not isinstance(frame.index, pd.RangeIndex):
            if frame.index.nlevels == 1 and frame.index.name is None:
                frame.index.name = ""
            frame = frame.reset_index(allow_duplicates=True)
        if frame.empty:
            raise RawlsError(f"{path} is empty")
        names = [str(name) for name in frame.columns]
        frame.columns = pd.RangeIndex(len(names))
        for index in frame.columns:
            valid = frame[index].first_valid_index()
            if valid is not None and isinstance(frame[index][valid], Decimal):
                frame[index] = _without_decimals(frame[index])
    return TableFile(path, frame, names)


def _without_decimals(column: pd.Series[Any]) -> pd.Series[Any]:
    """A database's decimals as int64 where all are whole (ids, labels), else as float64."""
    if column.notna().all() and all(value == int(value) for value in column):
        with contextlib.suppress(OverflowError):
            return column.map(int).astype(np.int64)
    return column.astype(np.float64)
