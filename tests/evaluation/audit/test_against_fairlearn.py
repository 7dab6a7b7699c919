"""The numbers agree with fairlearn's MetricFrame and scikit-learn's metrics on the same groups."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fairlearn.metrics import MetricFrame
from sklearn.metrics import accuracy_score, log_loss
from torch_geometric.data import Data

import rawlsgcn as rg
from rawlsgcn.experiments.auditing.audit_result import Audit

CLASSES, NODES = 4, 400


@pytest.fixture(scope="module")
def graph() -> Data:
    return rg.synthetic(NODES, classes=CLASSES)


@pytest.fixture(scope="module")
def probabilities(graph: Data) -> np.ndarray:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(NODES, CLASSES, generator=generator, dtype=torch.float64)
    logits[torch.arange(NODES), graph.y] += 1
    return torch.softmax(logits, 1).numpy()


@pytest.fixture(scope="module")
def audit(graph: Data, probabilities: np.ndarray) -> Audit:
    return rg.audit(graph, probabilities, bins="quantile:4", resamples=200)


@pytest.fixture(scope="module")
def frame(graph: Data, probabilities: np.ndarray, audit: Audit) -> MetricFrame:
    nodes = graph.test_mask.numpy()
    degree = np.bincount(graph.edge_index[0], minlength=NODES)[nodes]
    groups = audit.models[0].groups
    of_node = [next(g.label for g in groups if g.low <= each <= g.high) for each in degree]

    def mean_log_loss(y_true: np.ndarray, rows: np.ndarray) -> float:
        return float(log_loss(y_true, probabilities[rows], labels=range(CLASSES)))

    def accuracy(y_true: np.ndarray, rows: np.ndarray) -> float:
        return float(accuracy_score(y_true, probabilities[rows].argmax(1)))

    return MetricFrame(
        metrics={"accuracy": accuracy, "loss": mean_log_loss},
        y_true=graph.y.numpy()[nodes],
        y_pred=np.flatnonzero(nodes),
        sensitive_features=of_node,
    )


def test_overall(audit: Audit, frame: MetricFrame) -> None:
    model = audit.models[0]
    assert model.accuracy.value == pytest.approx(100 * frame.overall["accuracy"], abs=1e-9)
    assert model.loss.value == pytest.approx(frame.overall["loss"], abs=1e-9)


def test_by_group(audit: Audit, frame: MetricFrame) -> None:
    assert len(audit.models[0].groups) == len(frame.by_group) > 2
    for group in audit.models[0].groups:
        theirs = frame.by_group.loc[group.label]
        assert group.accuracy.value == pytest.approx(100 * theirs["accuracy"], abs=1e-9)
        assert group.loss.value == pytest.approx(theirs["loss"], abs=1e-9)


def test_difference_ratio_and_worst_group(audit: Audit, frame: MetricFrame) -> None:
    model = audit.models[0]
    assert model.by_accuracy is not None
    difference, ratio = frame.difference(), frame.ratio()
    assert model.by_accuracy.difference.value == pytest.approx(100 * difference["accuracy"])
    assert model.by_accuracy.ratio == pytest.approx(ratio["accuracy"])
    assert model.by_accuracy.worst == frame.by_group["accuracy"].astype(float).idxmin()


def test_calibration_error_is_that_of_torchmetrics(
    audit: Audit, graph: Data, probabilities: np.ndarray
) -> None:
    from torchmetrics.functional.classification import multiclass_calibration_error

    nodes = graph.test_mask
    theirs = multiclass_calibration_error(
        torch.from_numpy(probabilities)[nodes], graph.y[nodes], CLASSES, n_bins=15, norm="l1"
    )
    scaling = audit.models[0].scaling
    assert scaling is not None
    assert scaling.error == pytest.approx(100 * float(theirs), abs=1e-3)
