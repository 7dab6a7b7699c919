"""Scores as a Parquet column of lists, one list a node and a number in it for every class."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..._core.errors import RawlsError


def list_columns(schema: Any, path: Path) -> list[int]:
    """Which columns of an Arrow schema hold lists of numbers; other nested ones are refused."""
    from pyarrow import types

    found = []
    for place, field in enumerate(schema):
        kind = field.type
        if not types.is_nested(kind):
            continue
        listed = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
        if not listed or not (
            types.is_floating(kind.value_type) or types.is_integer(kind.value_type)
        ):
            raise RawlsError(
                f"{path}: the column '{field.name}' holds {kind}: give a column of numbers for "
                "every class, or one column of lists of numbers"
            )
        found.append(place)
    return found


def stacked(
    column: pd.Series[Any], wide: int | None, where: Callable[[int], str]
) -> npt.NDArray[np.float64]:
    """The lists as rows (nodes, classes), each as long as the first one, or ``wide``.

    ``where(row)`` names a row for the error.
    """
    wide = len(column.iloc[0]) if wide is None and column.iloc[0] is not None else wide
    for row, each in enumerate(column):
        if each is None or not len(each):
            raise RawlsError(f"{where(row)}: the list of scores is empty: leave out that row")
        if len(each) != wide:
            raise RawlsError(
                f"{where(row)}: the list has {len(each)} scores, the first one has {wide}: give a "
                "score of every class"
            )
    values = np.stack([np.asarray(each, dtype=np.float64) for each in column])
    bad = np.isnan(values).any(1)
    if bad.any():
        raise RawlsError(f"{where(int(bad.argmax()))}: the list has an empty or NaN score")
    return values
