"""The user's graphs, and the features and labels beside them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from rawlsgcn.evaluation.node_index import NodeIndex, read_column
from rawlsgcn.graphs import read

from ..mutations.tensors import save
from ..reader import Files, Reader

NODES = 6
SOURCE = np.array([0, 1, 2, 3, 4, 0, 5, 1])
TARGET = np.array([1, 2, 3, 4, 5, 2, 0, 1])
WEIGHT = np.array([1.0, 2.0, 0.5, 1.0, 3.0, 1.0, 1.0, 1.0])
X = np.array([[0, 1.5, 0], [1, 0, 2], [0, 0, 3.25], [1, 1, 1], [2, 0, 0], [0, 0, 7]])
Y = np.array([0, 1, 0, 1, 0, 1])
IDS = np.array([10, 20, 30, 40, 50, 60])
NAMES = [f"n{i}" for i in IDS]
PARTS = np.arange(NODES) % 3
MASKS = {f"{name}_mask": np.equal(PARTS, i) for i, name in enumerate(("train", "val", "test"))}


def read_graph(folder: Path) -> object:
    """Read g.*, or bare.* of which only the edges are needed, with x.* and y.* where they are."""
    files = {path.stem: path for path in folder.iterdir()}
    if "by" in files:
        return read_column(files["by"], NodeIndex(IDS if "ids" in files else None, NODES))
    needed = "g" in files
    return read(
        files["g" if needed else "bare"],
        features=files.get("x"),
        labels=files.get("y"),
        need_features=needed,
        need_labels=needed,
    )


def npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _matrix(matrix: Any) -> bytes:
    file = io.BytesIO()
    sp.save_npz(file, matrix, compressed=False)
    return file.getvalue()


def _parts(prefix: str, matrix: Any) -> dict[str, Any]:
    return {
        f"{prefix}_data": matrix.data,
        f"{prefix}_indices": matrix.indices,
        f"{prefix}_indptr": matrix.indptr,
        f"{prefix}_shape": np.array(matrix.shape),
    }


def adjacency() -> Any:
    matrix = sp.coo_matrix((WEIGHT, (SOURCE, TARGET)), shape=(NODES, NODES)).tocsr()
    matrix.sort_indices()
    return matrix


def _npz_seeds() -> list[Files]:
    a, edge_index = adjacency(), np.stack([SOURCE, TARGET])
    return [
        {"g.npz": npz(edge_index=edge_index, edge_weight=WEIGHT, x=X, y=Y, **MASKS)},
        {"g.npz": npz(edge_index=edge_index, num_nodes=NODES, x=X, y=Y, node_ids=IDS)},
        {"bare.npz": npz(edge_index=edge_index, num_nodes=NODES, node_ids=np.array(NAMES))},
        {"g.npz": npz(**_parts("adj", a), **_parts("attr", sp.csr_matrix(X)), labels=Y)},
        *({"bare.npz": _matrix(a.asformat(form))} for form in ("csr", "csc", "coo", "bsr", "dia")),
        {"g.npz": _matrix(a), "x.npz": _matrix(sp.csc_matrix(X)), "y.npz": npz(labels=Y, **MASKS)},
        {"g.npz": _matrix(a), "x.npz": _matrix(sp.coo_matrix(X)), "y.npz": npz(y=Y)},
        {"g.npz": _matrix(a), "x.npz": _matrix(sp.bsr_matrix(X)), "y.npz": npz(y=Y)},
        {"g.npz": npz(edge_index=edge_index, node_ids=IDS, x=X, y=Y), "y.csv": _labels(",")},
    ]


def _npy_seeds() -> list[Files]:
    graph = _edges(",", plain=True)
    return [{"g.csv": graph, "x.npy": npy(X), "y.npy": npy(Y)}]


def _text(frame: pd.DataFrame, separator: str, **how: Any) -> bytes:
    text: str = frame.to_csv(sep=separator, index=False, **how)
    return text.encode()


def _edges(separator: str, plain: bool = False, text: bool = False) -> bytes:
    if plain:
        return _text(pd.DataFrame({0: SOURCE, 1: TARGET}), separator, header=False)
    ids = np.array(NAMES) if text else IDS
    frame = pd.DataFrame({"source": ids[SOURCE], "target": ids[TARGET], "weight": WEIGHT})
    return _text(frame, separator)


def _features(separator: str, text: bool = False) -> bytes:
    ids = pd.DataFrame({"id": NAMES if text else IDS})
    return _text(pd.concat([ids, pd.DataFrame(X, columns=list("abc"))], axis=1), separator)


def _labels(separator: str, text: bool = False) -> bytes:
    split = np.array(["train", "val", "test"])[PARTS]
    frame = pd.DataFrame({"id": NAMES if text else IDS, "label": Y, "split": split})
    return _text(frame, separator)


def _text_seeds(suffix: str, separator: str) -> list[Files]:
    plain = _text(pd.DataFrame({0: range(NODES), 1: Y}), separator, header=False)
    named = pd.DataFrame({"node": range(NODES), "y_true": np.array(["owl", "cat"])[Y]})
    words = _text(named, separator)
    value = pd.DataFrame({"id": IDS, "income": WEIGHT[:NODES]})
    word = pd.DataFrame({"id": range(NODES), "town": NAMES})
    return [
        {
            f"g{suffix}": _edges(separator),
            f"x{suffix}": _features(separator),
            f"y{suffix}": _labels(separator),
        },
        {
            f"g{suffix}": _edges(separator, text=True),
            f"x{suffix}": _features(separator, text=True),
            f"y{suffix}": _labels(separator, text=True),
        },
        {f"bare{suffix}": _edges(separator, plain=True)},
        {f"bare{suffix}": _edges(separator, plain=True), f"y{suffix}": plain},
        {f"bare{suffix}": _edges(separator, plain=True), f"y{suffix}": words},
        {f"bare{suffix}": _edges(separator, text=True)},
        {f"by{suffix}": _text(value, separator), "ids": b""},
        {f"by{suffix}": _text(word, separator)},
    ]


def _txt_seeds() -> list[Files]:
    """Edge lists as SNAP publishes them: blanks or tabs, comments first."""
    comment = b"# Nodes: 6 Edges: 8\n# FromNodeId ToNodeId\n"
    labels = {"x.csv": _features(","), "y.csv": _labels(",")}
    return [
        *({f"bare{suffix}": comment + _edges(by, plain=True)} for suffix in _TEXT for by in " \t,"),
        {"g.txt": comment + _edges(" ").split(b"\n", 1)[1], **labels},
        {"bare.edges": b"% sym\n" + _edges("\t", text=True)},
    ]


_TEXT = (".txt", ".edges", ".edgelist")


def _json_seeds() -> list[Files]:
    """What networkx.node_link_data gives, with attributes of nodes and links."""
    links = [
        {"source": NAMES[i], "target": NAMES[j], "weight": w}
        for i, j, w in zip(SOURCE, TARGET, WEIGHT, strict=True)
    ]
    split = ("train", "val", "test")
    nodes = [
        {"id": NAMES[i], "x": X[i].tolist(), "label": ("owl", "cat")[Y[i]], "split": split[i % 3]}
        for i in range(NODES)
    ]
    numbered = [{"source": int(i), "target": int(j)} for i, j in zip(SOURCE, TARGET, strict=True)]
    masks = [{key: bool(mask[i]) for key, mask in MASKS.items()} for i in range(NODES)]
    plain = [{"y": int(Y[i]), "features": X[i].tolist(), **masks[i]} for i in range(NODES)]
    head = {"directed": False, "multigraph": False, "graph": {}}
    documents = [
        ("g", {**head, "nodes": nodes, "edges": links}),
        ("g", {"directed": True, "nodes": plain, "links": numbered}),
        ("bare", {"nodes": [{"id": [0, i]} for i in range(2)], "links": []}),
    ]
    return [{f"{name}.json": json.dumps(each).encode()} for name, each in documents]


def parquet(frame: pd.DataFrame, **how: Any) -> bytes:
    file = io.BytesIO()
    frame.to_parquet(file, **how)
    return file.getvalue()


def _parquet_seeds() -> list[Files]:
    names = np.array(NAMES)
    graph = pd.DataFrame({"source": IDS[SOURCE], "target": IDS[TARGET], "weight": WEIGHT})
    text = pd.DataFrame({"from": names[SOURCE], "to": names[TARGET]})
    x = pd.DataFrame(X, columns=list("abc"), index=pd.Index(IDS, name="id"))
    y = pd.DataFrame({"id": IDS, "label": Y, "split": np.array(["train", "val", "test"])[PARTS]})
    return [
        {"g.parquet": parquet(graph), "x.parquet": parquet(x), "y.parquet": parquet(y)},
        {"bare.parquet": parquet(text)},
        {"bare.parquet": parquet(graph, index=True)},
        {"by.parquet": parquet(pd.DataFrame({"id": IDS, "town": NAMES})), "ids": b""},
    ]


def _pt_seeds() -> list[Files]:
    edges = torch.from_numpy(np.stack([SOURCE, TARGET]))
    parts: dict[str, Any] = {
        "edge_index": edges,
        "edge_weight": torch.from_numpy(WEIGHT).float(),
        "x": torch.from_numpy(X).float(),
        "y": torch.from_numpy(Y),
    }
    masks = {key: torch.from_numpy(mask) for key, mask in MASKS.items()}
    adj_t = torch.sparse_coo_tensor(edges.flip(0), parts["edge_weight"], (NODES, NODES)).coalesce()
    rest = {key: parts[key] for key in ("x", "y")}
    data = Data(**parts, **masks)
    return [
        {"g.pt": save(data)},
        {"g.pt": save((data, None))},
        {"g.pt": save({**parts, "num_nodes": NODES, "node_ids": torch.from_numpy(IDS)})},
        {"g.pt": save(Data(**rest, adj_t=adj_t.to_sparse_csr()))},
        {"g.pt": save(Data(**rest, adj_t=adj_t))},
        {"g.pt": save({**parts, "x": parts["x"].to_sparse_csr(), "node_ids": NAMES})},
        {"g.pt": save(Data(edge_index=edges, num_nodes=NODES, y=rest["y"])), "x.npy": npy(X)},
        {"bare.pt": save({"edge_index": edges.tolist()})},
        {"g.pt": save(data, legacy=True)},
    ]


READERS = [
    Reader("npz", _npz_seeds, read_graph, (".npz",)),
    Reader("npy", _npy_seeds, read_graph, (".npy",)),
    Reader("csv", lambda: _text_seeds(".csv", ","), read_graph, (".csv",)),
    Reader("tsv", lambda: _text_seeds(".tsv", "\t"), read_graph, (".tsv",)),
    Reader("txt", _txt_seeds, read_graph, _TEXT),
    Reader("json", _json_seeds, read_graph, (".json",)),
    Reader("parquet", _parquet_seeds, read_graph, (".parquet",)),
    Reader("pt", _pt_seeds, read_graph, (".pt",)),
]
