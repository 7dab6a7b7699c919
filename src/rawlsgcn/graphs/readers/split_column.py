"""The words of a column ``split``: which nodes train, validate and test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..._core.errors import RawlsError

_SPLIT_VALUES = {"train": 0, "training": 0, "test": 2} | dict.fromkeys(
    ("val", "valid", "validation", "dev"), 1
)
"""The words, and the number of the mask that each one means."""


def split_codes(cells: pd.Series[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the number of each cell's mask, -1 for none, and which cells say anything else."""
    words = cells.astype(object).fillna("").astype(str).str.strip().str.lower()
    codes = words.map({**_SPLIT_VALUES, "": -1, "none": -1})
    return codes.fillna(-1).to_numpy(dtype=np.int64), codes.isna().to_numpy()


def require_split(cells: pd.Series[Any], where: Callable[[int], str]) -> NDArray[Any]:
    """:func:`split_codes` of a table; ``where(row)`` names a cell that says anything else."""
    codes, wrong = split_codes(cells)
    if wrong.any():
        row = int(wrong.argmax())
        raise RawlsError(
            f"{where(row)}: '{cells.iloc[row]}' is not train, val or test; if the column says "
            "something else, rename it"
        )
    return codes
