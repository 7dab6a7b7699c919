"""Predictions as files: one row a node, its class and the probability of every class."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from .errors import RawlsError, missing_extra
from .files import atomic_file

SUFFIXES = (".csv", ".tsv", ".parquet", ".npz")


def write_predictions(
    probabilities: Tensor, node_ids: Sequence[Any] | None, path: str | Path
) -> None:
    """Write node, predicted and p_0 … p_(C-1) in the form that the path's suffix asks for."""
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise RawlsError(f"cannot write {path}: use one of {', '.join(SUFFIXES)}")
    values = probabilities.numpy()
    nodes = np.arange(len(values)) if node_ids is None else np.asarray(node_ids)
    with atomic_file(path) as temporary:
        if path.suffix == ".npz":
            with temporary.open("wb") as file:
                np.savez_compressed(
                    file, node=nodes, predicted=values.argmax(1), probabilities=values
                )
            return
        import pandas as pd

        columns = {f"p_{index}": values[:, index] for index in range(values.shape[1])}
        frame = pd.DataFrame({"node": nodes, "predicted": values.argmax(1), **columns})
        if path.suffix == ".parquet":
            try:
                frame.to_parquet(temporary, index=False)
            except ImportError:
                raise missing_extra("writing .parquet", "parquet") from None
        else:
            separator = "," if path.suffix == ".csv" else "\t"
            # Nine digits give every float32 back exactly.
            frame.to_csv(temporary, index=False, sep=separator, float_format="%.9g")
