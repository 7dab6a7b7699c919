"""Smoothed MLP: what it is given, its gradient, its weights and its files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

import rawlsgcn as rg
from rawlsgcn.balancing import propagation_matrix
from rawlsgcn.graphs import check
from rawlsgcn.graphs.lifting.lifted_graph import lift_low_degrees
from rawlsgcn.graphs.tf_idf import tf_idf
from rawlsgcn.methods import Inputs, find_method
from rawlsgcn.methods.smoothed_mlp_inputs import SmoothedStack
from rawlsgcn.training import Job, train_runs

CHOICES: list[dict[str, Any]] = [
    {},
    {"normalization": "renormalized", "teleport": 0.3, "steps": 3},
    {"features": "tf-idf"},
    {"min_degree": 6},
    {"inputs": "both", "features": "tf-idf"},
    {"inputs": "adjacency"},
    {"num_layers": 3, "label_smoothing": 0.1},
    {"num_layers": 1},
]


@pytest.fixture(scope="module")
def graph() -> Data:
    return check(rg.synthetic(150, seed=1))


def expected_inputs(inputs: Inputs, s: Any, columns: Tensor | None) -> Tensor:
    """What the network is given, from dense matrices in float64."""
    x = inputs.x if inputs.x.layout == torch.strided else inputs.x.to_dense()
    features = tf_idf(x).double() if s.features == "tf-idf" else x
    edges, weight = inputs.edge_index, inputs.edge_weight
    if s.inputs == "adjacency":
        dense = torch.zeros(inputs.num_nodes, inputs.num_nodes, dtype=torch.float64)
        dense[edges[0], edges[1]] = 1
        assert columns is not None
        return torch.cat([dense[:, columns], features], 1)
    if s.min_degree:
        edges = lift_low_degrees(edges, tf_idf(x), min_degree=s.min_degree).edge_index
    matrix = propagation_matrix(
        edges, weight, inputs.num_nodes, s.normalization, dtype=torch.float64
    ).to_dense()
    z = features
    for _ in range(s.steps):
        z = (1 - s.teleport) * matrix @ z + s.teleport * features
    return z if s.inputs == "smoothed" else torch.cat([features, z], 1)


@pytest.mark.parametrize("changes", CHOICES)
def test_inputs_and_scores_are_those_of_dense_matrices(
    graph: Data, changes: dict[str, Any]
) -> None:
    inputs = Inputs.of(graph, dtype=torch.float64)
    settings = find_method("smoothed-mlp").configure(changes)
    stack = SmoothedStack(inputs, settings)  # type: ignore[arg-type]
    z = expected_inputs(inputs, settings, stack.fixed.get("columns"))
    rows = stack.rows.matrix
    rows = rows if rows.layout == torch.strided else rows.to_dense()
    # idf is kept in float32, as it is saved.
    torch.testing.assert_close(rows, z[inputs.train], rtol=1e-5, atol=1e-6)
    random = torch.Generator().manual_seed(0)
    state = []
    for a, b in zip(stack.sizes[:-1], stack.sizes[1:], strict=True):
        state += [torch.randn(a, b, dtype=torch.float64, generator=random) for _ in "w"]
        state += [torch.randn(b, dtype=torch.float64, generator=random)]
    h = z
    for at in range(0, len(state), 2):
        h = (h.relu() if at else h) @ state[at] + state[at + 1]
    torch.testing.assert_close(stack.logits(state), h, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("changes", CHOICES)
def test_both_engines_learn_the_same(graph: Data, changes: dict[str, Any]) -> None:
    method, inputs = find_method("smoothed-mlp"), Inputs.of(graph, dtype=torch.float64)
    settings = method.configure({**changes, "dropout": 0.0, "epochs": 8})
    weight = torch.rand(len(inputs.train), dtype=torch.float64)
    for each in (inputs, replace(inputs, train_weight=weight / weight.sum())):
        runs = [
            train_runs(method, each, [Job(settings, 3)], engine=engine)[0][0]
            for engine in ("stacked", "reference")
        ]
        assert runs[0].state.keys() == runs[1].state.keys()
        for name, tensor in runs[0].state.items():
            torch.testing.assert_close(tensor, runs[1].state[name], rtol=1e-7, atol=1e-9)
        torch.testing.assert_close(runs[0].logits, runs[1].logits, rtol=1e-6, atol=1e-7)


def test_weights_of_training_nodes_are_those_of_repeated_nodes(graph: Data) -> None:
    """A node of twice the weight counts as if it were there twice."""
    method, inputs = find_method("smoothed-mlp"), Inputs.of(graph, dtype=torch.float64)
    job = [Job(method.configure({"dropout": 0.0, "epochs": 5}), 0)]
    twice = replace(inputs, train=torch.cat([inputs.train, inputs.train[:4]]))
    weight = torch.full((len(inputs.train),), 1.0, dtype=torch.float64)
    weight[:4] = 2
    weighted = replace(inputs, train_weight=weight / weight.sum())
    (one,), (other,) = (train_runs(method, each, job)[0] for each in (twice, weighted))
    torch.testing.assert_close(one.logits, other.logits, rtol=1e-8, atol=1e-9)


def test_methods_that_cannot_weigh_their_nodes_refuse_to(graph: Data) -> None:
    inputs = replace(Inputs.of(graph), train_weight=torch.ones(1))
    method = find_method("dsgcn")
    with pytest.raises(rg.RawlsError, match="weights of the training nodes"):
        train_runs(method, inputs, [Job(method.configure(), 0)])


@pytest.mark.parametrize("changes", CHOICES)
def test_a_saved_model_predicts_the_same_bits(
    graph: Data, changes: dict[str, Any], tmp_path: Path
) -> None:
    changes = {**changes, "epochs": 4}
    result = rg.fit(graph, "smoothed-mlp", seeds=2, method_settings=changes)
    result.save(tmp_path / "model")
    for run, seed in enumerate(result.seeds):
        loaded = rg.load_model(tmp_path / "model", seed).logits(graph)
        assert torch.equal(loaded, result.logits[run])


def test_tf_idf_of_another_graph_is_that_of_the_training_graph(graph: Data, tmp_path: Path) -> None:
    """Half of the graph alone has other frequencies; the model keeps those it has learned from."""
    settings = {"features": "tf-idf", "steps": 0, "epochs": 5}
    result = rg.fit(graph, "smoothed-mlp", seeds=1, method_settings=settings)
    result.save(tmp_path / "model")
    nodes = torch.arange(75)
    half = graph.subgraph(nodes)
    found = rg.load_model(tmp_path / "model").logits(half)
    torch.testing.assert_close(found, result.logits[0][nodes], rtol=1e-5, atol=1e-5)


def test_rows_of_the_adjacency_matrix_stay_with_their_graph(graph: Data, tmp_path: Path) -> None:
    result = rg.fit(
        graph, "smoothed-mlp", seeds=1, epochs=2, method_settings={"inputs": "adjacency"}
    )
    result.save(tmp_path / "model")
    other = rg.synthetic(150, seed=2)
    with pytest.raises(rg.RawlsError, match="only be used on that graph"):
        rg.load_model(tmp_path / "model").predict(other)
    turned = graph.subgraph(torch.arange(graph.num_nodes).flip(0))
    with pytest.raises(rg.RawlsError, match="nodes in the order of the training"):
        rg.load_model(tmp_path / "model").predict(turned)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("features", "words"),
        ("inputs", "nothing"),
        ("teleport", 0),
        ("teleport", 1.5),
        ("steps", -1),
        ("min_degree", -1),
        ("label_smoothing", 1),
    ],
)
def test_settings_out_of_range_are_refused(setting: str, value: Any) -> None:
    with pytest.raises(rg.RawlsError, match=setting.split("_")[0]):
        find_method("smoothed-mlp").configure({setting: value})


def test_a_note_says_how_many_nodes_were_lifted(graph: Data) -> None:
    lifted = rg.fit(graph, "smoothed-mlp", seeds=1, epochs=1, method_settings={"min_degree": 6})
    assert any("nearest features" in note and "exact" in note for note in lifted.notes)
    plain = rg.fit(graph, "smoothed-mlp", seeds=1, epochs=1)
    assert not any("nearest features" in note for note in plain.notes)


def test_it_meets_the_contract_of_methods() -> None:
    rg.check_method("smoothed-mlp")


def test_a_lift_that_nothing_would_use_is_an_error() -> None:
    with pytest.raises(rg.RawlsError, match="min_degree changes nothing"):
        find_method("smoothed-mlp").configure({"inputs": "adjacency", "min_degree": 5})
