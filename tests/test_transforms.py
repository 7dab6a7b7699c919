"""The transforms: DoublyStochastic, beside GCNNorm in manner, and LiftLowDegrees."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import dense_form, graphs
from torch import Tensor
from torch.utils.data.datapipes.iter import IterableWrapper
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import GCNConv, GraphConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.transforms import Compose, ToSparseTensor
from torch_geometric.utils import subgraph

import rawlsgcn as rg
from rawlsgcn import RawlsError
from rawlsgcn.balancing import propagation_matrix
from rawlsgcn.graphs import lift_low_degrees
from rawlsgcn.graphs.tf_idf import tf_idf
from rawlsgcn.transforms import DoublyStochastic, LiftLowDegrees, doubly_stochastic_norm


def dense(edges: Tensor, weight: Tensor, nodes: int) -> Tensor:
    return torch.zeros(nodes, nodes, dtype=weight.dtype).index_put(
        tuple(edges), weight, accumulate=True
    )


@settings(max_examples=60, deadline=None)
@given(graph=graphs())
def test_it_is_the_matrix_of_the_method_rawlsgcn_graph(graph: Data) -> None:
    """... which is the doubly stochastic form of Â, and so that of A + I."""
    n, given = graph.num_nodes, graph.get("edge_weight")
    edges, weight = doubly_stochastic_norm(graph.edge_index, given, n, dtype=torch.float64)
    method = propagation_matrix(graph.edge_index, given, n, "doubly-stochastic", torch.float64)
    torch.testing.assert_close(dense(edges, weight, n), method.to_dense(), rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(dense(edges, weight, n), dense_form(graph, "doubly-stochastic"))


@settings(max_examples=40, deadline=None)
@given(graph=graphs(), layout=st.sampled_from([None, torch.sparse_coo, torch.sparse_csr]))
def test_edges_come_as_from_gcn_norm(graph: Data, layout: torch.layout | None) -> None:
    """The same edges in the same order, and a second time changes nothing."""
    n, weight = graph.num_nodes, graph.get("edge_weight")
    given: Tensor = graph.edge_index
    if layout is not None:
        values = torch.ones(graph.num_edges, dtype=torch.float64) if weight is None else weight
        given = torch.sparse_coo_tensor(given, values, (n, n)).coalesce().to_sparse(layout=layout)
        weight = None
    theirs, _ = gcn_norm(given, weight, n, dtype=torch.float64)
    ours, entries = doubly_stochastic_norm(given, weight, n, dtype=torch.float64)
    again, same = doubly_stochastic_norm(ours, entries, n)
    if layout is None:
        assert torch.equal(ours, theirs)
        assert torch.equal(again, ours)
        torch.testing.assert_close(same, entries, rtol=1e-9, atol=1e-12)
        return
    assert ours.layout == layout
    assert entries is None
    assert torch.equal(ours.to_dense() > 0, theirs.to_dense() > 0)
    torch.testing.assert_close(again.to_dense(), ours.to_dense(), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(ours.to_dense(), dense_form(graph, "doubly-stochastic"))


def test_the_signature_is_that_of_gcn_norm() -> None:
    theirs = [name for name in inspect.signature(gcn_norm).parameters if name != "improved"]
    assert list(inspect.signature(doubly_stochastic_norm).parameters) == theirs
    with pytest.raises(RawlsError, match="flow must be 'source_to_target' or"):
        doubly_stochastic_norm(torch.tensor([[0], [1]]), flow="upwards")


@settings(max_examples=30, deadline=None)
@given(graph=graphs(weighted=True), data=st.data())
def test_a_part_of_the_graph_gets_exact_weights_from_the_scaling(
    graph: Data, data: st.DataObject
) -> None:
    graph.x = graph.x.to_dense()
    raw_edges, raw_weight = graph.edge_index, graph.edge_weight
    whole = DoublyStochastic()(graph)
    assert whole.is_node_attr("scaling")
    count = data.draw(st.integers(1, whole.num_nodes))
    nodes = torch.randperm(whole.num_nodes, generator=torch.Generator().manual_seed(count))[:count]
    nodes = nodes.sort().values
    edges, weight = subgraph(nodes, raw_edges, raw_weight, True, num_nodes=whole.num_nodes)
    scaling = whole.subgraph(nodes).scaling
    entries = scaling[edges[0]] * weight * scaling[edges[1]]
    exact = dense(whole.edge_index, whole.edge_weight, whole.num_nodes)[nodes][:, nodes]
    torch.testing.assert_close(exact - exact.diagonal().diag(), dense(edges, entries, count))
    torch.testing.assert_close(exact.diagonal(), scaling**2)


def test_a_layer_that_normalises_leaves_it_as_it_is() -> None:
    graph = DoublyStochastic()(rg.synthetic(300, classes=2))
    x = torch.rand(300, 3)
    layer, raw = GCNConv(3, 2), GCNConv(3, 2, normalize=False)
    raw.load_state_dict(layer.state_dict())
    weights = graph.edge_index, graph.edge_weight
    torch.testing.assert_close(layer(x, *weights), raw(x, *weights))
    # Rows that sum to one leave a constant as it is, in any layer that takes edge weights.
    other = GraphConv(1, 1, bias=False)
    torch.nn.init.ones_(other.lin_rel.weight)
    torch.nn.init.zeros_(other.lin_root.weight)
    torch.testing.assert_close(other(torch.ones(300, 1), *weights), torch.ones(300, 1))


def test_in_a_pipeline() -> None:
    graph = rg.synthetic(100, classes=2)
    graph.x = graph.x.to_dense()
    sparse = Compose([ToSparseTensor(layout=torch.sparse_csr), DoublyStochastic()])(graph)
    assert sparse.adj_t.layout == torch.sparse_csr
    torch.testing.assert_close(sparse.adj_t.to_dense().sum(0), torch.ones(100))
    assert sparse.scaling.shape == (100,)
    (piped,) = IterableWrapper([graph]).doubly_stochastic()
    assert piped.edge_weight is not None
    assert graph.get("edge_weight") is None  # a transform works on a copy
    assert str(DoublyStochastic()) == "DoublyStochastic(add_self_loops=True)"


def test_a_directed_graph_has_two_scalings() -> None:
    edges = torch.tensor([[0, 1, 2, 0], [1, 2, 0, 2]])
    weight = torch.tensor([1.0, 2.0, 3.0, 4.0])
    graph = DoublyStochastic()(Data(edge_index=edges, edge_weight=weight, num_nodes=3))
    matrix = dense(graph.edge_index, graph.edge_weight, 3)
    torch.testing.assert_close(matrix.sum(0), torch.ones(3))
    torch.testing.assert_close(matrix.sum(1), torch.ones(3))
    assert graph.scaling.shape == (3, 2)
    entries = graph.scaling[edges[0], 0] * weight * graph.scaling[edges[1], 1]
    torch.testing.assert_close(graph.edge_weight[:4], entries)


def test_without_loops_only_what_has_a_form() -> None:
    square = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 0], [1, 0, 2, 1, 3, 2, 0, 3]])
    edges, weight = doubly_stochastic_norm(square, add_self_loops=False)
    assert torch.equal(edges, square)
    torch.testing.assert_close(weight, torch.full((8,), 0.5))
    with pytest.raises(RawlsError, match="no doubly stochastic form"):
        doubly_stochastic_norm(square[:, :4], num_nodes=3, add_self_loops=False)


def test_refusals() -> None:
    with pytest.raises(RawlsError, match=r"not a HeteroData.*to_homogeneous"):
        DoublyStochastic()(HeteroData())
    with pytest.raises(RawlsError, match="needs a graph with edge_index or adj_t"):
        DoublyStochastic()(Data(x=torch.rand(3, 2)))
    with pytest.raises(RawlsError, match="only a square matrix"):
        doubly_stochastic_norm(torch.rand(2, 3).to_sparse_csr())


PAIR = torch.tensor([[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"edge_index": None}, "a tensor, not NoneType"),
        ({"edge_index": [[0, 1], [1, 0]]}, "a tensor, not list"),
        ({"edge_index": PAIR.float()}, r"shape \(2, E\) and integers"),
        ({"edge_index": torch.ones(3, 2).long()}, r"shape \(2, E\) and integers"),
        ({"edge_index": -PAIR}, "got node -1"),
        ({"edge_index": PAIR, "num_nodes": 1}, "got node 1, but the 1 nodes"),
        (
            {"edge_index": PAIR, "num_nodes": "two"},
            "a whole number of at least 0, not 'two'",
        ),
        (
            {"edge_index": PAIR, "edge_weight": torch.ones(3)},
            r"weights of shape \(3,\) for 2 edges",
        ),
        ({"edge_index": PAIR, "edge_weight": torch.ones(2, 1)}, "one weight for each edge"),
        ({"edge_index": PAIR, "edge_weight": [1.0, 1.0]}, "real numbers, not list"),
        (
            {"edge_index": PAIR, "edge_weight": torch.ones(2) * 1j},
            "real numbers, not torch.complex",
        ),
        ({"edge_index": PAIR, "edge_weight": -torch.ones(2)}, "at least 0 can be balanced"),
        ({"edge_index": PAIR, "dtype": torch.int64}, "floating-point type, not in torch.int64"),
        ({"edge_index": PAIR, "dtype": "float32"}, "floating-point type, not in float32"),
        ({"edge_index": torch.ones(3).to_sparse()}, "only a square matrix"),
    ],
)
def test_arguments_that_do_not_fit_are_one_sentence(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(RawlsError, match=said):
        doubly_stochastic_norm(**arguments)


@settings(max_examples=40, deadline=None)
@given(graph=graphs(), features=st.sampled_from(["tf-idf", "raw"]))
def test_the_lift_adds_edges_and_keeps_those_of_the_graph(graph: Data, features: str) -> None:
    weight = graph.get("edge_weight")
    before = graph.edge_index.clone()
    result = LiftLowDegrees(min_degree=4, features=features)(graph)
    x = tf_idf(graph.x) if features == "tf-idf" else graph.x
    lifted = lift_low_degrees(before, x, edge_weight=weight, min_degree=4)
    assert torch.equal(result.edge_index, lifted.edge_index)
    assert torch.equal(graph.edge_index, before)  # a transform works on a copy
    assert result.lift_note == lifted.note
    if weight is None:
        assert "edge_weight" not in result
    else:
        assert torch.equal(result.edge_weight, lifted.edge_weight)
        assert result.edge_weight.dtype == weight.dtype


@pytest.mark.parametrize("columns", [(), (1,)])
def test_the_lift_extends_numbers_of_edges(columns: tuple[int, ...]) -> None:
    edges = torch.tensor([[1, 0], [0, 1]])
    values = torch.tensor([5, 7]).view(2, *columns)
    graph = Data(x=torch.ones(3, 1), edge_index=edges, edge_attr=values)
    result = LiftLowDegrees(features="raw")(graph)
    assert result.edge_index.tolist() == [[0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1]]
    assert result.edge_attr.tolist() == torch.tensor([7, 1, 5, 1, 1, 1]).view(6, *columns).tolist()


def test_one_zero_in_dense_features_does_not_change_what_is_compared() -> None:
    graph = rg.synthetic(200, seed=4)
    graph.x = torch.rand(200, 20, generator=torch.Generator().manual_seed(0)) + 0.01
    before = LiftLowDegrees()(graph).edge_index
    graph.x[0, 0] = 0
    after = LiftLowDegrees()(graph).edge_index
    assert abs(int(after[0].bincount().max()) - int(before[0].bincount().max())) < 5
    constant = Data(x=torch.ones(5, 4), edge_index=PAIR)
    assert LiftLowDegrees()(constant).edge_index.tolist() == PAIR.tolist()


def test_the_lift_in_a_pipeline() -> None:
    graph = rg.synthetic(100, classes=2)
    both = Compose([LiftLowDegrees(), DoublyStochastic()])(graph)
    matrix = dense(both.edge_index, both.edge_weight, 100)
    torch.testing.assert_close(matrix.sum(0), torch.ones(100))
    assert both.num_edges > graph.num_edges + 100
    (piped,) = IterableWrapper([graph]).lift_low_degrees(min_degree=3)
    assert torch.equal(piped.edge_index, LiftLowDegrees(3)(graph).edge_index)
    coo = Data(x=graph.x.to_sparse_coo(), edge_index=graph.edge_index)
    assert torch.equal(LiftLowDegrees(3)(coo).edge_index, piped.edge_index)
    text = "LiftLowDegrees(min_degree=3, features='tf-idf', search='auto')"
    assert str(LiftLowDegrees(3)) == text


def test_edges_are_not_added_to_a_balanced_graph() -> None:
    with pytest.raises(RawlsError, match="apply LiftLowDegrees before DoublyStochastic"):
        Compose([DoublyStochastic(), LiftLowDegrees()])(rg.synthetic(60, classes=2))


@pytest.mark.parametrize("name", ["edge_attr", "edge_time"])
def test_attributes_of_edges_are_not_left_behind_by_self_loops(name: str) -> None:
    graph = Data(edge_index=PAIR, num_nodes=2, edge_label=torch.ones(7))
    assert DoublyStochastic()(graph).edge_label.shape == (7,)  # belongs to other pairs of nodes
    graph[name] = torch.ones(PAIR.shape[1], 3)
    with pytest.raises(RawlsError, match=f"what {name} of a self-loop should be"):
        DoublyStochastic()(graph)


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        (HeteroData(), r"not a HeteroData.*to_homogeneous"),
        (Data(x=torch.ones(2, 1)), "edge_index: apply it before ToSparseTensor"),
        (Data(edge_index=PAIR), "needs a graph with features x"),
        (Data(edge_index=PAIR, x=torch.ones(2)), "needs a graph with features x"),
        (
            Data(edge_index=PAIR, x=torch.ones(3, 1), edge_attr=torch.ones(2, 4)),
            "what edge_attr of an added edge should be",
        ),
        (
            Data(edge_index=PAIR, x=torch.ones(3, 1), edge_type=torch.ones(2)),
            "what edge_type of an added edge should be",
        ),
        (Data(edge_index=PAIR, x=torch.tensor([[1.0], [torch.inf]])), "node 1 has NaN"),
    ],
)
def test_what_cannot_be_lifted_is_one_sentence(graph: Any, said: str) -> None:
    with pytest.raises(RawlsError, match=said):
        LiftLowDegrees(features="raw")(graph)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"min_degree": -1}, "min_degree must be"),
        ({"features": "cosine"}, "features must be 'tf-idf' or 'raw', not 'cosine'"),
        ({"search": "none"}, "search must be"),
    ],
)
def test_settings_of_the_lift_are_checked(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(RawlsError, match=said):
        LiftLowDegrees(**arguments)
