"""What an audit is given, brought into the order of the graph's nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._core.errors import RawlsError, reading
from ..evaluation.audit.prediction_formats import PredictionChunk
from ..evaluation.predictions.files import Part, PredictionFile, numbers_of

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]


class NodeIndex:
    """From the ids in the user's files to positions in the graph."""

    def __init__(self, node_ids: Any, nodes: int) -> None:
        self.nodes, self.plain = nodes, node_ids is None
        if self.plain:
            self.as_text = False
            return
        self.as_text = pd.api.types.infer_dtype(node_ids, skipna=False) != "integer"
        # Not an array of texts: in one, each takes the place of the longest.
        known = [str(each).strip() for each in node_ids] if self.as_text else node_ids
        self._index = pd.Index(known)

    def positions(self, ids: pd.Series[Any], where: Any, first: int) -> Ints:
        """The positions of ``ids``; ``where(row)`` names a row of the file for the error."""
        empty = ids.isna().to_numpy()
        if empty.any():
            raise RawlsError(
                f"{where(first + int(empty.argmax()))}: the node id is empty: fill it in or leave "
                "out that row"
            )
        if self.as_text:
            found = self._index.get_indexer(pd.Index(ids.astype(str).str.strip()))
        else:
            numbers = self._whole(ids, where, first)
            if self.plain:
                found = np.where((numbers >= 0) & (numbers < self.nodes), numbers, -1)
            else:
                found = self._index.get_indexer(pd.Index(numbers))
        unknown = np.flatnonzero(found < 0)
        if len(unknown):
            raise self._unknown(ids, unknown, where, first)
        return np.asarray(found, dtype=np.int64)

    def _unknown(self, ids: pd.Series[Any], unknown: Ints, where: Any, first: int) -> RawlsError:
        row = int(unknown[0])
        named = ", ".join(str(ids.iloc[int(i)]) for i in unknown[:3])
        numbered = f"numbered from 0 to {self.nodes - 1}" if self.plain else ""
        here = f"{ids.iloc[row]} ({where(first + row)})"
        if len(unknown) > len(ids) / 2:
            return RawlsError(
                f"the graph and the predictions do not belong together: {len(unknown):,} of "
                f"{len(ids):,} predicted nodes are not among the graph's {self.nodes:,}"
                f"{numbered and f' ({numbered})'}; the first is {here}"
            )
        more = f" (of {len(unknown):,} such, the first are {named})" if len(unknown) > 1 else ""
        return RawlsError(
            f"{where(first + row)}: node {ids.iloc[row]} is not in the graph"
            f"{numbered and f', whose nodes are {numbered}'}{more}: leave it out"
        )

    def _whole(self, ids: pd.Series[Any], where: Any, first: int) -> Ints:
        numbers = ids
        if not pd.api.types.is_integer_dtype(ids.dtype):
            numbers = pd.to_numeric(ids.astype(object), errors="coerce")
        if ids.dtype.kind in "bmM":
            bad = np.ones(len(ids), bool)  # to be true, or a date, is no number
        elif pd.api.types.is_integer_dtype(numbers.dtype):
            bad = (numbers > np.iinfo(np.int64).max).to_numpy(dtype=bool)
        else:
            numbers = pd.Series(numbers_of(ids))
            # From 2^53 on not every whole number is a float.
            bad = ~((numbers.abs() < 2**53) & (numbers == np.floor(numbers))).to_numpy()
        if bad.any():
            row = int(bad.argmax())
            raise RawlsError(
                f"{where(first + row)}: the node id '{ids.iloc[row]}' is not a whole number, as "
                "the graph's are"
            )
        return numbers.to_numpy().astype(np.int64)


@dataclass
class PlacedRows:
    """A part of the predictions with positions instead of ids."""

    nodes: Ints
    first: int
    predicted: Array | None
    scores: Array | None


