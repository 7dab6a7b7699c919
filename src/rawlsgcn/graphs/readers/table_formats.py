"""The formats of tables: text files by pandas, .parquet by pyarrow, whole or in chunks.

In .txt files the separator is found in the first line, and lines of comments may come before it.
"""

from __future__ import annotations

import contextlib
import gzip
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..._core.errors import RawlsError, missing_extra, reading
from .arrays import LARGEST_UNPACKED, MOST_CELLS, SMALL_FILE

SEPARATORS = {".csv": ",", ".tsv": "\t"}
BLANKS = r"\s+"
TEXTS = (".txt", ".edges", ".edgelist")
"""Text files separated by blanks, tabs, commas or semicolons, with comments at their beginning."""
TABLES = (*SEPARATORS, *TEXTS, ".parquet")
#: The lines of a text file, and about the cells in them, that show whether it has a header.
_SAMPLE, _SAMPLE_CELLS = 100, 1_000_000
_PARQUET_INDEX = re.compile(r"__index_level_\d+__")
"""What pandas calls an index without a name in a .parquet file."""


def is_parquet(path: Path) -> bool:
    """Whether the name of a table is that of a .parquet file."""
    return path.suffix.lower() == ".parquet"


def separator_name(path: Path) -> str:
    """What separates the cells of a table, for error messages."""
    return {".tsv": "tabs", ".csv": "commas"}.get(path.suffix.lower(), "blanks, tabs or commas")


class TextFormat(NamedTuple):
    """How a text file is written: the lines before its table, the first line, the separator."""

    before: int
    line: str
    separator: str


def text_format(path: Path) -> TextFormat:
    """Find the first line of a table; in .txt files lines of # or % may come before it."""
    suffix = path.suffix.lower()
    comments = ("#", "%") if suffix in TEXTS else ()
    opened = gzip.open if suffix == ".gz" else open
    with as_table(path), opened(path, "rt", encoding="utf-8-sig") as file:
        for number, line in enumerate(file):
            if line.strip() and not line.lstrip().startswith(comments):
                found = next((each for each in ("\t", ",", ";") if each in line), BLANKS)
                return TextFormat(number, line.strip("\r\n"), SEPARATORS.get(suffix, found))
    raise RawlsError(f"{path} is empty: write it or copy it again")


