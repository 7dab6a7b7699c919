"""The predictions of one model, matched with the nodes of a graph and read in chunks.

A row is a node: its id, and the predicted class or a score (probability or logit) of each class.
Of a file only the current chunk is in memory, so that one of many gigabytes can be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._core.errors import RawlsError, reading, require_file
from ..graphs.readers.split_column import require_split
from ..graphs.readers.table_formats import no_rows
from ..graphs.readers.tables import numbers_of
from .node_index import NodeIndex, require_all
from .prediction_tables import FrameTable, open_array, open_file, open_frame

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_CELLS = 1 << 18
"""Cells read at once: 2 MB as numbers."""
_LISTS = 4096
"""Rows read at once where their width is not known beforehand."""


@dataclass(frozen=True)
class PredictionChunk:
    """Some rows of predictions."""

    nodes: Ints  #: the positions of their nodes in the graph, (rows,)
    first: int  #: the number of the first row, counted from 0
    values: Floats  #: scores (rows, classes), or the numbers of the predicted classes (rows,)


class Predictions:
    """The predictions of one model, which may be read more than once.

    Args:
        given: A .csv, .tsv, .parquet or .npz file; docs/audit.md lists the names of its columns.
            Or a DataFrame or Series with the ids of its nodes, or scores (nodes, classes) or
            classes (nodes,) as an array in node order.
        index: Finds the nodes of the graph by their ids.
        name: The name of the model, by default that of the file, or of its folder.
        class_names: The names of the classes in their order, where the labels are words.
        source: Where an array comes from, in words.
        kind: "probabilities" or "logits" if it is known what an array holds.
    """

    def __init__(
        self,
        given: Any,
        index: NodeIndex,
        name: str | None = None,
        class_names: Sequence[str] | None = None,
        source: str = "an array",
        kind: str | None = None,
    ) -> None:
        self._index = index
        self._class_names = None if class_names is None else list(class_names)
        self.path: Path | None = None
        if isinstance(given, str | Path):
            self.path, self.source = Path(given).expanduser(), str(given)
            # 'train --out' calls every file predictions.csv: then the folder tells them apart.
            named = self.path.stem != "predictions" or not self.path.parent.name
            self.name = name or (self.path.stem if named else self.path.parent.name)
            called = f"the predictions in {given}"
            require_file(given)
        else:
            self.name, self.source, called = str(name), source, f"predictions '{name}'"
        with reading(self.path or called, "predictions"):
            if self.path is not None:
                self._table, self._columns = open_file(self.path, self._class_names)
            elif isinstance(given, pd.DataFrame | pd.Series):
                frame, self.source = index.with_ids(given, called), "a DataFrame"
                self._table, self._columns = open_frame(frame, called, self._class_names)
            else:
                self._table, self._columns = open_array(given, called, kind)
            if self._columns.node is None:
                assert isinstance(self._table, FrameTable)
                if not len(self._table.frame):
                    raise no_rows(self._table.path)
                require_all(len(self._table.frame), index.nodes, called)
        self.named_format = self._columns.kind
        self.row = self._table.row

    def chunks(self) -> Iterator[PredictionChunk]:
        """Read the rows from the first to the last, some at a time."""
        columns, first, classes = self._columns, 0, None
        rows = max(1000, _CELLS // (2 + len(columns.scores)))
        rows = rows if columns.score_list is None else _LISTS
        text = [] if columns.node is None or not self._index.as_text else [columns.node]
        with reading(self._table.path, "predictions"):
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
                    values = self._classes(frame, first)
                yield PredictionChunk(self._positions(frame, first), first, values)
                first += len(frame)
            if first == 0:
                raise no_rows(self._table.path)

    def split(self) -> Ints | None:
        """Which nodes the file says to train (0), validate (1) and test (2); -1 for others.

        None if it does not say.
        """
        node, split, first = self._columns.node, self._columns.split, 0
        if split is None:
            return None
        codes = np.full(self._index.nodes, -1)
        needed = [split] if node is None else sorted({node, split})
        text = needed if self._index.as_text else [split]
        with reading(self._table.path, "predictions"):
            for frame in self._table.chunks(_CELLS, text, only=needed):
                found = require_split(frame[split], partial(self._cell, split, first))
                codes[self._positions(frame, first)] = found
                first += len(frame)
        return codes if bool((codes >= 0).any()) else None

    def _cell(self, column: int, first: int, row: int) -> str:
        """Name a cell for an error message."""
        return f"{self.row(first + row)}, {self._table.column(column)}"

    def _positions(self, frame: pd.DataFrame, first: int) -> Ints:
        """The nodes of the rows, which without ids are in the order of the graph."""
        if self._columns.node is None:
            return np.arange(first, first + len(frame))
        return self._index.positions(frame[self._columns.node], self.row, first)

    def _classes(self, frame: pd.DataFrame, first: int) -> Floats:
        """The predicted classes as numbers; words are those that the labels have."""
        column = self._columns.predicted
        assert column is not None
        cells = frame[column]
        if self._class_names is not None and not pd.api.types.is_numeric_dtype(cells.dtype):
            numbers = {name: number for number, name in enumerate(self._class_names)}
            texts = cells.astype(object).map(lambda cell: str(cell).strip())
            frame = pd.DataFrame({column: texts.map(lambda text: numbers.get(text, text))})
        return self._numbers(frame, [column], first)[:, 0]

    def _listed(self, column: pd.Series[Any], first: int, wide: int | None) -> Floats:
        """The lists as rows (nodes, classes), each as long as the first one, or ``wide``."""

        def refuse(wrong: Any, said: str) -> None:
            if wrong.any():
                row = self.row(first + int(wrong.argmax()))
                raise RawlsError(f"{row}: the list {said}: {self._cure}")

        lengths = column.str.len().fillna(0).to_numpy(dtype=np.int64)
        wide = wide or int(lengths[0])
        refuse(lengths == 0, "of scores is empty")
        refuse(lengths != wide, f"does not have {wide} scores, as the first one has")
        values = np.stack(column.to_list()).astype(np.float64)
        refuse(np.isnan(values).any(1), "has an empty or NaN score")
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
                expected = (
                    f"one of the classes of the labels ({', '.join(self._class_names[:5])}{more})"
                )
            raise RawlsError(
                f"{self._cell(columns[place], first, int(row))} {said}: "
                f"every predicted node needs {expected}; {self._cure}"
            )
        return values
