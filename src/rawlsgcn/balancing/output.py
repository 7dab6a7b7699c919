"""A balanced graph as a file: scipy's npz, or an edge list with weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import RawlsError
from ..files import atomic_file
from .scaling import Scaling


def write_balanced(scaling: Scaling, node_ids: Sequence[Any] | None, path: str | Path) -> None:
    """Write the balanced matrix, self-loops included.

    ``.npz``: what ``scipy.sparse.load_npz`` reads, with the scaling vector beside it as ``scale``;
    ``.csv`` and ``.tsv``: source, target, weight, with the user's own ids.
    """
    path = Path(path)
    starts, columns, values = (part.cpu().numpy() for part in scaling.csr())
    nodes = len(starts) - 1
    with atomic_file(path) as temporary:
        if path.suffix == ".npz":
            pieces: dict[str, Any] = {
                "data": values,
                "indices": columns,
                "indptr": starts,
                "shape": np.array([nodes, nodes]),
                "format": np.array(b"csr"),
                "scale": scaling.row_scale.cpu().numpy(),
            }
            with temporary.open("wb") as file:
                np.savez_compressed(file, allow_pickle=False, **pieces)
        elif path.suffix in (".csv", ".tsv"):
            import pandas as pd

            ids = np.arange(nodes) if node_ids is None else np.asarray(node_ids)
            rows = np.repeat(np.arange(nodes), np.diff(starts))
            frame = pd.DataFrame({"source": ids[rows], "target": ids[columns], "weight": values})
            separator = "," if path.suffix == ".csv" else "\t"
            frame.to_csv(temporary, index=False, sep=separator, float_format="%.17g")
        else:
            raise RawlsError(f"cannot write {path}: use .npz, .csv or .tsv")
