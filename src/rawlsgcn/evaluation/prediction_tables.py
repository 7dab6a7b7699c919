"""Predictions of any kind as one table: files, DataFrames, and arrays in the order of the nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._core.errors import RawlsError, reading, require_file
from ..graphs.readers.arrays import Archive
from ..graphs.readers.column_names import LABEL_COLUMNS
from ..graphs.readers.table_formats import TABLES, ParquetTable, is_parquet
from ..graphs.readers.tables import TableHeader, read_header
from .prediction_columns import PredictionColumns, find_columns, has_header

Array = npt.NDArray[Any]
Opened = tuple[TableHeader, PredictionColumns]
FORMATS = (*TABLES, ".npz")
NODE_KEYS = ("node", "nodes", "node_ids", "ids")
PREDICTED_KEYS = ("predicted", "prediction", "classes")
SCORE_KEYS = ("probabilities", "logits", "scores")
_COLUMNS = 50_000
"""Columns of a table at most: pandas takes tens of microseconds for each, in every chunk."""


class FrameTable(TableHeader):
    """A DataFrame whose columns are numbered as a table; ``called`` names it in error messages."""

    def __init__(self, path: Path, called: str, names: list[str], frame: pd.DataFrame) -> None:
        super().__init__(path, names, len(names))
        self.called, self.frame = called, frame

    def row(self, index: int) -> str:
        return f"{self.called}, row {index} (counted from 0)"

    def chunks(
        self, rows: int, text: Collection[int] = (), only: list[int] | None = None
    ) -> Iterator[pd.DataFrame]:
        for first in range(0, len(self.frame), rows):
            frame = self.frame.iloc[first : first + rows]
            yield frame if only is None else frame[only]


def open_file(path: Path, class_names: Sequence[str] | None) -> Opened:
    """The columns of a file and their roles."""
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise RawlsError(f"{path}: predictions are read from {', '.join(FORMATS)} files")
    if suffix == ".npz":
        return _open_archive(path)
    table = read_header(path, has_header, _COLUMNS)
    lists = _list_columns(path) if is_parquet(path) else []
    return table, find_columns(table, lists, class_names)


def open_frame(frame: pd.DataFrame, called: str, class_names: Sequence[str] | None) -> Opened:
    """The columns of a DataFrame, which has the ids of the nodes in one, and their roles."""
    names = [str(name) for name in frame.columns]
    table = FrameTable(Path(called), called, names, frame.set_axis(range(len(names)), axis=1))
    first = next(frame.itertuples(index=False, name=None), ())
    lists = [place for place, cell in enumerate(first) if isinstance(cell, list | np.ndarray)]
    return table, find_columns(table, lists, class_names)


def open_array(values: Any, called: str, kind: str | None) -> Opened:
    """Scores (nodes, classes), of this ``kind`` if it is known, or classes (nodes,)."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        # numpy has no bfloat16, whose values single precision represents exactly.
        values = (values.float() if str(values.dtype) == "torch.bfloat16" else values).numpy()
    array = np.asarray(values)
    key = "predicted" if array.ndim == 1 else "scores"
    return _array_table(Path(called), called, array, key, kind, {})


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


def _open_archive(path: Path) -> Opened:
    """Scores or predicted classes from an .npz file, with the ids of the nodes if it has them."""
    archive = Archive(path)
    # Where there are scores, the class of the largest is what counts.
    key = next((key for key in (*SCORE_KEYS, *PREDICTED_KEYS) if key in archive.keys), None)
    if key is None:
        raise RawlsError(f"{path} has none of the keys {', '.join((*SCORE_KEYS, *PREDICTED_KEYS))}")
    array, beside = archive[key], dict[str, Array]()
    node, split = archive.first(NODE_KEYS), archive.first(("split",))
    if node is not None:
        if node.dtype.kind not in "iufU":
            raise RawlsError(f"{path}: the node ids are {node.dtype}: give whole numbers or text")
        if node.shape != array.shape[:1]:
            raise RawlsError(
                f"{path} has node ids of the shape {node.shape} for {len(array):,} predictions: "
                f"give one id for each, of the shape ({len(array)},)"
            )
        beside["node"] = node
    if split is not None and split.shape == array.shape[:1]:
        beside["split"] = split
    kind = key if key in ("probabilities", "logits") else None
    return _array_table(path, path.name, array, key, kind, beside)


def _array_table(
    path: Path,
    called: str,
    values: Array,
    key: str,
    kind: str | None,
    beside: Mapping[str, Array],
) -> Opened:
    """The table of an array, and of those ``beside`` it, which are called by their roles."""
    wide, kinds = (2, "biuf") if key in SCORE_KEYS else (1, "biufOU")
    if values.ndim != wide or values.dtype.kind not in kinds or 0 in values.shape[1:]:
        raise RawlsError(
            f"{path}: scores must be numbers of the shape (nodes, classes) and predicted classes "
            f"of the shape (nodes,), they are {values.dtype} of the shape {values.shape}"
        )
    names, found = ["predicted"], PredictionColumns(None, predicted=0)
    if wide == 2:
        names = [f"{key}[:, {number}]" for number in range(values.shape[1])]
        found = PredictionColumns(None, scores=list(range(len(names))), kind=kind)
    frame = pd.DataFrame(values, copy=False)
    for role, array in beside.items():
        setattr(found, role, len(names))
        frame[len(names)] = array
        names.append(role)
    return FrameTable(path, called, names, frame), found


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
