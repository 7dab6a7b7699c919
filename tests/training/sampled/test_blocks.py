"""Sampled blocks: the reference's gradient with all neighbors, its expectation with some."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from epochs import train_epoch
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling.copies import copied, small_graph, z_values
from strategies import graphs
from torch import Tensor, nn
from torch_geometric.data import Data

from rawlsgcn.methods import Inputs, find_method, with_changes
from rawlsgcn.methods._ops.convolution import GraphConvolutionalNetwork
from rawlsgcn.methods._ops.fixed_matrix import FixedMatrix
from rawlsgcn.sampling import Adjacency, Factors
from rawlsgcn.training.sampled.blocks import BlockMaker
from rawlsgcn.training.sampled.sources import Source
from rawlsgcn.training.sampled.trainer import SampledTraining

CPU = torch.device("cpu")
METHODS = ["gcn", "rawlsgcn-graph", "rawlsgcn-grad"]


@settings(max_examples=60, deadline=None)
@given(
    graphs(),
    st.integers(1, 3),
    st.sampled_from(METHODS),
    st.sampled_from(["row", "column", "symmetric", "doubly-stochastic"]),
)
def test_all_neighbors_give_the_reference(graph: Data, layers: int, name: str, form: str) -> None:
    method = find_method(name)
    changes = {"num_layers": layers, "dropout": 0.0, "hidden_channels": 4}
    if name != "gcn":
        changes["normalization"] = form
    chosen = with_changes(method.defaults, changes)
    learner = method.learner(Inputs.of(graph, dtype=torch.float64), chosen, 3)
    training = SampledTraining(
        method,
        Source.of(graph),
        chosen,
        num_neighbors=[-1] * layers,
        batch_size=1000,
        seed=3,
        dtype=torch.float64,
    )
    assert train_epoch(training, 0) == pytest.approx(learner.epoch(), abs=1e-9)
    for ours, theirs in zip(
        training.network.parameters(), learner.module.parameters(), strict=True
    ):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-6, atol=1e-8)
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(training.logits(), learner.logits(), rtol=1e-6, atol=1e-7)


class Sampled:
    """Gradients from blocks drawn on many copies of a small graph, their mean over the copies."""

    def __init__(self, layers: int, copies: int, relu: bool) -> None:
        self.graph, self.copies, self.relu = small_graph(), copies, relu
        many = copied(self.graph, copies)
        self.x = many.x
        self.adjacency = Adjacency.of_symmetric(many.edge_index, many.edge_weight, many.num_nodes)
        self.forward = Factors.of(self.adjacency, "renormalized")
        self.fair = Factors.of(self.adjacency, "doubly-stochastic")
        self.network = GraphConvolutionalNetwork([3, *[4] * (layers - 1), 2], 0.0)
        self.network.reset_parameters(torch.Generator().manual_seed(5))
        self.network.double()

    def gradient(self, num_neighbors: list[int], key: int) -> Tensor:
        maker = BlockMaker(self.adjacency, self.forward, self.fair, num_neighbors, torch.float64)
        seeds = (np.arange(0, 24, 2) + 24 * np.arange(self.copies)[:, None]).reshape(-1)
        blocks = maker.make(seeds, key)
        self.network.zero_grad()
        x = self.x[torch.from_numpy(blocks.nodes)]
        if self.relu:
            labels = torch.arange(len(seeds)) % 12 % 2
            out = self.network(FixedMatrix.of(x), blocks.forward(CPU), blocks.fair(CPU))
            nn.functional.cross_entropy(out, labels).backward()
        else:
            h: Tensor | FixedMatrix = FixedMatrix.of(x)
            matrices = zip(blocks.forward(CPU), blocks.fair(CPU), strict=True)
            for layer, (forward, fair) in zip(self.network.layers, matrices, strict=True):
                h = layer(h, forward, fair)
            slopes = torch.linspace(-1, 1, 24, dtype=torch.float64).view(-1, 2)
            (h * slopes.repeat(self.copies, 1)).mean().backward()
        return torch.cat([p.grad.reshape(-1) for p in self.network.parameters()])


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_linear_layers_learn_the_right_gradient_in_expectation_at_any_depth(layers: int) -> None:
    sampled = Sampled(layers, copies=150, relu=False)
    exact = sampled.gradient([-1] * layers, 0)
    samples = [sampled.gradient([2] * layers, key) for key in range(40)]
    # Biases of the last layer are not random at all: their gradient is exact.
    assert z_values(samples, exact).abs().max() < 4.5


def test_with_relu_and_cross_entropy_the_bias_shrinks_with_the_fan_out() -> None:
    sampled = Sampled(2, copies=400, relu=True)
    exact = sampled.gradient([-1, -1], 0)
    off = []
    for k in (1, 2, 4):
        mean = torch.stack([sampled.gradient([k, k], key) for key in range(10)]).mean(0)
        off.append(float((mean - exact).norm() / exact.norm()))
    assert off[0] < 0.12
    assert off[0] > 1.5 * off[1] > 2.25 * off[2]
    largest = int(np.diff(sampled.adjacency.row_start).max())
    all_of_them = sampled.gradient([largest, largest], 1)
    torch.testing.assert_close(all_of_them, exact, rtol=1e-10, atol=1e-12)
