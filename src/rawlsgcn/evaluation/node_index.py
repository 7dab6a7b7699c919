"""From the ids of nodes in the user's files and frames to the order of the graph's nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._core.errors import RawlsError, reading
from ..graphs.readers.column_names import ID_COLUMNS, is_number
from ..graphs.readers.node_tables import node_columns
from ..graphs.readers.table_formats import TABLES
from ..graphs.readers.tables import numbers_of, read_table

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]


class NodeIndex:
    """The positions of ids in the graph, whose nodes have ``node_ids``, or are numbered from 0."""

    def __init__(self, node_ids: Any, nodes: int) -> None:
        self.nodes, self.numbered = nodes, node_ids is None
        self._index: pd.Index[Any] = pd.RangeIndex(nodes)
        self.as_text = False
        if not self.numbered:
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
        texts = ids.astype(str).str.strip() if self.as_text else None
        wanted: Any = _whole_ids(ids, row_name, first) if texts is None else texts
        positions = self._index.get_indexer(pd.Index(wanted))
        unknown = np.flatnonzero(positions < 0)
        if not len(unknown):
            return np.asarray(positions, dtype=np.int64)
        some = ids.iloc[unknown[:3]].astype(str).tolist()
        row = row_name(first + int(unknown[0]))
        numbered = f"numbered from 0 to {self.nodes - 1}" if self.numbered else ""
        if len(unknown) > len(ids) / 2:
            counts = self.as_text and pd.api.types.is_integer_dtype(ids.dtype)
            raise RawlsError(
                f"the graph and the predictions do not belong together: {len(unknown):,} of "
                f"{len(ids):,} predicted nodes are not among the graph's {self.nodes:,}"
                f"{numbered and f' ({numbered})'}; the first is {some[0]} ({row})"
                f"{'; of a DataFrame give the node ids as index= or column' * counts}"
            )
        more = f" (of {len(unknown):,} such, the first are {', '.join(some)})"
        raise RawlsError(
            f"{row}: node {some[0]} is not in the graph"
            f"{numbered and f', whose nodes are {numbered}'}{more * (len(unknown) > 1)}: remove it"
        )

    def with_ids(self, values: Any, name: str) -> pd.DataFrame:
        """A DataFrame or Series of predictions as a table with a column of node ids.

        These are a column of the frame, its index, or, where that only counts the rows, those of
        all nodes in their order.
        """
        if isinstance(values, pd.DataFrame):
            if ID_COLUMNS.intersection(str(each).strip().lower() for each in values.columns):
                return values
            values = values.iloc[:, 0] if values.shape[1] == 1 else values
        frame = values.to_frame("predicted") if isinstance(values, pd.Series) else values.copy()
        if _only_counts(frame.index):
            require_all(len(frame), self.nodes, name)
            frame.index = self._index
        frame.insert(0, "node", frame.index)
        return frame

    def in_order(self, values: Any, name: str) -> Any:
        """The rows of a DataFrame or Series in the order of the nodes, by the ids in its index.

        Anything else, and a frame whose index only counts its rows, is in node order already.
        """
        if not isinstance(values, pd.DataFrame | pd.Series):
            return values
        if _only_counts(values.index):
            return values
        places = self.positions(pd.Series(values.index), lambda row: f"{name}, row {row}", 0)
        if len(places) != self.nodes or len(np.unique(places)) != self.nodes:
            raise RawlsError(
                f"{name} must have a row for each of the {self.nodes:,} nodes, once: write the "
                "rows that there are to a CSV file with the node ids, or give an array in node "
                "order"
            )
        return values.iloc[np.argsort(places)]


def require_all(rows: int, nodes: int, name: str) -> None:
    """Refuse predictions in node order that are not of all nodes."""
    if rows != nodes:
        raise RawlsError(
            f"{name} are for {rows:,} nodes, but the graph has {nodes:,}: give those of all nodes, "
            "or a DataFrame or Series with the node ids as index=, or add them to a file as 'node'"
        )


def _only_counts(index: pd.Index[Any]) -> bool:
    """Whether the index of a frame numbers its rows and has no ids."""
    return isinstance(index, pd.RangeIndex) and (index.start, index.step) == (0, 1)


def _whole_ids(ids: pd.Series[Any], row_name: Any, first: int) -> Ints:
    """Ids as whole numbers, without rounding."""
    numbers = ids
    if not pd.api.types.is_integer_dtype(ids.dtype):
        numbers = pd.to_numeric(ids.astype(object), errors="coerce")
    if pd.api.types.is_integer_dtype(numbers.dtype):
        bad = (numbers > np.iinfo(np.int64).max).to_numpy(dtype=bool)
    else:
        numbers = pd.Series(numbers_of(ids))
        # From 2^53 on not every whole number is a float.
        bad = ~((numbers.abs() < 2**53) & (numbers == np.floor(numbers))).to_numpy()
    bad = bad | (ids.dtype.kind in "bmM")  # True, or a date, is no number
    if bad.any():
        row = int(bad.argmax())
        raise RawlsError(
            f"{row_name(first + row)}: the node id '{ids.iloc[row]}' is not a whole number, as "
            "the graph's are"
        )
    return numbers.to_numpy().astype(np.int64)


def read_column(path: Path, index: NodeIndex) -> tuple[str, Array]:
    """Read a user's column in the order of the nodes; NaN or '' where a node has no value."""
    if path.suffix.lower() not in TABLES:
        raise RawlsError(f"{path}: columns are read from {', '.join(TABLES)} files (id,value)")
    with reading(path, "a table"):
        table = read_table(path, lambda cells, numeric: not all(map(is_number, cells[1:])))
        key, others = node_columns(table)
        if len(others) != 1:
            found = ", ".join([*map(table.column, others[:5]), "…"][: len(others)])
            has = f"several columns of values ({found})" if others else "one column"
            raise RawlsError(
                f"{path} has {has}: give the node id first and the value to group by after it"
            )
        name = table.names[others[0]] if table.names else path.stem
        ids = table.ids(key, as_text=True) if index.as_text else table.frame[key]
        positions = index.positions(ids, table.row, 0)
        again = pd.Series(positions).duplicated().to_numpy()
        if again.any():
            raise RawlsError(f"{table.row(int(again.argmax()))}: this node appears twice")
        column = table.frame[others[0]]
        values: Array = np.full(index.nodes, "", dtype=object)
        if pd.api.types.is_numeric_dtype(column.dtype):
            values = np.full(index.nodes, np.nan)
            values[positions] = numbers_of(column)
        else:
            values[positions] = column.astype(str).str.strip().where(column.notna(), "").to_numpy()
    return name, values
