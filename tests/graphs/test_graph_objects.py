"""Graphs as objects of networkx and scipy, wherever a graph is accepted."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

import rawlsgcn as rg
from rawlsgcn.graphs import check, read

KARATE = nx.karate_club_graph()
CLUBS = [KARATE.nodes[node]["club"] for node in KARATE]


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dia"])
def test_a_scipy_matrix_is_an_adjacency_matrix(form: str) -> None:
    matrix = nx.to_scipy_sparse_array(KARATE).asformat(form)
    graph = read(matrix, labels=CLUBS)
    assert torch.equal(graph.edge_index, read(KARATE, labels="club").edge_index)
    assert graph.class_names == ["Mr. Hi", "Officer"]


@pytest.mark.parametrize("labels", [[0, 1] * 17, np.array([0, 1] * 17), torch.tensor([0, 1] * 17)])
def test_labels_and_features_may_be_arrays(labels: object) -> None:
    x = sp.random(34, 50, 0.05, format="coo", random_state=0)
    graph = read(nx.to_scipy_sparse_array(KARATE), labels=labels, features=x)
    assert graph.y.tolist() == [0, 1] * 17
    assert np.allclose(graph.x, x.toarray())


def test_every_door_takes_a_networkx_graph() -> None:
    graph = KARATE.copy()
    nx.set_node_attributes(graph, dict(zip(graph, CLUBS, strict=True)), "label")
    result = rg.fit(graph, "gcn", seeds=1, epochs=20)
    assert result.class_names == ["Mr. Hi", "Officer"]
    guesses = result.probabilities().argmax(1)
    assert rg.audit(graph, {"m": guesses}, resamples=100).how.nodes == 34
    assert check(graph).num_nodes == 34
    scaling = rg.balance(graph)
    assert scaling.converged
    assert len(rg.compare(graph, ["gcn"], seeds=1, epochs=2)) == 1


def test_balance_takes_a_data_and_counts_both_directions() -> None:
    data = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), edge_weight=torch.ones(2), num_nodes=4)
    both = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    expected = rg.balance(both, num_nodes=4).matrix()
    for found, each in zip(rg.balance(data).matrix(), expected, strict=True):
        assert torch.equal(found, each)
    with pytest.raises(rg.RawlsError, match="a graph has its own"):
        rg.balance(data, num_nodes=4)


def test_a_frame_of_edges_is_refused_whatever_is_beside_it() -> None:
    frame = pd.DataFrame({"source": [0, 1], "target": [1, 2]})
    with pytest.raises(rg.RawlsError, match=r"not DataFrame: write its edges with to_csv\("):
        read(frame, labels="club")


def test_sizes_that_disagree_are_one_sentence() -> None:
    said = (
        "the graph has 34 nodes, but features has 33 rows of features and the graph has 34 labels"
    )
    graph = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=34, y=torch.arange(34) % 2)
    with pytest.raises(rg.RawlsError, match=said):
        read(graph, features=np.ones((33, 2)))


def test_other_objects_are_refused_in_one_sentence() -> None:
    with pytest.raises(
        rg.RawlsError, match="a networkx graph or a scipy sparse matrix, not ndarray"
    ):
        check(np.eye(3))
    with pytest.raises(rg.RawlsError, match=r"the shape \(3, 4\), it must be square"):
        check(sp.csr_matrix((3, 4)))
    broken = sp.csr_matrix(np.eye(3))
    broken.indices[0] = 9
    with pytest.raises(rg.RawlsError, match=r"whose indices are wrong: .*must be < 3"):
        check(broken)
