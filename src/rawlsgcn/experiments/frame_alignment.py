"""DataFrames and Series of the user in the order of the nodes and classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from .._core.errors import RawlsError
from .prediction_alignment import NodeIndex


def in_node_order(values: Any, index: NodeIndex, name: str) -> Any:
    """The rows of a DataFrame or Series in the order of the nodes, by the ids in its index.

    Anything else, and a frame whose index only counts its rows, is in node order already.

    Args:
        values: What the user has given.
        index: The ids of the nodes.
        name: What the values are called in error messages.

    Raises:
        RawlsError: If the index does not name every node once.
    """
    if not isinstance(values, pd.DataFrame | pd.Series):
        return values
    counted = values.index
    if isinstance(counted, pd.RangeIndex) and (counted.start, counted.step) == (0, 1):
        return values
    places = index.positions(pd.Series(counted), lambda row: f"{name}, row {row}", 0)
    if len(places) != index.nodes or len(np.unique(places)) != index.nodes:
        raise RawlsError(
            f"{name} must have a row for each of the {index.nodes:,} nodes, once: write the rows "
            "that there are to a CSV file with the node ids, or give an array in node order"
        )
    return values.iloc[np.argsort(places)]


def in_class_order(values: Any, class_names: Sequence[str] | None, name: str) -> Any:
    """The columns of a DataFrame in the order of the classes, by their names or numbers.

    Args:
        values: What the user has given; other things than a DataFrame are returned as they are.
        class_names: The names of the graph's classes; None if they are numbers.
        name: What the values are called in error messages.

    Raises:
        RawlsError: If a column is not called as a class is.
    """
    if not isinstance(values, pd.DataFrame):
        return values
    if values.shape[1] == 1:
        return values.iloc[:, 0]
    columns = [str(column) for column in values.columns]
    count = len(columns) if class_names is None else len(class_names)
    known = [*map(str, range(count))] if class_names is None else [*map(str, class_names)]
    if sorted(columns) != sorted(known) and columns != [*map(str, range(len(columns)))]:
        raise RawlsError(
            f"{name}: its columns must be the classes {', '.join(known[:8])}, not "
            f"{', '.join(columns[:8])}: rename them, or give an array in that order"
        )
    order = known if sorted(columns) == sorted(known) else columns
    return values.iloc[:, [columns.index(column) for column in order]]
