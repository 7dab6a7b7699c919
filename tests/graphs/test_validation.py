"""Validation: a clean copy of a user's Data, the given one unchanged, one sentence for a flaw."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.transforms import ToSparseTensor
from torch_geometric.utils import to_dense_adj

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.graphs import check, graph_notes, read
from rawlsgcn.graphs.notes import GraphFacts

PARTS = torch.arange(40) % 3
MASKS = {"train_mask": PARTS == 0, "val_mask": PARTS == 1, "test_mask": PARTS == 2}


def ring(nodes: int = 40, **changes: Any) -> Data:
    """A ring in two classes, with changes."""
    ahead = torch.arange(nodes)
    parts: dict[str, Any] = {
        "x": torch.rand(nodes, 3),
        "y": ahead % 2,
        "edge_index": torch.stack([ahead, (ahead + 1) % nodes]),
    }
    parts.update(changes)
    return Data(**{key: value for key, value in parts.items() if value is not None})


def test_a_directed_graph_is_symmetrized_and_that_is_said() -> None:
    ahead = ring().edge_index
    two_ways = check(ring(edge_index=torch.cat([ahead, ahead[:, :1].flip(0)], dim=1)))
    assert any("symmetrized: 39 of its 41" in note for note in graph_notes(two_ways))


def test_an_edge_listed_once_is_used_in_both_directions() -> None:
    graph = check(ring())
    assert graph.edge_index.size(1) == 80
    assert graph.is_undirected()
    assert graph.is_coalesced()
    notes = " ".join(graph_notes(graph))
    assert "every edge is listed in one direction and used in both" in notes
    assert "symmetrized" not in notes
    assert any(
        "the split 0.5,0.25,0.25 is drawn class by class" in note for note in graph_notes(graph)
    )
    assert graph.num_nodes == 40


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=40))
def test_the_adjacency_is_that_of_the_undirected_loopless_graph(
    arcs: list[tuple[int, int]],
) -> None:
    arcs = [*arcs, (0, 1)]
    data = ring(10, edge_index=torch.tensor(arcs).t())
    expected = (to_dense_adj(data.edge_index, max_num_nodes=10)[0] > 0).float()
    expected = ((expected + expected.t()) > 0).float().fill_diagonal_(0)
    graph = check(data)
    assert torch.equal(to_dense_adj(graph.edge_index, max_num_nodes=10)[0], expected)


def test_the_given_data_is_not_touched() -> None:
    data = ring(x=torch.rand(40, 3, dtype=torch.float64), mine="kept", edge_attr=torch.rand(40, 2))
    before = copy.deepcopy(data)
    graph = check(data)
    assert data.keys() == before.keys()
    assert all(
        torch.equal(data[k], before[k])
        for k in before.to_dict()
        if isinstance(data[k], torch.Tensor)
    )
    assert graph.mine == "kept"
    assert graph.x.dtype == torch.float32
    assert "edge_attr" not in graph
    assert any("edge_attr is not used" in note for note in graph_notes(graph))


def test_checking_twice_is_checking_once() -> None:
    once = check(ring(edge_weight=torch.rand(40)))
    twice = check(once)
    assert twice.facts == once.facts
    for key in ("edge_index", "edge_weight", "x", "y", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(once[key], twice[key])


def test_a_transposed_sparse_adjacency_is_read() -> None:
    data = ring()
    sparse = ToSparseTensor(layout=torch.sparse_csr)(copy.copy(data))
    assert sparse.edge_index is None
    assert torch.equal(check(sparse).edge_index, check(data).edge_index)


def test_a_dense_transposed_adjacency_is_read() -> None:
    data = ring(edge_weight=torch.arange(1.0, 41.0))
    dense = to_dense_adj(data.edge_index, edge_attr=data.edge_weight)[0].t()
    given, expected = check(ring(edge_index=None, adj_t=dense)), check(data)
    assert torch.equal(given.edge_index, expected.edge_index)
    assert torch.equal(given.edge_weight, expected.edge_weight)
    bare = Data(adj_t=torch.zeros(5, 5), num_nodes=None)
    assert check(bare, need_features=False, need_labels=False).num_nodes == 5


def test_sparse_features_of_scipy_are_features() -> None:
    x = sp.random(40, 30, density=0.05, format="coo", random_state=0)
    assert torch.equal(check(ring(x=x)).x.to_dense(), torch.tensor(x.toarray()).float())


def test_facts_survive_a_second_validation_and_an_attribute_called_notes_is_the_users() -> None:
    once = check(ring(notes="hello", y=torch.arange(40) % 2 + 1))
    assert once.notes == "hello"
    assert GraphFacts.of(once).empty_classes == [0]
    assert graph_notes(check(once)) == graph_notes(once)
    assert len(set(graph_notes(once))) == len(graph_notes(once))


@pytest.mark.parametrize(
    "facts",
    [5, "x", [1, 2], [("self_loops", "many")], [("self_loops", True)], [("unknown", 3)], [[[], 1]],
     [("left_out", [1, ("labels",), "labels"])], [("empty_classes", ["a", 1.5])]],
)  # fmt: skip
def test_facts_of_another_form_are_ignored(facts: Any) -> None:
    graph = check(ring(facts=facts, y=torch.arange(40) % 2))
    assert GraphFacts.of(graph) == GraphFacts.of(check(ring(y=torch.arange(40) % 2)))
    assert graph_notes(graph)


def test_weights_that_single_precision_takes_for_zero_are_no_neighbours() -> None:
    weight = torch.ones(40, dtype=torch.float64)
    weight[3] = 1e-60
    graph = check(ring(edge_weight=weight))
    assert graph.edge_index.size(1) == 78
    assert "edge_weight" not in graph
    assert any("1 edge of weight under 1.2e-38 dropped" in note for note in graph_notes(graph))


@pytest.mark.parametrize(
    ("changes", "lacks"),
    [
        ({"y": torch.full((40,), float("nan"))}, "labels"),
        ({"y": torch.arange(30)}, "labels"),
        ({"y": torch.full((40,), -1)}, "masks"),
        ({"y": torch.zeros(40, dtype=torch.long)}, "masks"),
        ({"val_mask": torch.ones(40, dtype=torch.bool)}, "masks"),
    ],
)
def test_who_predicts_is_not_refused_for_labels_or_masks(
    changes: dict[str, Any], lacks: str
) -> None:
    graph = check(ring(**{**MASKS, **changes}), need_labels=False)
    assert torch.equal(graph.edge_index, check(ring()).edge_index)
    assert ("y" in graph) == (lacks == "masks")
    assert "val_mask" not in graph
    assert any(f"the {lacks} are left out" in note for note in graph_notes(graph))
    with pytest.raises(RawlsError):
        check(ring(**{**MASKS, **changes}))


@pytest.mark.parametrize("x", [torch.full((40, 2), float("nan")), torch.rand(39, 2)])
def test_who_balances_is_not_refused_for_features(x: torch.Tensor) -> None:
    graph = check(ring(x=x), need_features=False, need_labels=False)
    assert graph.num_nodes == 40
    assert graph.x is None
    assert any("the features are left out" in note for note in graph_notes(graph))


@pytest.mark.parametrize("edges", [torch.empty(2, 0), torch.tensor([[3], [3]])])
def test_isolated_nodes_alone_can_be_predicted_on(edges: torch.Tensor) -> None:
    graph = check(ring(edge_index=edges), need_labels=False)
    assert graph.edge_index.shape == (2, 0)
    assert graph.edge_index.dtype == torch.long
    assert len(graph.x) == 40


def test_stored_masks_are_kept_and_others_can_be_asked_for() -> None:
    masks = {
        key: torch.arange(40) % 3 == part
        for part, key in enumerate(("train_mask", "val_mask", "test_mask"))
    }
    kept = check(ring(**masks))
    assert all(torch.equal(kept[key], mask) for key, mask in masks.items())
    drawn = check(ring(**masks), split="random")
    assert int(drawn.train_mask.sum()) == 4


def test_of_several_stored_splits_the_first_is_used_and_that_is_said() -> None:
    first = torch.arange(40) % 3
    both = torch.stack([first, (first + 1) % 3], 1)
    graph = check(ring(train_mask=both == 0, val_mask=both == 1, test_mask=both == 2))
    assert torch.equal(graph.val_mask, first == 1)
    assert any("first of 2 stored splits" in note for note in graph_notes(graph))


def test_unlabeled_nodes_leave_the_stored_masks() -> None:
    y = torch.arange(40) % 2
    y[0] = -1
    third = torch.arange(40) % 3
    graph = check(ring(y=y, train_mask=third == 0, val_mask=third == 1, test_mask=third == 2))
    assert not graph.train_mask[0]
    assert any("1 unlabeled" in note for note in graph_notes(graph))


def test_a_graph_large_enough_gets_the_papers_split() -> None:
    graph = check(ring(2000))
    assert int(graph.train_mask.sum()) == 40
    assert int(graph.test_mask.sum()) == 1000


def test_balancing_needs_neither_features_nor_labels() -> None:
    graph = check(ring(x=None, y=None, num_nodes=41), need_features=False, need_labels=False)
    assert graph.num_nodes == 41
    assert graph.x is None
    assert "train_mask" not in graph


def test_empty_classes_are_noted() -> None:
    assert any(
        "no node has the label 0" in n for n in graph_notes(check(ring(y=torch.arange(40) % 2 + 1)))
    )


NAN = torch.rand(40, 3)
NAN[5, 1] = float("nan")
SPARSE_INF = torch.zeros(40, 30)
SPARSE_INF[7, 1] = float("inf")
NEGATIVE = torch.ones(40)
NEGATIVE[3] = -1.0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"x": NAN}, "node 5 .* NaN or infinite"),
        ({"x": SPARSE_INF}, "node 7 .* NaN or infinite"),
        ({"x": torch.full((40, 2), 1e300, dtype=torch.float64)}, "node 0 .* over 3e38.*divide"),
        ({"x": sp.csr_matrix([[1e300]] + [[0.0]] * 39)}, "node 0 .* over 3e38"),
        ({"x": sp.csr_matrix([[float("nan")]] + [[0.0]] * 39)}, "node 0 .* NaN or infinite"),
        ({"x": torch.rand(39, 3)}, "sizes disagree: .*39 rows of features, but .* 40 labels"),
        ({"x": torch.rand(40)}, "must be a matrix"),
        ({"x": torch.rand(40, 2, dtype=torch.cfloat)}, "real numbers"),
        ({"y": None}, "no labels"),
        ({"y": torch.rand(40)}, "label 0.*must be integers"),
        ({"y": torch.full((40,), float("nan"))}, "node 0 .* has no label"),
        ({"y": torch.full((40,), -2)}, "write -1 for an unlabeled"),
        ({"y": torch.arange(40) * 1000}, "number the classes 0, 1, 2"),
        ({"y": torch.full((40,), -1)}, "every node is unlabeled"),
        ({"y": torch.full((40,), 3)}, "every labeled node is of class 3: there must be two"),
        ({"y": torch.tensor([0] * 20 + [-1] * 20), **MASKS}, "every labeled node is of class 0"),
        ({"y": torch.eye(40)}, "one integer for each node"),
        ({"edge_weight": NEGATIVE}, "node 3 .* weight -1.0"),
        ({"edge_weight": torch.full((40,), float("nan"))}, "weight nan"),
        ({"edge_weight": torch.ones(41)}, "sizes disagree: .*40 edges"),
        ({"edge_weight": torch.full((40,), 1e39, dtype=torch.float64)}, "divide them first"),
        ({"edge_index": torch.tensor([[0], [40]])}, "node 40, which is out of range"),
        ({"edge_index": torch.tensor([[-1], [0]])}, "node -1, which is out of range"),
        ({"edge_index": torch.empty(2, 0, dtype=torch.long)}, "has no edges"),
        ({"edge_index": torch.tensor([[3], [3]])}, "no edges but self-loops"),
        ({"edge_index": torch.rand(2, 5)}, "must hold integers"),
        ({"edge_index": torch.zeros(3, 5, dtype=torch.long)}, r"must be \(2, edges\)"),
        ({"edge_index": None}, "no edge_index"),
        ({"edge_index": None, "adj_t": torch.ones(40, 39)}, r"has the shape \(40, 39\)"),
        ({"num_nodes": -3}, "whole number of at least 0, not -3"),
        ({"num_nodes": 2.5}, "num_nodes must be a whole number of at least 0, not 2.5"),
        ({"num_nodes": 41}, "41 nodes, but .* 40 rows"),
        ({"node_ids": 5}, "node_ids must be a list"),
        ({"edge_weight": torch.full((40,), 1e-60, dtype=torch.float64)}, "no edges but"),
        ({"train_mask": PARTS == 0}, "no val_mask and no test_mask: .* --split 0.6,0.2,0.2"),
        ({**MASKS, "val_mask": PARTS == 0}, "more than one of the masks"),
        ({**MASKS, "val_mask": PARTS > 5}, "val_mask has no labeled node"),
        ({**MASKS, "val_mask": PARTS[:30] == 1}, r"val_mask has the shape \(30,\)"),
        ({**MASKS, "val_mask": PARTS}, "true or false"),
        ({"y": torch.arange(40)}, "too few to split"),
    ],
)
def test_each_flaw_gets_one_sentence(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(RawlsError, match=said) as caught:
        check(ring(**changes))
    assert "\n" not in str(caught.value)


def test_the_papers_split_is_strict_when_asked_for() -> None:
    with pytest.raises(RawlsError, match="0 labeled nodes remain"):
        check(ring(), split="paper")
    with pytest.raises(RawlsError, match="unknown split 'papr': did you mean paper"):
        check(ring(), split="papr")
    with pytest.raises(RawlsError, match="no train_mask"):
        check(ring(), split="stored")


def test_other_objects_are_refused_by_name() -> None:
    with pytest.raises(RawlsError, match="not HeteroData: convert it"):
        check(HeteroData())
    with pytest.raises(RawlsError, match="not ndarray"):
        check(np.zeros(3))  # type: ignore[arg-type]


def test_facts_survive_a_file_and_need_no_class_of_this_package(tmp_path: Path) -> None:
    source, target = torch.arange(40), (torch.arange(40) + 1) % 40
    graph = check(Data(
        edge_index=torch.stack([source, target]), x=torch.ones(40, 2), y=source % 2 + 1,
        class_names=["none", "cat", "dog"],
    ))  # fmt: skip
    assert GraphFacts.of(graph).one_way_arcs == 40
    torch.save(graph, tmp_path / "g.pt")
    assert b"rawlsgcn" not in pickle.dumps(graph)
    again = read(tmp_path / "g.pt")
    assert GraphFacts.of(again) == GraphFacts.of(graph)
    assert graph_notes(again) == graph_notes(graph)
    assert again.class_names == ["none", "cat", "dog"]


def test_a_graph_with_facts_goes_through_loaders_of_torch_geometric() -> None:
    graph = check(ring())
    assert "\n" not in repr(graph)
    batch = Batch.from_data_list([graph, check(ring(y=torch.arange(40) % 2 + 1))])
    assert batch.num_nodes == 80


def test_words_in_a_data_are_classes_with_names() -> None:
    ring = torch.stack([torch.arange(40), (torch.arange(40) + 1) % 40])
    graph = check(Data(edge_index=ring, y=["dog", "cat"] * 20))
    assert graph.class_names == ["cat", "dog"]
    assert graph.y.tolist() == [1, 0] * 20
    assert check(graph).class_names == ["cat", "dog"]
    with pytest.raises(RawlsError, match="every labeled node is of class cat"):
        check(Data(edge_index=ring, y=["cat"] * 40))


def test_a_graph_without_features_gets_those_of_its_structure() -> None:
    ring = torch.stack([torch.arange(40), (torch.arange(40) + 1) % 40])
    graph = check(Data(edge_index=ring, y=torch.arange(40) % 2))
    assert torch.equal(graph.x, torch.eye(40))
    note = "the graph has no node features: its structure alone is used"
    assert any(each.startswith(note) for each in graph_notes(graph))
    assert any(each.startswith(note) for each in graph_notes(check(graph)))
    graph.x = torch.rand(40, 40)
    assert not any(each.startswith(note) for each in graph_notes(check(graph)))
    with pytest.raises(RawlsError, match="has no node features"):
        check(Data(edge_index=ring, num_nodes=40), need_labels=False)
