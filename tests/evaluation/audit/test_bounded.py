"""The work of an audit is bounded, however many different values a column has."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import rawlsgcn as rg
from rawlsgcn._core.errors import RawlsError
from rawlsgcn.evaluation.audit.grouping import MOST_BINS, MOST_TEXTS, MOST_VALUES, bins_of
from rawlsgcn.evaluation.node_centralities import column_of
from rawlsgcn.reporting.page import render


def graph_of(nodes: int) -> Data:
    ring = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    return Data(edge_index=ring, y=torch.arange(nodes) % 3, num_nodes=nodes)


def test_20_000_texts_on_50_000_nodes() -> None:
    """Two common texts and 20,000 rare ones: 201 groups."""
    nodes, rng = 50_000, np.random.default_rng(0)
    text = np.array([f"v{number}" for number in rng.integers(0, 20_000, nodes)], dtype=object)
    text[:4000], text[4000:7000] = "most", "many"
    graph = graph_of(nodes)
    guesses = torch.where(torch.rand(nodes) < 0.7, graph.y, (graph.y + 1) % 3)
    found = rg.audit(graph, guesses, by=("club", text), resamples=100)
    model = found.models[0]
    assert len(model.groups) == len(model.curve) == MOST_TEXTS + 1
    sizes = [group.nodes for group in model.groups[:-1]]
    assert sorted(sizes)[-2:] == [3000, 4000]
    rest = model.groups[-1]
    assert rest.pooled
    assert sum(sizes) + rest.nodes == nodes
    singles, counts = np.unique(text, return_counts=True)
    assert min(sizes) >= np.sort(counts)[-MOST_TEXTS]
    assert rest.label == f"all others ({len(singles) - MOST_TEXTS:,} values)"
    assert model.by_accuracy is not None
    assert rest.label not in (model.by_accuracy.worst, model.by_accuracy.best)
    assert any("too many different values" in note for note in found.notes)
    assert "too many different values" in render(found)


def test_few_texts_stand_alone() -> None:
    text = np.array(["b", "a", "c", "a"] * 30, dtype=object)
    found = rg.audit(graph_of(120), torch.zeros(120), by=("club", text), resamples=100)
    assert [group.label for group in found.models[0].groups] == ["a", "b", "c"]
    assert not any(group.pooled for group in found.models[0].groups)
    assert not any("different values" in note for note in found.notes)


def test_many_whole_numbers_are_looked_at_by_bin() -> None:
    nodes = MOST_VALUES + 500
    income = ("income", np.arange(nodes) * 10)
    found = rg.audit(graph_of(nodes), torch.zeros(nodes), by=income, resamples=100)
    assert len(found.models[0].curve) == len(found.models[0].groups) == 5
    assert found.how.bias_over == "the groups"
    assert any("not over single values" in note for note in found.notes)
    few = ("age", np.arange(nodes) % 90)
    found = rg.audit(graph_of(nodes), torch.zeros(nodes), by=few, resamples=100)
    assert len(found.models[0].curve) == 90
    assert found.how.bias_over == "single values of age"


@pytest.mark.parametrize(
    "how",
    [
        "degree",
        "quantile:1001",
        f"quantile:{'9' * 5000}",
        f"edges:{','.join(map(str, range(1001)))}",
    ],
)
def test_more_groups_than_are_compared_are_refused(how: str) -> None:
    with pytest.raises(RawlsError, match=r"--bins"):
        bins_of(np.arange(MOST_BINS + 1.0), how)


def test_one_long_text_does_not_make_all_texts_long() -> None:
    text = np.array(["short"] * 20_000, dtype=object)
    text[7] = "x" * 2_000
    graph = graph_of(20_000)
    tracemalloc.start()
    bins_of(column_of(graph, ("text", text)).values, None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6  # as numpy's texts of one length it would be 160 MB
