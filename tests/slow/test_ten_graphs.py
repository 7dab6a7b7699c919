"""Ten graphs in ten formats go through train, auto, audit and predict with one command each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from sklearn import datasets, neighbors
from torch_geometric.data import Data
from torch_geometric.datasets import FakeDataset
from torch_geometric.utils import stochastic_blockmodel_graph
from typer.testing import CliRunner

from rawlsgcn.cli import app

pytestmark = pytest.mark.slow
Options = list[str]


def labels_file(folder: Path, labels: dict[object, object]) -> str:
    path = folder / "labels.csv"
    rows = "".join(f"{node},{label}\n" for node, label in labels.items())
    path.write_text(f"id,label\n{rows}")
    return str(path)


def karate(folder: Path) -> Options:
    """JSON node-link; the label is an attribute of the nodes."""
    path = folder / "karate.json"
    path.write_text(json.dumps(nx.node_link_data(nx.karate_club_graph(), edges="edges")))
    return ["--graph", str(path), "--labels", "club"]


def les_miserables(folder: Path) -> Options:
    """An edge list of names with blanks separated by commas; communities as words."""
    graph = nx.les_miserables_graph()
    rows = [f"{a},{b},{weight}\n" for a, b, weight in graph.edges(data="weight")]
    (folder / "miserables.csv").write_text("source,target,weight\n" + "".join(rows))
    parts = nx.community.greedy_modularity_communities(graph)
    labels = {node: f"community {i}" for i, part in enumerate(parts) for node in sorted(part)}
    return ["--graph", str(folder / "miserables.csv"), "--labels", labels_file(folder, labels)]


def barabasi_albert(folder: Path) -> Options:
    """A text file as networkx writes it; old nodes against new ones."""
    graph = nx.barabasi_albert_graph(200, 3, seed=0)
    nx.write_edgelist(graph, folder / "ba.edgelist")
    labels = {node: "old" if node < 100 else "new" for node in graph}
    return ["--graph", str(folder / "ba.edgelist"), "--labels", labels_file(folder, labels)]


def snap_blocks(folder: Path) -> Options:
    """A text file as SNAP has them, with comments and tabs."""
    graph = nx.planted_partition_graph(4, 50, 0.2, 0.02, seed=0)
    rows = "".join(f"{a}\t{b}\n" for a, b in graph.edges)
    (folder / "blocks.txt").write_text(f"# Undirected graph\n# FromNodeId\tToNodeId\n{rows}")
    labels = {node: node // 50 for node in graph}
    return ["--graph", str(folder / "blocks.txt"), "--labels", labels_file(folder, labels)]


def digits(folder: Path) -> Options:
    """scipy's CSR matrix of nearest neighbors, dense features and labels as .npy."""
    x, y = datasets.load_digits(n_class=5, return_X_y=True)
    x, y = x[:400], y[:400]
    sp.save_npz(folder / "knn.npz", neighbors.kneighbors_graph(x, 5))
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", y)
    return [
        *("--graph", str(folder / "knn.npz"), "--features", str(folder / "x.npy")),
        *("--labels", str(folder / "y.npy")),
    ]


def iris(folder: Path) -> Options:
    """Tables of words: features and labels by node id, in .tsv and .parquet."""
    data = datasets.load_iris()
    source, target = neighbors.kneighbors_graph(data.data, 4).nonzero()
    ids = np.array([f"flower {i}" for i in range(150)])
    edges = pd.DataFrame({"source": ids[source], "target": ids[target]})
    edges.to_parquet(folder / "iris.parquet", index=False)
    features = pd.DataFrame(data.data, columns=data.feature_names).assign(id=ids)
    features.to_csv(folder / "features.tsv", sep="\t", index=False)
    labels = dict(zip(ids, data.target_names[data.target], strict=True))
    return [
        *("--graph", str(folder / "iris.parquet"), "--features", str(folder / "features.tsv")),
        *("--labels", labels_file(folder, labels)),
    ]


def wine(folder: Path) -> Options:
    """One .npz with an edge index, COO features and words as labels."""
    data = datasets.load_wine()
    x = (data.data - data.data.mean(0)) / data.data.std(0)
    coo, arcs = sp.coo_matrix(x), neighbors.kneighbors_graph(x, 4).nonzero()
    np.savez(
        folder / "wine.npz",
        edge_index=np.stack(arcs),
        attr_data=coo.data,
        attr_row=coo.row,
        attr_col=coo.col,
        attr_shape=coo.shape,
        labels=data.target_names[data.target].astype(str),
    )
    return ["--graph", str(folder / "wine.npz")]


def block_model(folder: Path) -> Options:
    """A saved Data of torch_geometric's stochastic block model, with a COO tensor of features."""
    torch.manual_seed(0)
    chances = [[0.2, 0.02, 0.02], [0.02, 0.2, 0.02], [0.02, 0.02, 0.2]]
    edge_index = stochastic_blockmodel_graph([60, 60, 60], chances)
    y = torch.arange(180) // 60
    x = torch.relu(torch.randn(180, 8) + torch.nn.functional.one_hot(y, 8))
    torch.save(Data(edge_index=edge_index, x=x.to_sparse(), y=y), folder / "sbm.pt")
    return ["--graph", str(folder / "sbm.pt")]


def fake(folder: Path) -> Options:
    """A saved Data of torch_geometric's random graphs."""
    torch.manual_seed(0)
    data = FakeDataset(1, avg_num_nodes=200, num_classes=3, task="node")[0]
    torch.save(Data(edge_index=data.edge_index, x=data.x, y=data.y), folder / "fake.pt")
    return ["--graph", str(folder / "fake.pt")]


def caves(folder: Path) -> Options:
    """A directed JSON graph with several links between nodes, ids of text and a split."""
    graph = nx.MultiDiGraph(nx.connected_caveman_graph(6, 8))
    graph.add_edges_from(list(graph.edges)[:20])
    graph = nx.relabel_nodes(graph, {node: f"house {node}" for node in graph})
    rng = np.random.default_rng(0)
    for node, word in zip(graph, rng.choice(["train", "val", "test"], 48), strict=True):
        number = int(node.split()[1])
        graph.nodes[node].update(label=["north", "south"][number // 8 % 2], split=str(word))
    path = folder / "caves.json"
    path.write_text(json.dumps(nx.node_link_data(graph, edges="links")))
    return ["--graph", str(path)]


GRAPHS = [
    *(karate, les_miserables, barabasi_albert, snap_blocks, digits),
    *(iris, wine, block_model, fake, caves),
]


def call(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


@pytest.mark.parametrize("make", GRAPHS, ids=lambda make: make.__name__)
def test_a_graph_goes_through_every_command(
    make: Callable[[Path], Options], tmp_path: Path
) -> None:
    options = make(tmp_path)
    graph = [options[i] for i in range(len(options)) if options[2 * (i // 2)] != "--features"]
    said = call("train", *options, "--seeds", 1, "--epochs", 20, "--out", tmp_path / "model")
    assert " train, " in said or make is caves
    call("auto", *options, "--time-limit", 0.01, "--out", tmp_path / "auto")
    for folder in ("model", "auto"):
        file = tmp_path / folder / "predictions.csv"
        said = call("audit", *graph, "--predictions", file, "--resamples", 100)
        assert "these are not judged" in said
        again = tmp_path / f"{folder}.csv"
        call("predict", "--model", tmp_path / folder, *options, "--out", again)
        first, second = pd.read_csv(file), pd.read_csv(again)
        assert list(first.columns) == list(second.columns)
        for column in ("node", "predicted", "split"):
            assert first[column].equals(second[column]), column
