"""Features and labels in files of their own, by node id or in the order of the nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._core.errors import RawlsError, reading
from ..splits import MASKS
from .arrays import FEATURE_KEYS, LABEL_KEYS, Archive, read_npy
from .tables import (
    ID_NAMES,
    SURE_ID_NAMES,
    TABLES,
    TableFile,
    is_index_header,
    is_number,
    read_table,
)

Array = NDArray[Any]
_LABEL_NAMES = {"label", "labels", "y", "class", "target"}
_SPLIT_NAMES = {"split", "set", "mask"}
_SPLIT_VALUES = {"train": 0, "val": 1, "valid": 1, "validation": 1, "test": 2}


@dataclass
class NodeTable:
    """Values for the nodes; ``table`` holds their ids in the column ``key``, or is absent.

    Without a table the rows are in the order of the nodes, 0 to n - 1.
    """

    path: Path
    values: Any
    masks: dict[str, Array] = field(default_factory=dict)
    table: TableFile | None = None
    key: int = 0
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.values.ndim == 0:
            raise RawlsError(f"{self.path} holds a single value: it must have one for each node")
        if self.table is not None and self.key != 0:
            column = self.table.column(self.key)
            self.notes.append(f"{self.path.name}: {column} is taken for the node ids.")

    def ids(self, as_text: bool) -> Array:
        """The ids of the rows, of which none may stand twice."""
        assert self.table is not None
        with reading(self.path, "a table"):
            ids = self.table.ids(self.key, as_text)
            repeated = ids.duplicated()
            if repeated.any():
                row = int(repeated.to_numpy().argmax())
                raise RawlsError(
                    f"{self.table.row(row)}: node {ids.iloc[row]} stands there a second time"
                )
            return ids.to_numpy(dtype=object if as_text else np.int64)

    def take(self, rows: Array) -> None:
        """Put the rows into another order."""
        self.values = self.values[rows]
        self.masks = {key: mask[rows] for key, mask in self.masks.items()}


def read_features(path: Path) -> NodeTable:
    """Features from .csv, .tsv, .parquet (id first), .npy, or .npz (dense or scipy sparse)."""
    with reading(path, "features"):
        return _read_features(path)


def read_labels(path: Path) -> NodeTable:
    """Labels from .csv, .tsv, .parquet (``id,label[,split]``), .npy, or .npz (maybe with masks)."""
    with reading(path, "labels"):
        return _read_labels(path)


def _read_features(path: Path) -> NodeTable:
    suffix = path.suffix.lower()
    if suffix in TABLES:
        table = read_table(path, _features_have_header)
        key, columns = _columns(table)
        if not columns:
            raise RawlsError(
                f"{path} has one column: give the node id first and the features after it, "
                f"separated by {'tabs' if suffix == '.tsv' else 'commas'}"
            )
        return NodeTable(path, table.numbers(columns), table=table, key=key)
    if suffix == ".npy":
        return NodeTable(path, read_npy(path))
    if suffix == ".npz":
        archive = Archive(path)
        x = archive.whole()
        if x is None:
            x = archive.features()
        if x is None and len(archive.keys) == 1:
            x = archive[next(iter(archive.keys))]
        if x is None:
            raise RawlsError(f"{path} has none of the keys attr_data, {', '.join(FEATURE_KEYS)}")
        return NodeTable(path, x.tocsr() if hasattr(x, "tocsr") else x)
    raise _unknown(path, "features")


def _read_labels(path: Path) -> NodeTable:
    suffix = path.suffix.lower()
    if suffix in TABLES:
        return _label_table(path)
    if suffix == ".npy":
        return NodeTable(path, read_npy(path))
    if suffix == ".npz":
        archive = Archive(path)
        y = archive.first(LABEL_KEYS)
        if y is None and len(archive.keys) == 1:
            y = archive[next(iter(archive.keys))]
        if y is None:
            raise RawlsError(f"{path} has none of the keys {', '.join(LABEL_KEYS)}")
        return NodeTable(path, y, archive.masks())
    raise _unknown(path, "labels")


def _label_table(path: Path) -> NodeTable:
    table = read_table(path, _labels_have_header)
    width = table.frame.shape[1]
    key, columns = _columns(table)
    split = table.find(_SPLIT_NAMES, apart=[key])
    if table.names is None:
        if width > 3:
            raise RawlsError(f"{path} has {width} columns and no header: expected id,label[,split]")
        split = 2 if width == 3 else None
    label = table.find(_LABEL_NAMES, apart=[key])
    if label is None:
        label = next((index for index in columns if index != split), None)
    if label is None:
        raise RawlsError(f"{path} has no column of labels: give the node id first and its label")
    side = NodeTable(path, table.numbers([label])[:, 0], table=table, key=key)
    others = set(columns) - {label, split}
    if others:
        unused = ", ".join(table.column(index) for index in sorted(others)[:3])
        side.notes.append(f"{path.name}: {unused} {'is' if len(others) == 1 else 'are'} not used.")
    if split is not None:
        side.masks = _masks(table, split)
    return side


def _masks(table: TableFile, column: int) -> dict[str, Array]:
    """The masks of a column that says train, val or test, or nothing, for each node."""
    words = table.frame[column].astype("object").fillna("").astype(str)
    words = words.str.strip().str.lower()
    wrong = ~words.isin([*_SPLIT_VALUES, "", "none"])
    if wrong.any():
        row = int(wrong.to_numpy().argmax())
        raise RawlsError(
            f"{table.row(row)}, {table.column(column)}: '{table.frame[column].iloc[row]}' "
            "is not train, val or test"
        )
    codes = words.map(_SPLIT_VALUES).fillna(-1).to_numpy(dtype=np.int64)
    return {key: codes == code for code, key in enumerate(MASKS)}


def _columns(table: TableFile) -> tuple[int, list[int]]:
    """The column of the ids, and the others; a pandas index beside the ids says nothing."""
    key = table.id_column()
    apart = {key, 0} if table.has_unnamed_index else {key}
    return key, [index for index in range(table.frame.shape[1]) if index not in apart]


def _features_have_header(cells: list[str], numeric: Callable[[int], bool]) -> bool:
    words = [cell.strip().lower() for cell in cells]
    if words[0] in ID_NAMES or SURE_ID_NAMES & set(words) or is_index_header(cells):
        return True
    # Features may be named by numbers (years): then a word over ids that are numbers tells.
    return not any(map(is_number, words[1:])) or (
        words[0] != "" and not is_number(words[0]) and numeric(0)
    )


def _labels_have_header(cells: list[str], numeric: Callable[[int], bool]) -> bool:
    label = cells[1] if len(cells) > 1 else ""
    known = cells[0].strip().lower() in ID_NAMES or is_index_header(cells)
    return known or (label != "" and not is_number(label))


def _unknown(path: Path, what: str) -> RawlsError:
    return RawlsError(f"{path}: {what} are read from .csv, .tsv, .parquet, .npy and .npz files")
