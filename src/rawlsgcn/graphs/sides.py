"""Features and labels in files of their own, by node id or in the order of the nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import RawlsError
from .arrays import FEATURE_KEYS, LABEL_KEYS, Archive, read_npy
from .found import MASKS
from .tables import ID_NAMES, TABLES, Table, is_number, read_table

Array = NDArray[Any]
_LABEL_NAMES = {"label", "labels", "y", "class", "target"}
_SPLIT_NAMES = {"split", "set", "mask"}
_SPLIT_VALUES = {"train": 0, "val": 1, "valid": 1, "validation": 1, "test": 2}


@dataclass
class Side:
    """Values for the nodes; ``table`` holds their ids in its first column, or is absent.

    Without a table the rows are in the order of the nodes, 0 to n - 1.
    """

    path: Path
    values: Any
    masks: dict[str, Array] = field(default_factory=dict)
    table: Table | None = None
    notes: list[str] = field(default_factory=list)

    def ids(self, as_text: bool) -> Array:
        """The ids of the rows, of which none may stand twice."""
        assert self.table is not None
        ids = self.table.ids(0, as_text)
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


def read_features(path: Path) -> Side:
    """Features from .csv, .tsv, .parquet (id first), .npy, or .npz (dense or scipy sparse)."""
    suffix = path.suffix.lower()
    if suffix in TABLES:
        table = read_table(path, _features_have_header)
        columns = list(range(1, table.frame.shape[1]))
        if not columns:
            raise RawlsError(
                f"{path} has one column: give the node id first and the features after it, "
                f"separated by {'tabs' if suffix == '.tsv' else 'commas'}"
            )
        return Side(path, table.numbers(columns), table=table)
    if suffix == ".npy":
        return Side(path, read_npy(path))
    if suffix == ".npz":
        archive = Archive(path)
        x = archive.whole()
        if x is None:
            x = archive.features()
        if x is None and len(archive.keys) == 1:
            x = archive[next(iter(archive.keys))]
        if x is None:
            raise RawlsError(f"{path} has none of the keys attr_data, {', '.join(FEATURE_KEYS)}")
        return Side(path, x.tocsr() if hasattr(x, "tocsr") else x)
    raise _unknown(path, "features")


def read_labels(path: Path) -> Side:
    """Labels from .csv, .tsv, .parquet (``id,label[,split]``), .npy, or .npz (maybe with masks)."""
    suffix = path.suffix.lower()
    if suffix in TABLES:
        return _label_table(path)
    if suffix == ".npy":
        return Side(path, read_npy(path))
    if suffix == ".npz":
        archive = Archive(path)
        y = archive.first(LABEL_KEYS)
        if y is None and len(archive.keys) == 1:
            y = archive[next(iter(archive.keys))]
        if y is None:
            raise RawlsError(f"{path} has none of the keys {', '.join(LABEL_KEYS)}")
        return Side(path, y, archive.masks())
    raise _unknown(path, "labels")


def _label_table(path: Path) -> Side:
    table = read_table(path, _labels_have_header)
    width = table.frame.shape[1]
    if width < 2:
        raise RawlsError(f"{path} has one column: give the node id first and its label second")
    label = table.find(_LABEL_NAMES) or 1
    split = table.find(_SPLIT_NAMES)
    if table.names is None:
        if width > 3:
            raise RawlsError(f"{path} has {width} columns and no header: expected id,label[,split]")
        split = 2 if width == 3 else None
    side = Side(path, table.numbers([label])[:, 0], table=table)
    others = set(range(1, width)) - {label, split}
    if others:
        unused = ", ".join(table.column(index) for index in sorted(others)[:3])
        side.notes.append(f"{path.name}: {unused} {'is' if len(others) == 1 else 'are'} not used.")
    if split is not None:
        side.masks = _masks(table, split)
    return side


def _masks(table: Table, column: int) -> dict[str, Array]:
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


def _features_have_header(cells: list[str]) -> bool:
    return cells[0].strip().lower() in ID_NAMES or not any(is_number(cell) for cell in cells[1:])


def _labels_have_header(cells: list[str]) -> bool:
    label = cells[1] if len(cells) > 1 else ""
    return cells[0].strip().lower() in ID_NAMES or (label != "" and not is_number(label))


def _unknown(path: Path, what: str) -> RawlsError:
    return RawlsError(f"{path}: {what} are read from .csv, .tsv, .parquet, .npy and .npz files")
