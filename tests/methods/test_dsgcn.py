"""DSGCN against its formula written out node by node, in float64, gradients too."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import dense_form, graphs
from torch import Tensor, nn
from torch_geometric.data import Data

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.methods import Inputs, find_method, with_changes
from rawlsgcn.training import Job
from rawlsgcn.training.reference import train_reference

METHOD = find_method("dsgcn")


def small(**changes: object) -> object:
    return with_changes(METHOD.defaults, {"hidden_channels": 3, "dropout": 0.0, **changes})


def slow_logits(graph: Data, x: Tensor, parameters: dict[str, Tensor], layers: int) -> Tensor:
    """E_i = b + Σ_j Â_ij (W + W_k(i)) x_j, one node and one neighbor at a time."""
    laplacian = dense_form(graph, "renormalized")
    h = x
    for index in range(layers):
        part = {name.removeprefix(f"layers.{index}."): value for name, value in parameters.items()}
        weight, states = part["weight"], [part["start"]]
        for k in range(10):
            cell = {name: part[f"cells.{k}.{name}"] for name in CELL}
            states.append(
                torch.tanh(
                    weight @ cell["weight_ih"].t()
                    + cell["bias_ih"]
                    + states[-1] @ cell["weight_hh"].t()
                    + cell["bias_hh"]
                )
            )
        h = torch.relu(h) if index else h
        rows = []
        for node in range(graph.num_nodes):
            k = min(max(int((graph.edge_index[0] == node).sum()), 1), 10)
            row = part["bias"]
            for other in laplacian[node].nonzero().view(-1).tolist():
                row = row + laplacian[node, other] * (h[other] @ (weight + states[k]))
            rows.append(row)
        h = torch.stack(rows)
    return h


CELL = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


@settings(max_examples=30, deadline=None)
@given(graph=graphs(max_nodes=18), layers=st.integers(1, 3))
def test_scores_loss_and_gradients_equal_the_formula(graph: Data, layers: int) -> None:
    inputs = Inputs.of(graph, dtype=torch.float64)
    learner = METHOD.learner(inputs, small(num_layers=layers), seed=1)
    named = learner.module.named_parameters()
    parameters = {name: value.detach().clone().requires_grad_() for name, value in named}
    expected = slow_logits(graph, inputs.x.to_dense(), parameters, layers)
    torch.testing.assert_close(learner.logits(), expected.detach())
    loss = nn.functional.cross_entropy(expected[graph.train_mask], graph.y[graph.train_mask])
    loss.backward()
    assert learner.epoch() == pytest.approx(loss.item(), rel=1e-10)
    for name, parameter in learner.module.named_parameters():
        wanted = parameters[name].grad
        wanted = torch.zeros_like(parameter) if wanted is None else wanted
        torch.testing.assert_close(parameter.grad, wanted, rtol=1e-8, atol=1e-10)


@settings(max_examples=20, deadline=None)
@given(graph=graphs(), hidden=st.integers(1, 5))
def test_parameters_are_counted_by_the_papers_formula(graph: Data, hidden: int) -> None:
    inputs = Inputs.of(graph)
    learner = METHOD.learner(inputs, small(hidden_channels=hidden), seed=0)
    c, d = inputs.num_classes, inputs.num_features
    cells = 10 * (2 * hidden**2 + 2 * hidden + 2 * c**2 + 2 * c)
    expected = 2 * (d * hidden + hidden * c) + cells + hidden + c
    assert sum(parameter.numel() for parameter in learner.module.parameters()) == expected


@settings(max_examples=10, deadline=None)
@given(graph=graphs())
def test_same_seed_same_numbers(graph: Data) -> None:
    inputs = Inputs.of(graph)
    jobs = [Job(small(epochs=5, dropout=0.5), seed) for seed in (3, 3, 4)]
    first, second, third = (learner.logits() for learner in train_reference(METHOD, inputs, jobs))
    assert torch.equal(first, second)
    assert not torch.equal(first, third)


@settings(max_examples=20, deadline=None)
@given(graph=graphs())
def test_validation_looks_at_the_validation_nodes_only(graph: Data) -> None:
    graph.val_mask[0] = True
    learner = METHOD.learner(Inputs.of(graph), small(), seed=0)
    correct = (learner.logits().argmax(1) == graph.y)[graph.val_mask]
    assert learner.validation_score() == pytest.approx(correct.float().mean().item())


@settings(max_examples=1, deadline=None)
@given(graph=graphs())
def test_other_normalizations_are_refused(graph: Data) -> None:
    with pytest.raises(RawlsError, match="dsgcn has no normalization 'row'"):
        METHOD.configure({"normalization": "row"})
