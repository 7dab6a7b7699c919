"""Labels of files and arrays as numbers, and the names of the classes where they are words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..._core.errors import RawlsError, reading
from ..catalog import MASKS
from ..raw_graph import RawGraph
from .column_names import (
    LABEL_COLUMNS,
    SPLIT_COLUMNS,
    is_number,
    labels_have_header,
    missing_column,
)
from .node_tables import NodeTable, node_columns, read_array
from .split_column import require_split
from .table_formats import TABLES, separator_name
from .tables import read_table

Array = NDArray[Any]


def read_labels(path: Path) -> NodeTable:
    """Labels from .csv, .tsv, .parquet (``id,label[,split]``), .npy, .pt, or .npz (with masks)."""
    with reading(path, "labels"):
        if path.suffix.lower() in TABLES:
            return _label_table(path)
        y, masks = read_array(path, "labels")
        if isinstance(y, Tensor):
            if y.layout != torch.strided:
                raise RawlsError(f"{path} holds a sparse tensor: labels are a dense one")
            y = y.numpy()
        y, class_names = label_array(y, path.name)
        return NodeTable(path, y, masks, class_names=class_names)


def use_labels(raw: RawGraph, labels: NodeTable) -> None:
    """Give a graph the labels of a file, whose rows are in its order."""
    raw.y, raw.labels_from, raw.label_place = labels.values, labels.path.name, labels.place
    raw.class_names = labels.class_names
    raw.facts.word_labels |= raw.class_names is not None
    # Masks beside new labels are the user's; those stored with the old ones still hold.
    raw.masks = labels.masks or raw.masks


def _label_table(path: Path) -> NodeTable:
    table = read_table(path, labels_have_header)
    width = table.width
    key, columns = node_columns(table)
    split = table.find(SPLIT_COLUMNS, apart=[key])
    if table.names is None:
        if width > 3:
            raise RawlsError(f"{path} has {width} columns and no header: expected id,label[,split]")
        split = 2 if width == 3 else None
    label = table.find(LABEL_COLUMNS, apart=[key])
    if label is None:
        label = next((index for index in columns if index != split), None)
    if label is None and table.names is None:
        raise RawlsError(
            f"{path} has one column: give the node id first (of rows in node order: 0, 1, 2, …) "
            f"and the label after it, separated by {separator_name(path)}"
        )
    if label is None:
        raise missing_column(path, "labels", LABEL_COLUMNS)
    cells = table.frame[label]
    encoded = None
    if not pd.api.types.is_numeric_dtype(cells.dtype):
        encoded = encode_words(cells)
        words = cells.astype(object).map(lambda each: isinstance(each, str) and not is_number(each))
        if encoded is None and words.sum() > 1:  # a single one may be the name of a column
            require_one_kind(cells, lambda row: f"{table.row(row)}, {table.column(label)}")
    values, class_names = encoded or (table.numbers([label])[:, 0], None)
    nodes = NodeTable(path, values, table=table, key=key, columns=[label], absent=-1)
    nodes.class_names = class_names
    nodes.ignored = [table.column(index) for index in sorted(set(columns) - {label, split})]
    if split is not None:
        where = f", {table.column(split)}"
        codes = require_split(table.frame[split], lambda row: table.row(row) + where)
        nodes.masks = {key: codes == code for code, key in enumerate(MASKS)}
    return nodes


def encode_words(cells: pd.Series[Any]) -> tuple[Array, list[str]] | None:
    """Number the classes by the order of their names; -1 stays -1, and an empty cell is NaN.

    None if these are not words: a number among them is rather a mistake than a name.

    Raises:
        RawlsError: If two texts, such as '01' and '1', would become the same number.
    """
    if pd.api.types.infer_dtype(cells, skipna=True) != "string":
        return None
    texts = cells.astype(object).str.strip().replace("", None)
    distinct = texts.dropna().unique().tolist()
    names = sorted(each for each in distinct if each != "-1")
    if not names or any(map(is_number, names)):
        written: dict[str, str] = {}
        for name in filter(str.isdecimal, names):
            other = written.setdefault(name.lstrip("0"), name)
            if other != name:
                raise RawlsError(
                    f"the labels '{other}' and '{name}' are the same number: write it in one way, "
                    "or name the classes by words"
                )
        return None
    numbers = {**{name: number for number, name in enumerate(names)}, "-1": -1}
    return texts.map(numbers).to_numpy(dtype=np.float64, na_value=np.nan), names


def require_one_kind(cells: pd.Series[Any], named: Callable[[int], str]) -> None:
    """Raise an error for a word among numbers, or a number among words: the first of the fewer.

    Args:
        cells: The labels; -1 is of both kinds.
        named: Names the cell at a place, for the message.
    """
    texts = cells.astype(object).where(cells.notna(), "").astype(str).str.strip()
    numbers = texts.isin([each for each in texts.unique() if is_number(each)]).to_numpy()
    either = texts.isin(["", "-1"]).to_numpy()
    of_kind = (numbers & ~either, ~numbers & ~either)
    fewer = int(of_kind[1].sum() < of_kind[0].sum())
    if of_kind[0].any() and of_kind[1].any():
        place = int(of_kind[fewer].argmax())
        kinds = "a word among numbers" if fewer else "a number among words"
        raise RawlsError(
            f"{named(place)}: the label '{texts.iloc[place]}' is {kinds}: labels are all whole "
            "numbers or all words"
        )


def label_array(y: Array, where: str) -> tuple[Array, list[str] | None]:
    """Texts in an array as :func:`label_column` has them; numbers stay what they are."""
    texts = y.ndim == 1 and y.dtype.kind in "OUS"
    return label_column(y.tolist(), where) if texts else (y, None)


def label_column(values: Sequence[Any], where: str) -> tuple[Array, list[str] | None]:
    """Labels as numbers, -1 for a missing one; and the names of the classes if they are words."""
    column = pd.Series(list(values), dtype=object)
    missing = column.isna().to_numpy()
    present, labels = column[~missing], np.full(len(column), -1.0)
    encoded = encode_words(present)
    if encoded is not None:
        labels[~missing] = encoded[0]
        return labels, encoded[1]
    require_one_kind(column, lambda row: f"{where}, label {row} (counted from 0)")
    plain = present.map(lambda value: isinstance(value, str | int | float | np.number | np.bool_))
    numbers = pd.to_numeric(present.where(plain, None), errors="coerce")
    if numbers.isna().any():
        raise RawlsError(
            f"{where} holds '{present[numbers.isna()].iloc[0]}': labels are all whole numbers or "
            "all words"
        )
    labels[~missing] = numbers.to_numpy(dtype=np.float64)
    return labels, None
