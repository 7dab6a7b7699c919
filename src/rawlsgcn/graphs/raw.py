"""Readers of the published raw files, equal to torch_geometric's ``process`` but sparse.

Each takes the raw paths in the order of the dataset class and returns a ``Data``.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch_geometric.data import Data
from torch_geometric.io.planetoid import read_planetoid_data

from .edges import clean_edges
from .features import compact
from .found import MASKS


def read_npz(paths: list[Path]) -> Data:
    """The archives of CitationFull, Coauthor and Amazon: binarised features, symmetric edges."""
    with np.load(paths[0], allow_pickle=False) as file:
        attr = _csr(file, "attr")
        adj = _csr(file, "adj").tocoo()
        y = file["labels"]
    attr.data = np.where(attr.data > 0, 1, attr.data).astype(np.float32)
    edge_index, _, _ = clean_edges(adj.row, adj.col, None, adj.shape[0])
    return Data(
        x=compact(attr),
        edge_index=edge_index,
        y=torch.from_numpy(y.astype(np.int64)),
    )


def read_planetoid(paths: list[Path]) -> Data:
    """The eight files of a Planetoid graph, by torch_geometric's reader.

    Seven of them are pickles, which can run code: they are first read by an unpickler that
    knows only the arrays they are published with.
    """
    for path in paths[:-1]:
        with path.open("rb") as file:
            _PlainUnpickler(file, encoding="latin1").load()
    return read_planetoid_data(str(paths[0].parent), paths[0].name.split(".")[1])


def read_geom_gcn(paths: list[Path]) -> Data:
    """The text files of Geom-GCN and its ten splits: directed arcs, as they are stored."""
    rows = [line.split("\t") for line in paths[0].read_text().splitlines()[1:]]
    x = np.array([np.fromstring(row[1], np.float32, sep=",") for row in rows])
    y = np.array([int(row[2]) for row in rows])
    if not rows:
        raise ValueError(f"{paths[0].name} has no nodes in it")
    arcs = np.loadtxt(paths[1], dtype=np.int64, skiprows=1, ndmin=2)
    arcs = np.unique(arcs, axis=0).T.copy()
    splits: dict[str, list[Any]] = {key: [] for key in MASKS}
    for path in paths[2:]:
        with np.load(path, allow_pickle=False) as file:
            for key in MASKS:
                splits[key].append(file[key].astype(bool))
    return Data(
        x=torch.from_numpy(x),
        edge_index=torch.from_numpy(arcs),
        y=torch.from_numpy(y),
        **{key: torch.from_numpy(np.stack(masks, 1)) for key, masks in splits.items()},
    )


READERS: dict[str, Callable[[list[Path]], Data]] = {
    "CitationFull": read_npz,
    "Coauthor": read_npz,
    "Amazon": read_npz,
    "Planetoid": read_planetoid,
    "WikipediaNetwork": read_geom_gcn,
}


def _csr(file: Any, prefix: str) -> Any:
    parts = tuple(file[f"{prefix}_{part}"] for part in ("data", "indices", "indptr"))
    matrix = sp.csr_matrix(parts, tuple(file[f"{prefix}_shape"]))
    matrix.check_format(full_check=True)
    return matrix


class _PlainUnpickler(pickle.Unpickler):
    _KNOWN = frozenset(
        {
            ("collections", "defaultdict"),
            ("__builtin__", "list"),
            ("builtins", "list"),
            ("_codecs", "encode"),
            ("numpy", "dtype"),
            ("numpy", "ndarray"),
            ("numpy.core.multiarray", "_reconstruct"),
            ("numpy._core.multiarray", "_reconstruct"),
            ("scipy.sparse.csr", "csr_matrix"),
            ("scipy.sparse._csr", "csr_matrix"),
        }
    )

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._KNOWN:
            raise pickle.UnpicklingError(f"it holds {module}.{name}, which is no plain array")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the old name of scipy's module
            return super().find_class(module, name)
