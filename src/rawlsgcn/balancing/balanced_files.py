"""Files of a balanced matrix: scipy's npz, or an edge list with weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._core.argument_checks import node_id_array
from .._core.atomic_files import atomic_file
from .._core.errors import RawlsError
from .scaling import Scaling

SUFFIXES = (".npz", ".csv", ".tsv")


def check_matrix_path(path: str | Path) -> None:
    """Raise an error unless the suffix of a path is ``.npz``, ``.csv`` or ``.tsv``."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise RawlsError(f"cannot write {path}: end its name in one of {', '.join(SUFFIXES)}")


def write_balanced(scaling: Scaling, node_ids: Sequence[Any] | None, path: str | Path) -> None:
    """Write the balanced matrix of a graph, self-loops included.

    ``.npz``: a file for ``scipy.sparse.load_npz``, with the scaling vector x in it as ``scale`` and
    the user's node ids, if there are any, as ``node_ids``; ``.csv`` and ``.tsv``: source, target,
    weight, with those ids. In these the weight of a node's self-loop is x_i².

    Args:
        scaling: The balanced graph.
        node_ids: The user's id of each node; by default nodes are numbered from 0.
        path: The file to write, which ends in ``.npz``, ``.csv`` or ``.tsv``.

    Raises:
        RawlsError: If the file cannot be written or has another suffix.
    """
    path = Path(path)
    check_matrix_path(path)
    suffix = path.suffix.lower()
    starts, columns, values = (part.cpu().numpy() for part in scaling.csr())
    nodes = len(starts) - 1
    ids = node_id_array(node_ids, nodes)
    with atomic_file(path) as temporary:
        if suffix == ".npz":
            pieces: dict[str, Any] = {
                "data": values,
                "indices": columns,
                "indptr": starts,
                "shape": np.array([nodes, nodes]),
                "format": np.array(b"csr"),
                "scale": scaling.row_scale.cpu().numpy(),
            }
            if node_ids is not None:
                pieces["node_ids"] = ids
            with temporary.open("wb") as file:
                np.savez_compressed(file, allow_pickle=False, **pieces)
            return
        import pandas as pd

        rows = np.repeat(np.arange(nodes), np.diff(starts))
        frame = pd.DataFrame({"source": ids[rows], "target": ids[columns], "weight": values})
        separator = "," if suffix == ".csv" else "\t"
        frame.to_csv(temporary, index=False, sep=separator, float_format="%.17g")
