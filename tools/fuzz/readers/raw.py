"""The published raw files of the paper's graphs."""

from __future__ import annotations

import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from rawlsgcn.graphs import load
from rawlsgcn.graphs.catalog import CATALOG

from ..reader import Files, Reader
from . import graphs as tiny


def _read(name: str, folder: Path) -> object:
    """Load a dataset whose raw files lie in ``folder``: the root is one that points there."""
    root = folder.parent / "root"
    raw = CATALOG[name].raw_dir(root)
    if not raw.exists():
        raw.parent.mkdir(parents=True, exist_ok=True)
        raw.symlink_to(folder, target_is_directory=True)
    return load(name, root=root, split="random")


def _archive() -> list[Files]:
    parts: dict[str, Any] = {}
    for prefix, matrix in (("adj", tiny.adjacency()), ("attr", sp.csr_matrix(tiny.X))):
        parts |= {
            f"{prefix}_data": matrix.data,
            f"{prefix}_indices": matrix.indices,
            f"{prefix}_indptr": matrix.indptr,
            f"{prefix}_shape": np.array(matrix.shape),
        }
    return [{"cora_ml.npz": tiny.npz(**parts, labels=tiny.Y)}]


def _planetoid() -> list[Files]:
    x = sp.csr_matrix(np.repeat(tiny.X, 100, axis=0).astype(np.float32))
    y = np.eye(2, dtype=np.int32)[np.repeat(tiny.Y, 100)]
    neighbors = defaultdict(list, {i: [(i + 1) % 600, (i + 7) % 600] for i in range(600)})
    parts = {
        "x": x[:20], "tx": x[560:], "allx": x[:560],
        "y": y[:20], "ty": y[560:], "ally": y[:560], "graph": neighbors,
    }  # fmt: skip
    files = {f"ind.citeseer.{name}": pickle.dumps(part, 2) for name, part in parts.items()}
    index = "\n".join(str(560 + (7 * i) % 40) for i in range(40))
    return [{**files, "ind.citeseer.test.index": f"{index}\n".encode()}]


def _geom_gcn() -> list[Files]:
    head = "node_id\tfeature\tlabel\n"
    rows = "".join(
        f"{i}\t{','.join(str(int(v)) for v in tiny.X[i])}\t{tiny.Y[i]}\n" for i in range(tiny.NODES)
    )
    arcs = "".join(f"{a}\t{b}\n" for a, b in zip(tiny.SOURCE, tiny.TARGET, strict=True))
    masks = {key: mask.astype(np.uint8) for key, mask in tiny.MASKS.items()}
    splits = {f"chameleon_split_0.6_0.2_{i}.npz": tiny.npz(**masks) for i in range(10)}
    return [
        {
            "out1_node_feature_label.txt": (head + rows).encode(),
            "out1_graph_edges.txt": ("node_id\tnode_id\n" + arcs).encode(),
            **splits,
        }
    ]


READERS = [
    Reader("raw-npz", _archive, lambda at: _read("cora-ml", at), known_as=("cora-ml", "Cora-ML")),
    Reader(
        "raw-planetoid",
        _planetoid,
        lambda at: _read("citeseer", at),
        known_as=("citeseer", "Citeseer"),
    ),
    Reader(
        "raw-geom-gcn",
        _geom_gcn,
        lambda at: _read("chameleon", at),
        ("feature_label.txt", "edges.txt", "0.2_0.npz", "0.2_1.npz"),
        known_as=("chameleon", "Chameleon"),
    ),
]
