"""Predictions written to files: a row for each node, its class and a probability of each class."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from ..._core.argument_checks import node_id_array
from ..._core.atomic_files import atomic_file
from ..._core.errors import RawlsError, missing_extra

SUFFIXES = (".csv", ".tsv", ".parquet", ".npz")


def check_path(path: str | Path) -> None:
    """Raise an error for a path whose suffix is not that of a format that can be written."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise RawlsError(f"cannot write {path}: end its name in one of {', '.join(SUFFIXES)}")
    if suffix == ".parquet" and find_spec("pyarrow") is None:
        raise missing_extra("writing .parquet", "parquet")


def write_predictions(
    probabilities: Tensor, node_ids: Sequence[Any] | None, path: str | Path
) -> None:
    """Write node, predicted and p_0 … p_(C-1), in the format that the suffix of the path names.

    Args:
        probabilities: Of the shape (nodes, classes).
        node_ids: The ids of the nodes; None for 0 to n - 1.
        path: A .csv, .tsv, .parquet or .npz file. One that is there is replaced.

    Raises:
        RawlsError: If the suffix is another one, or the file cannot be written.
    """
    path = Path(path)
    check_path(path)
    suffix = path.suffix.lower()
    values = probabilities.numpy()
    nodes = node_id_array(node_ids, len(values))
    with atomic_file(path) as temporary:
        if suffix == ".npz":
            with temporary.open("wb") as file:
                np.savez_compressed(
                    file, node=nodes, predicted=values.argmax(1), probabilities=values
                )
            return
        import pandas as pd

        columns = {f"p_{index}": values[:, index] for index in range(values.shape[1])}
        frame = pd.DataFrame({"node": nodes, "predicted": values.argmax(1), **columns})
        if suffix == ".parquet":
            frame.to_parquet(temporary, index=False)
        else:
            separator = "," if suffix == ".csv" else "\t"
            # So many digits give every number of the type back exactly.
            digits = "%.17g" if values.dtype == np.float64 else "%.9g"
            frame.to_csv(temporary, index=False, sep=separator, float_format=digits)
