"""Folders of the Open Graph Benchmark: text and arrays, equal to the same graph in memory."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.graphs import check
from rawlsgcn.graphs.graph_fingerprint import fingerprint
from rawlsgcn.graphs.readers import features
from rawlsgcn.graphs.streaming import arc_sorter, ogb_folders
from rawlsgcn.graphs.streaming.ogb_folders import ogb_raw_folder, shard_ogb

NODES = 50


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arc_sorter, "_FEWEST", 40)
    monkeypatch.setattr(ogb_folders, "ROWS", 13)
    monkeypatch.setattr(features, "CELLS", 30)


def table(path: Path, values: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(values).to_csv(path, header=False, index=False, compression="gzip", na_rep="nan")


@pytest.fixture
def graph() -> Data:
    random = np.random.default_rng(0)
    y = torch.from_numpy(random.integers(0, 3, NODES))
    y[7] = -1
    part = torch.from_numpy(random.integers(0, 3, NODES))
    return Data(
        x=torch.from_numpy(random.normal(size=(NODES, 4)).round(3)).float(),
        y=y,
        edge_index=torch.from_numpy(random.integers(0, NODES, (2, 100))),
        num_nodes=NODES,
        **{f"{name}_mask": part == i for i, name in enumerate(("train", "val", "test"))},
    )


@pytest.fixture
def text(graph: Data, tmp_path: Path) -> Path:
    raw = tmp_path / "ogbn_tiny" / "raw"
    table(raw / "edge.csv.gz", graph.edge_index.t().numpy())
    table(raw / "num-node-list.csv.gz", [NODES])
    table(raw / "num-edge-list.csv.gz", [100])
    table(raw / "node-feat.csv.gz", graph.x.numpy())
    table(raw / "node-label.csv.gz", np.where(graph.y < 0, np.nan, graph.y.numpy()))
    for name, mask in (("train", "train"), ("valid", "val"), ("test", "test")):
        nodes = graph[f"{mask}_mask"].nonzero().numpy()
        table(tmp_path / "ogbn_tiny" / "split" / "time" / f"{name}.csv.gz", nodes)
    return tmp_path / "ogbn_tiny"


@pytest.fixture
def binary(graph: Data, text: Path) -> Path:
    folder = text.with_name("ogbn_large")
    shutil.copytree(text / "split", folder / "split")
    (folder / "raw").mkdir()
    np.savez_compressed(
        folder / "raw" / "data.npz",
        edge_index=graph.edge_index.numpy(),
        node_feat=graph.x.numpy(),
        num_nodes_list=np.array([NODES]),
        num_edges_list=np.array([100]),
    )
    labels = np.where(graph.y < 0, np.nan, graph.y.numpy())[:, None]
    np.savez(folder / "raw" / "node-label.npz", node_label=labels)
    return folder


@pytest.mark.parametrize("form", ["text", "binary"])
def test_the_shards_are_those_of_the_graph(
    form: str, graph: Data, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    folder: Path = request.getfixturevalue(form)
    shards, nodes = shard_ogb(tmp_path / "shards", 3, folder, memory=1)
    clean = check(graph)
    assert shards.fingerprint == fingerprint(clean)
    assert shards.name == folder.name
    assert torch.equal(nodes.train_mask, clean.train_mask)
    again, _ = shard_ogb(tmp_path / "again", 2, folder / "raw", split="random")
    assert again.fingerprint.split("split")[0] == shards.fingerprint.split("split")[0]


@pytest.mark.parametrize("form", ["text", "binary"])
def test_a_folder_without_labels_is_an_unlabeled_graph(
    form: str, graph: Data, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    folder: Path = request.getfixturevalue(form)
    next((folder / "raw").glob("node-label*")).unlink()
    shards, _ = shard_ogb(tmp_path / "shards", 3, folder, memory=1)
    for key in ("y", "train_mask", "val_mask", "test_mask"):
        del graph[key]
    assert shards.fingerprint == fingerprint(check(graph, need_labels=False))


def test_a_folder_of_anything_else_is_refused(tmp_path: Path) -> None:
    assert ogb_raw_folder(tmp_path) is None
    with pytest.raises(RawlsError, match=r"without edge\.csv\.gz or data\.npz"):
        shard_ogb(tmp_path / "shards", 2, tmp_path)


@pytest.mark.parametrize(
    ("file", "values", "said"),
    [
        ("raw/edge.csv.gz", [[1, 2], [3, 99]], r"edge.csv.gz, line 2: node 99 is out of range"),
        ("raw/edge.csv.gz", [[1, 2], [3, "x"]], r"edge.csv.gz, line 2, column 2: 'x' is not a who"),
        ("raw/edge.csv.gz", [[1, 2, 3]], r"edge.csv.gz has 3 columns, not 2"),
        ("raw/node-feat.csv.gz", np.ones((49, 2)), r"node-feat.csv.gz has 49 rows for 50 nodes"),
        ("raw/node-feat.csv.gz", np.ones((90, 2)), r"node-feat.csv.gz has more rows than 50"),
        ("raw/node-label.csv.gz", np.ones((50, 2)), r"node-label.csv.gz has 2 columns"),
        ("raw/node-label.csv.gz", np.ones(49), r"has 49 labels for 50 nodes"),
        ("raw/num-node-list.csv.gz", [20, 30], r"holds 2 graphs"),
        ("split/time/test.csv.gz", [50], r"must hold numbers of nodes, from 0 to 49"),
    ],
)
def test_damaged_text_is_named(
    file: str, values: Any, said: str, text: Path, tmp_path: Path
) -> None:
    table(text / file, values)
    with pytest.raises(RawlsError, match=said):
        shard_ogb(tmp_path / "shards", 2, text)
    assert not (tmp_path / "shards").exists()


def test_missing_and_cut_files_are_named(text: Path, tmp_path: Path) -> None:
    feat = text / "raw" / "node-feat.csv.gz"
    content = feat.read_bytes()
    feat.write_bytes(content[: len(content) // 2])
    with pytest.raises(RawlsError, match=r"node-feat\.csv\.gz is damaged or cut short"):
        shard_ogb(tmp_path / "shards", 2, text)
    feat.unlink()
    with pytest.raises(RawlsError, match=r"there is no file .*node-feat\.csv\.gz"):
        shard_ogb(tmp_path / "shards", 2, text)
    feat.write_bytes(gzip.compress(b""))
    with pytest.raises(RawlsError, match=r"node-feat\.csv\.gz"):
        shard_ogb(tmp_path / "shards", 2, text)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"edge_index": np.array([[0, 1], [2, 99]])}, r"arc 1 \(counted from 0\) is between 1 and"),
        ({"edge_index": np.ones((3, 4), int)}, r"not \(2, edges\)"),
        ({"edge_index": np.ones((2, 4))}, r"edge_index is an array of float64"),
        ({"edge_index": np.asfortranarray(np.ones((2, 4), int))}, r"stored by columns"),
        ({"node_feat": np.ones((49, 2))}, r"node_feat has the shape \(49, 2\) for 50 nodes"),
        ({"node_feat": np.full((50, 1), np.nan)}, r"node 0 .* NaN or infinite"),
        (
            {"node_feat": np.array([["a", None]] * 50, dtype=object)},
            r"node_feat is an array",
        ),
        ({"node_feat": None}, r"data.npz has no node_feat"),
        ({"num_nodes_list": np.array([1, 2])}, r"holds 2 graphs"),
    ],
)
def test_damaged_arrays_are_named(
    change: dict[str, Any], said: str, binary: Path, tmp_path: Path
) -> None:
    path = binary / "raw" / "data.npz"
    with np.load(path) as archive:
        arrays = {key: archive[key] for key in archive.files} | change
    np.savez(path, **{key: value for key, value in arrays.items() if value is not None})
    with pytest.raises(RawlsError, match=said):
        shard_ogb(tmp_path / "shards", 2, binary)
    assert not (tmp_path / "shards").exists()
