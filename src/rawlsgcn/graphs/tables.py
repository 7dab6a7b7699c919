"""Tables the user gives as .csv, .tsv or .parquet, read by column without a loop over rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..errors import RawlsError, missing_extra

Array = NDArray[Any]
HeaderRule = Callable[[list[str]], bool]

SEPARATORS = {".csv": ",", ".tsv": "\t"}
TABLES = (*SEPARATORS, ".parquet")
ID_NAMES = frozenset({"id", "ids", "node", "nodes", "node_id", "nodeid", "name", "index"})


@dataclass
class Table:
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

    def find(self, names: set[str]) -> int | None:
        """The first column with one of these names, in upper or lower case."""
        for index, name in enumerate(self.names or []):
            if name.strip().lower() in names:
                return index
        return None

    def has_text_ids(self, index: int) -> bool:
        """Whether the ids of a column are text, that is, not all of them whole numbers."""
        column = self.frame[index]
        empty = np.flatnonzero(column.isna().to_numpy())
        if len(empty):
            raise RawlsError(f"{self.row(int(empty[0]))}: the id in {self.column(index)} is empty")
        return column.dtype.kind not in "iu" or column.dtype == np.uint64

    def ids(self, index: int, as_text: bool) -> pd.Series[Any]:
        """A column of ids, as whole numbers or exactly as written: 007 and 7 are two texts."""
        column = self.frame[index]
        if not as_text:
            return column.astype(np.int64)
        if pd.api.types.is_numeric_dtype(column.dtype) and self.path.suffix.lower() != ".parquet":
            column = _read_text(self.path, self.names is not None, usecols=[index], dtype=str)[
                index
            ]
        return column.astype(str)

    def numbers(self, columns: list[int]) -> Array:
        """Columns as one float or integer matrix; a text cell is named in the error."""
        for index in columns:
            if not pd.api.types.is_numeric_dtype(self.frame[index].dtype):
                self._refuse_text(index)
        matrix = self.frame[columns].to_numpy()
        if matrix.dtype.kind in "biuf":
            return matrix
        return self.frame[columns].to_numpy(dtype=np.float64, na_value=np.nan)

    def _refuse_text(self, index: int) -> None:
        column = self.frame[index]
        wrong = pd.to_numeric(column, errors="coerce").isna() & column.notna()
        row = int(np.flatnonzero(wrong.to_numpy())[0]) if wrong.any() else 0
        raise RawlsError(
            f"{self.row(row)}, {self.column(index)}: '{column.iloc[row]}' is not a number"
        )


def read_table(path: Path, has_header: HeaderRule) -> Table:
    """Read a table; for text files ``has_header`` judges the cells of the first line."""
    if path.suffix.lower() == ".parquet":
        return _read_parquet(path)
    first = [str(cell) for cell in _read_text(path, False, nrows=1, dtype=str).iloc[0].fillna("")]
    header = has_header(first)
    return Table(path, _read_text(path, header), first if header else None)


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _read_text(path: Path, header: bool, **options: Any) -> pd.DataFrame:
    """``pandas.read_csv`` where only an empty cell is missing: NA and null may be ids."""
    try:
        frame: pd.DataFrame = pd.read_csv(
            path,
            sep=SEPARATORS[path.suffix.lower()],
            header=None,
            skiprows=int(header),
            keep_default_na=False,
            na_values=[""],
            low_memory=False,
            skipinitialspace=True,
            encoding="utf-8-sig",
            **options,
        )
    except FileNotFoundError as error:
        raise RawlsError(f"there is no file {path}") from error
    except pd.errors.EmptyDataError as error:
        raise RawlsError(f"{path} is empty") from error
    except UnicodeDecodeError as error:
        raise RawlsError(f"{path} is not a text table: it holds bytes that are no text") from error
    except (pd.errors.ParserError, OSError, ValueError) as error:
        reason = " ".join(str(error).split()).removeprefix("Error tokenizing data. ")
        raise RawlsError(f"{path} cannot be read as a table: {reason}") from error
    return frame


def _read_parquet(path: Path) -> Table:
    try:
        import pyarrow
    except ImportError as error:
        raise missing_extra(f"reading {path.name}", "parquet") from error
    try:
        frame = pd.read_parquet(path, engine="pyarrow")
    except FileNotFoundError as error:
        raise RawlsError(f"there is no file {path}") from error
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise RawlsError(f"{path} cannot be read as parquet: {reason}") from error
    if not isinstance(frame.index, pd.RangeIndex):
        frame = frame.reset_index()
    if frame.empty:
        raise RawlsError(f"{path} is empty")
    names = [str(name) for name in frame.columns]
    frame.columns = pd.RangeIndex(len(names))
    return Table(path, frame, names)
