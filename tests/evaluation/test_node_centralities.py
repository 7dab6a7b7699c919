"""What nodes are grouped by, against networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.evaluation.node_centralities import NodeColumn, check_complete, column_of


@pytest.fixture(scope="module")
def network() -> nx.Graph:
    network = nx.barabasi_albert_graph(120, 3, seed=0)
    network.add_nodes_from(range(120, 125))  # without neighbors
    return network


@pytest.fixture(scope="module")
def graph(network: nx.Graph) -> Data:
    one_way = torch.tensor(list(network.edges)).t()
    return Data(edge_index=torch.cat([one_way, one_way.flip(0)], 1), num_nodes=len(network))


def test_degree_core_and_pagerank_are_those_of_networkx(network: nx.Graph, graph: Data) -> None:
    expected = {
        "degree": dict(network.degree),
        "core": nx.core_number(network),
        "pagerank": nx.pagerank(network, tol=1e-14, max_iter=1000),
    }
    for name, values in expected.items():
        column = column_of(graph, name)
        assert column.values == pytest.approx([values[node] for node in range(125)], abs=1e-10)
        assert column.ordered
        assert column.single == (name != "pagerank")


def test_a_user_column_is_named_apart_from_a_built_in_one(graph: Data) -> None:
    assert column_of(graph, ("degree", np.arange(125))).name == "degree (yours)"
    assert not column_of(graph, ["a"] * 125).ordered


def test_none_is_no_name_of_a_group(graph: Data) -> None:
    column = column_of(graph, ("city", ["Bath", None, np.nan, *["York"] * 122]))
    with pytest.raises(RawlsError, match="no value for node 1 and 1 other evaluated nodes"):
        check_complete(column, np.arange(125), None)


def test_an_unknown_column_may_be_a_file(graph: Data) -> None:
    with pytest.raises(RawlsError, match=r"'group', and no file: give degree, .* or a file of"):
        column_of(graph, "group")


def test_a_node_without_a_value_is_named() -> None:
    column = NodeColumn("age", np.array([3.0, np.nan, np.nan]))
    check_complete(column, np.array([0]), None)
    with pytest.raises(RawlsError, match="no value for node n1 and 1 other evaluated nodes"):
        check_complete(column, np.array([0, 1, 2]), ["n0", "n1", "n2"])