class KeyedFile:
    """A file of predictions, its rows found in the graph."""

    def __init__(self, path: str | Path, index: NodeIndex, name: str | None = None) -> None:
        self._file, self._index = PredictionFile(path, index.as_text), index
        self.name, self.source = name or self._file.name, self._file.source
        self.named_form, self.row = self._file.named_form, self._file.row

    def rows(self) -> Iterator[PredictionChunk]:
        total = 0
        for part in self._file.parts():
            total += len(part.predicted if part.scores is None else part.scores)  # type: ignore[arg-type]
            with reading(self._file.path, "predictions"):
                nodes = self._placed(part)
            yield PlacedRows(nodes, part.first, part.predicted, part.scores)
        if part.ids is None and total != self._index.nodes:
            raise RawlsError(
                f"{self.source} has {total:,} rows without node ids, but the graph has "
                f"{self._index.nodes:,} nodes: add their ids as 'node'"
            )

    def _placed(self, part: Part) -> Ints:
        if part.ids is not None:
            return self._index.positions(part.ids, self.row, part.first)
        rows = len(part.predicted if part.scores is None else part.scores)  # type: ignore[arg-type]
        if part.first + rows > self._index.nodes:
            raise RawlsError(
                f"{self.source} has more rows than the graph has nodes ({self._index.nodes:,}), "
                "and no node ids: do they belong together?"
            )
        return np.arange(part.first, part.first + rows)


class GivenArray:
    """Predictions as an array: scores (nodes, classes) or classes (nodes,), in node order."""

    named_form: str | None = None

    def __init__(self, values: Any, nodes: int, name: str, source: str = "an array") -> None:
        with reading(f"predictions '{name}'", "an array"):
            if hasattr(values, "detach"):
                values = values.detach().cpu()
                # numpy has no bfloat16, which single precision holds exactly.
                brain = str(values.dtype) == "torch.bfloat16"
                values = (values.float() if brain else values).numpy()
            values = np.asarray(values)
        if values.ndim not in (1, 2) or values.dtype.kind not in "biuf":
            raise RawlsError(
                f"predictions '{name}' must be scores (nodes, classes) or classes (nodes,), they "
                f"are {values.dtype} of the shape {values.shape}"
            )
        if len(values) != nodes:
            raise RawlsError(
                f"predictions '{name}' are for {len(values):,} nodes, but the graph has {nodes:,}: "
                "do they belong together?"
            )
        bad = np.isnan(values) if values.ndim == 1 else np.isnan(values).any(1)
        if bad.any():
            raise RawlsError(
                f"predictions '{name}': {self.row(int(bad.argmax()))} is NaN: fill it in, or write "
                "the others to a file with their node ids"
            )
        self.name, self.source, self._values = name, source, values

    def row(self, index: int) -> str:
        return f"row {index} (counted from 0)"

    def rows(self) -> Iterator[PredictionChunk]:
        wide = 1 if self._values.ndim == 1 else self._values.shape[1]
        step = max(1000, (1 << 18) // max(wide, 1))
        for first in range(0, len(self._values), step):
            part = self._values[first : first + step].astype(np.float64)
            nodes = np.arange(first, first + len(part))
            if self._values.ndim == 1:
                yield PlacedRows(nodes, first, part, None)
            else:
                yield PlacedRows(nodes, first, None, part)


def read_column(path: Path, index: NodeIndex) -> tuple[str, Array]:
    """A column of the user's, in the order of the nodes; NaN or '' where a node has no value."""
    from ..graphs.readers.tables import TABLES, is_number, read_table

    if path.suffix.lower() not in TABLES:
        raise RawlsError(f"{path}: columns are read from {', '.join(TABLES)} files (id,value)")
    with reading(path, "a table"):
        table = read_table(path, lambda cells, numeric: not all(map(is_number, cells[1:])))
        key = table.id_column()
        others = [i for i in range(table.frame.shape[1]) if i != key]
        if not others:
            raise RawlsError(
                f"{path} has one column: give the node id first and its value after it"
            )
        name = table.names[others[0]] if table.names else path.stem
        ids = table.ids(key, as_text=True) if index.as_text else table.frame[key]
        found = index.positions(ids, table.row, 0)
        again = pd.Series(found).duplicated().to_numpy()
        if again.any():
            raise RawlsError(f"{table.row(int(again.argmax()))}: this node stands there twice")
        column = table.frame[others[0]]
        values: Array
        if pd.api.types.is_numeric_dtype(column.dtype):
            values = np.full(index.nodes, np.nan)
            values[found] = numbers_of(column)
        else:
            values = np.full(index.nodes, "", dtype=object)
            values[found] = column.astype(str).str.strip().where(column.notna(), "").to_numpy()
    return name, values