def first_lines(path: Path, most_columns: int) -> pd.DataFrame:
    """The cells of the first lines of a text file, as texts, of which none is missing.

    pandas needs time and memory for each column: a line of more than ``most_columns`` is refused.
    """
    suffix = path.suffix.lower()
    with path.open("rb") as binary:
        # UTF-16 without a byte order mark passes for UTF-8, with a NUL beside every letter.
        if b"\0" in binary.read(4096):
            raise RawlsError(
                f"{path} holds NUL bytes, as UTF-16 text or a foreign file does: save it as UTF-8"
            )
    _, line, separator = text_format(path)
    if suffix in TEXTS and "{" in line and not line.endswith("{}"):
        raise RawlsError(
            f"{path} has Python dicts in its lines, as networkx.write_edgelist writes attributes: "
            "write it with data=['weight'] or data=False, or as JSON with node_link_data"
        )
    width = len(line.split(None if separator == BLANKS else separator))
    require_width(path, width, most_columns)
    rows = max(2, min(_SAMPLE, _SAMPLE_CELLS // width))
    frame = read_text(path, False, nrows=rows, dtype=str).fillna("")
    other = next((each for each in (";", "\t", ",", "|") if each in str(frame.iloc[0, 0])), None)
    if frame.shape[1] == 1 and suffix in SEPARATORS and other is not None:
        name = {"\t": "tabs", ",": "commas"}.get(other, f"'{other}'")
        format_of = {"\t": ", or call it .tsv", ",": ", or call it .csv", ";": ", or call it .txt"}
        raise RawlsError(
            f"{path} has one column, as its cells are separated by {name}: separate them by "
            f"{separator_name(path)}{format_of.get(other, '')}"
        )
    return frame


def require_width(path: Path, width: int, most_columns: int) -> None:
    """Refuse a table with more columns than may be read, or with none."""
    if not 0 < width <= most_columns:
        raise RawlsError(
            f"{path} has {width:,} columns, more than the {most_columns:,} that are read from a "
            "table: give the numbers as .npy or .npz"
        )


def read_text(path: Path, header: bool, **options: Any) -> pd.DataFrame:
    """Read a .csv or .tsv file; its columns are numbered from 0."""
    with as_table(path):
        frame: pd.DataFrame = pd.read_csv(path, **_options(path, header, options))
    return frame


def text_chunks(path: Path, header: bool, rows: int, **options: Any) -> Iterator[pd.DataFrame]:
    """Read a .csv or .tsv file ``rows`` at a time, so that a large one is never held whole."""
    options = {**_options(path, header, options), "chunksize": rows}
    with as_table(path), pd.read_csv(path, **options) as chunks:
        yield from chunks


def _options(path: Path, header: bool, more: dict[str, Any]) -> dict[str, Any]:
    """Of ``pandas.read_csv``, so that only an empty cell is missing: NA and null may be ids."""
    before, line, separator = text_format(path)
    if separator == BLANKS:
        # What networkx.write_edgelist writes behind edges without attributes is "{}".
        more = {"comment": "{" if line.endswith("{}") else "#", **more}
    return {
        "sep": separator,
        "header": None,
        "skiprows": int(header) + before,
        "keep_default_na": False,
        "na_values": [""],
        "low_memory": False,
        "skipinitialspace": True,
        "encoding": "utf-8-sig",
        **more,
    }


def no_rows(path: Path) -> RawlsError:
    """Return the error for a table that has names of columns alone."""
    return RawlsError(f"{path} has no rows: write it or copy it again")


@contextlib.contextmanager
def as_table(path: Path) -> Iterator[None]:
    """Turn what pandas raises on a file that is no table into one sentence."""
    with reading(path, "a table"):
        try:
            yield
        except pd.errors.EmptyDataError as error:
            raise no_rows(path) from error
        except UnicodeDecodeError as error:
            raise RawlsError(f"{path} is not a table in UTF-8 text: save it as UTF-8") from error
        except pd.errors.ParserError as error:
            # What pandas makes of Ctrl-C; an error of the disk stays an OSError.
            if "Calling read(nbytes) on source failed" in str(error):
                raise KeyboardInterrupt from error
            raise RawlsError(f"{path.name}{_flaw(str(error))}") from error


def _flaw(reason: str) -> str:
    """What pandas says of a text file in our words."""
    if found := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", reason):
        width, line, cells = found.groups()
        return (
            f", line {line} has {cells} cells, but the lines above it have {width}: give every "
            "row a cell for each column, and remove titles and comments above them"
        )
    if found := re.search(r"EOF inside string starting at row (\d+)", reason):
        line = str(int(found[1]) + 1)
        return f', line {line} has a quote (") that nothing closes: close it, or remove it'
    return f" cannot be read as a table: {reason.removeprefix('Error tokenizing data. ')}"


class ParquetTable:
    """A .parquet file: its columns, those of a pandas index first, and its rows in chunks.

    A file that unpacks to much more than its size is refused.
    """

    def __init__(self, path: Path) -> None:
        try:
            import pyarrow.parquet
        except ImportError as error:
            raise missing_extra(f"reading {path.name}", "parquet") from error
        with reading(path, "parquet"):
            self._file, size = pyarrow.parquet.ParquetFile(path), path.stat().st_size
            about = self._file.metadata
            groups = [about.row_group(i) for i in range(about.num_row_groups)]
            rows = [group.num_rows for group in groups]
            # Arrow reserves memory for the rows of a group before it reads them.
            if min(rows, default=0) < 0 or sum(rows) != about.num_rows:
                raise RawlsError(f"{path} is damaged: its row groups do not have its rows")
            cells = about.num_rows * max(about.num_columns, 1)
            unpacked = sum(group.total_byte_size for group in groups)
            if size < SMALL_FILE and (cells > MOST_CELLS or unpacked > LARGEST_UNPACKED):
                raise RawlsError(
                    f"{path} has {size:,} bytes and unpacks to {cells:,} cells of {unpacked:,} "
                    "bytes: write it without compression"
                )
            schema = self._file.schema_arrow
            self._written = [str(name) for name in schema.names]
            index = (schema.pandas_metadata or {}).get("index_columns") or []
            first = [self._written.index(name) for name in index if name in self._written]
            self._order = [*first, *(i for i in range(len(schema.names)) if i not in first)]
            names = [self._written[i] for i in self._order]
            self.names = ["" if _PARQUET_INDEX.fullmatch(name) else name for name in names]
            self.types = [schema.field(i).type for i in self._order]
            self.num_columns, self.num_rows = about.num_columns, about.num_rows

    def read(self) -> pd.DataFrame:
        """All rows; the columns are numbered from 0."""
        return self._frame(self._file.read(), None)

    def chunks(self, rows: int, only: list[int] | None = None) -> Iterator[pd.DataFrame]:
        """Some rows at a time; ``only`` are the columns that are needed."""
        only = only if len(set(self._written)) == len(self._written) else None
        names = None if only is None else [self._written[self._order[index]] for index in only]
        for batch in self._file.iter_batches(batch_size=rows, columns=names):
            yield self._frame(batch, only)

    def _frame(self, table: Any, only: list[int] | None) -> pd.DataFrame:
        """Columns by their numbers, and numbers for the decimals of a database."""
        # What pandas wrote about itself would turn columns into an index.
        frame: pd.DataFrame = table.to_pandas(ignore_metadata=True)
        if only is None:
            frame = frame.iloc[:, self._order]
        else:
            frame = frame[[self._written[self._order[index]] for index in only]]
        frame.columns = pd.Index(range(frame.shape[1]) if only is None else only)
        for index in frame.columns:
            valid = frame[index].first_valid_index()
            if valid is not None and isinstance(frame[index][valid], Decimal):
                frame[index] = _without_decimals(frame[index])
        return frame


def _without_decimals(column: pd.Series[Any]) -> pd.Series[Any]:
    """The numbers as int64 where all are whole (ids, labels), else as float64."""
    if column.notna().all() and all(value == int(value) for value in column):
        with contextlib.suppress(OverflowError):
            return column.map(int).astype(np.int64)
    return column.astype(np.float64)
