"""Labels as numbers, and the names of the classes where they are words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..._core.errors import RawlsError
from .column_names import is_number

Array = NDArray[Any]


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
