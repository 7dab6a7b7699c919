"""Slopes are least squares on log2(1 + degree) over all nodes, those without neighbours too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

import rawlsgcn as rg
from rawlsgcn.evaluation.audit.group_statistics import GroupedScores
from rawlsgcn.evaluation.audit.resampling import resampled
from rawlsgcn.evaluation.audit.trend import log_scale, slopes
from rawlsgcn.reporting.page import render


def fit(x: np.ndarray, y: np.ndarray) -> float:
    """The slope of a dense least-squares fit with an intercept."""
    design = np.stack([np.ones_like(x), x], 1)
    return float(np.linalg.lstsq(design, y, rcond=None)[0][1])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(-50, 50), st.booleans()), min_size=2),
)
def test_slopes_are_those_of_a_dense_fit(nodes: list[tuple[int, int, bool]]) -> None:
    degree, tenths, right = (np.array(each, dtype=float) for each in zip(*nodes, strict=True))
    loss = tenths / 10
    grouped = GroupedScores.of(degree, loss, right)
    found = slopes(grouped, resampled(grouped, 100, 0))
    if len(np.unique(degree)) < 2:
        assert found is None
        return
    assert found is not None
    x = np.log2(1 + degree)
    assert found.loss.value == pytest.approx(fit(x, loss), rel=1e-7, abs=1e-9)
    assert found.accuracy.value == pytest.approx(100 * fit(x, right), rel=1e-7, abs=1e-7)


def test_an_audit_counts_nodes_without_neighbours() -> None:
    """Leaves, hubs, and isolated nodes that are always wrong: without these there is no trend."""
    hubs, leaves = torch.arange(20), torch.arange(20, 120)
    edges = torch.stack([leaves, hubs[leaves % 20]])
    y = torch.arange(160) % 2
    graph = Data(edge_index=edges, y=y, num_nodes=160)
    predicted = torch.where(torch.arange(160) < 120, y, 1 - y)
    audit = rg.audit(graph, predicted, resamples=100)
    slope = audit.models[0].slope
    assert slope is not None
    degree = np.bincount(edges.numpy().ravel(), minlength=160)
    expected = fit(np.log2(1.0 + degree), (predicted != y).numpy().astype(float))
    assert slope.loss.value == pytest.approx(expected)
    assert expected < -0.1
    assert "with each doubling of 1 + degree" in str(audit)
    assert "slope on log₂(1 + degree) over all evaluated nodes" in render(audit)


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([0, 1, 5], "one more"),
        ([0.25, 0.5], "plain"),
        ([0.0, 0.5], None),
        ([-1, 2], None),
        ([3, 3], None),
        ([float("nan"), float("nan")], None),
    ],
)
def test_the_logarithm_is_one_that_no_node_falls_out_of(values: Any, scale: str | None) -> None:
    assert log_scale(np.array(values, dtype=float)) == scale


def test_a_column_without_a_logarithm_has_no_slope_rather_than_fewer_nodes() -> None:
    ring = torch.stack([torch.arange(60), (torch.arange(60) + 1) % 60])
    graph = Data(edge_index=ring, y=torch.arange(60) % 3, num_nodes=60)
    balance = ("balance", np.arange(60) - 30)
    assert rg.audit(graph, torch.zeros(60), by=balance, resamples=100).models[0].slope is None
