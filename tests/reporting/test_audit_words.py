"""The words hold whichever way the numbers point."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import rawlsgcn as rg
from rawlsgcn.reporting.audit_words import p_words, verdict

NODES = 600


@pytest.fixture(scope="module")
def graph() -> Data:
    """A star for every tenth node: nodes of one neighbour, and hubs of nine and more."""
    hubs = torch.arange(0, NODES, 10)
    leaves = torch.tensor([node for node in range(NODES) if node % 10])
    spokes = torch.stack([leaves, leaves - leaves % 10])
    ring = torch.stack([hubs, (hubs + 10) % NODES])
    y = torch.arange(NODES) // 10 % 3
    return Data(edge_index=torch.cat([spokes, ring], 1), y=y, num_nodes=NODES)


def classes(graph: Data, wrong_leaves: float, wrong_hubs: float) -> np.ndarray:
    rng, y = np.random.default_rng(0), graph.y.numpy()
    hub = np.arange(NODES) % 10 == 0
    wrong = rng.random(NODES) < np.where(hub, wrong_hubs, wrong_leaves)
    return np.where(wrong, (y + 1) % 3, y)


def test_worse_off_better_off_and_alike(graph: Data) -> None:
    for leaves, hubs, said in (
        (0.6, 0.1, "Nodes with at most 1 neighbour, 90 % of all, are wrong"),
        (0.1, 0.7, "are wrong less often than the rest"),
        (0.3, 0.3, "may be chance"),
    ):
        words = verdict(rg.audit(graph, classes(graph, leaves, hubs), resamples=100))
        assert said in words.headline
    worse = verdict(rg.audit(graph, classes(graph, 0.6, 0.1), resamples=100)).headline
    assert "times as often as the rest; this is not chance" in worse


def test_two_models_are_told_apart(graph: Data) -> None:
    both = {"fair": classes(graph, 0.3, 0.3), "unfair": classes(graph, 0.6, 0.05)}
    words = verdict(rg.audit(graph, both, resamples=200))
    assert words.headline.startswith("With fair, nodes")
    assert any(line.startswith("fair has less bias than unfair") for line in words.sentences)


def test_one_degree_only(graph: Data) -> None:
    ring = torch.stack([torch.arange(NODES), (torch.arange(NODES) + 1) % NODES])
    alike = Data(edge_index=ring, y=graph.y, num_nodes=NODES)
    found = rg.audit(alike, classes(graph, 0.3, 0.3), resamples=100)
    assert "no two groups" in verdict(found).headline
    assert found.to_dict()["models"][0]["bias"] is None
    both = {"good": graph.y, "bad": classes(graph, 0.5, 0.5)}
    pair = verdict(rg.audit(alike, both, resamples=100)).sentences[-1]
    assert "low-degree" not in pair
    assert pair.startswith("All nodes are in one group, so good and bad have no bias to compare")
    assert "; nodes are right" in pair


def test_a_fall_is_told_without_signs(graph: Data) -> None:
    for leaves, hubs, way in ((0.6, 0.1, "falls"), (0.1, 0.6, "rises")):
        found = rg.audit(graph, classes(graph, leaves, hubs), resamples=100)
        slope = found.models[0].slope
        assert slope is not None
        ends = sorted(abs(end) for end in (slope.loss.low, slope.loss.high))
        said = (
            f"Error {way} by {abs(slope.loss.value):.3f} with each doubling of 1 + degree "
            f"(95 % interval {ends[0]:.3f} to {ends[1]:.3f})."
        )
        assert said in verdict(found).sentences[0]


def test_p_values_are_never_zero() -> None:
    assert p_words(1 / 1001, 1000) == "p < 0.002"
    assert p_words(0.28, 1000) == "p = 0.28"
    assert p_words(1e-9) == "p < 0.001"
