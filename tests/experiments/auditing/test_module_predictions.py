"""``rg.audit`` of a torch module: the scores are its own, in evaluation mode, in any signature."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCN

import rawlsgcn as rg
from rawlsgcn.experiments.auditing.prediction_sources import module_scores


@pytest.fixture(scope="module")
def graph() -> Data:
    return rg.synthetic(300, classes=3)


@pytest.fixture
def model(graph: Data) -> GCN:
    torch.manual_seed(0)
    return GCN(graph.x.shape[1], 8, 2, out_channels=3, dropout=0.9)


def test_a_model_comes_first_or_second(graph: Data, model: GCN) -> None:
    model.eval()
    with torch.no_grad():
        scores = model(graph.x, graph.edge_index)
    model.train()
    model.convs[0].eval()
    expected = rg.audit(graph, {"GCN": scores}, resamples=100).to_dict()
    for made in (
        rg.audit(model, graph, resamples=100),
        rg.audit(graph, model, resamples=100),
        rg.audit(graph, {"GCN": model}, resamples=100),
    ):
        figures = made.to_dict()
        for figure in (expected, figures):
            figure["how"]["seconds"] = None
        assert figures == expected
    assert model.training  # and each part is left in its own mode
    assert not model.convs[0].training
    assert model.dropout.training


class Whole(nn.Module):
    """A model without parameters whose forward takes the whole graph."""

    def forward(self, data: Data) -> Tensor:
        return nn.functional.one_hot(data.y.clamp(min=0), 3).float()


class InBatches(Whole):
    def forward(self, batch: Data) -> Tensor:
        return super().forward(batch)


class Weighted(nn.Module):
    def forward(self, x: Tensor, adj: Tensor, edge_weight: Any = None, hops: int = 2) -> Tensor:
        assert edge_weight is not None
        return x[:, :3] + hops


class Unknown(nn.Module):
    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        return x


class Pooled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mean(0)


def test_forward_may_be_written_in_several_ways(graph: Data) -> None:
    for kind in (Whole, InBatches):
        assert torch.equal(module_scores(kind(), graph).argmax(1), graph.y.clamp(min=0))
    weighted = graph.clone()
    weighted.edge_weight = torch.ones(graph.edge_index.shape[1])
    assert torch.equal(module_scores(Weighted(), weighted), graph.x[:, :3] + 2)


def test_what_cannot_be_called_is_one_sentence(graph: Data) -> None:
    with pytest.raises(rg.RawlsError, match=r"Unknown\.forward needs 'context'"):
        rg.audit(Unknown(), graph)
    with pytest.raises(rg.RawlsError, match=r"Pooled must return .* returned a tensor \(\d+,\)"):
        rg.audit(Pooled(), graph)
    with pytest.raises(rg.RawlsError, match="must be a torch_geometric Data"):
        rg.audit(Pooled(), 3)


def test_weights_that_the_graph_does_not_have_are_none() -> None:
    class Weighted(torch.nn.Module):
        def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None) -> Tensor:
            assert edge_weight is None
            return torch.eye(2)[x[:, 0].long() % 2]

    graph = rg.synthetic(120, classes=2)
    assert rg.audit(Weighted(), graph, evaluate="labeled", resamples=100).models


def test_a_networkx_graph_is_given_to_a_module_as_data() -> None:
    network = nx.barabasi_albert_graph(100, 2, seed=0)
    for node in network:
        network.nodes[node].update(label=node % 2, x=[float(node % 2)])

    class Right(nn.Module):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return torch.cat([1 - x, x], 1)

    assert rg.audit(network, Right(), resamples=100).models[0].accuracy.value == 100
