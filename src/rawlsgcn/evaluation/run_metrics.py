"""The metrics of one run: how accurate it is, and how unevenly by degree."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from .._core.errors import RawlsError
from .calibration import CalibrationOutcome, temperature
from .degree_bias import degree_line, node_scores, variance
from .degree_groups import DegreeGroups, degree_quarters


@dataclass(frozen=True)
class RunMetrics:
    """One run on its evaluated nodes. A figure that is not defined is NaN.

    Attributes:
        accuracy: Per cent of the nodes classified correctly.
        bias: Var({AvgCE(k)}), the paper's bias: the sample variance (n-1), over the degrees
            present, of the mean cross entropy of the nodes of degree k. NaN for one degree only.
        calibrated_bias: The same after temperature scaling on the validation nodes.
        temperature: The temperature of that scaling; above 1, the model was too sure.
        low_degree_accuracy: Accuracy, per cent, of the nodes at or under the 25th percentile of
            the evaluated nodes' degrees.
        high_degree_accuracy: The same at or over the 75th percentile.
        loss_slope: Slope of the least squares line through the mean losses of the degrees of
            more than five nodes, per degree. NaN for fewer than two such degrees.
        accuracy_slope: The same of accuracy, in percentage points per degree.
        calibration: How the search for the temperature ended.
    """

    accuracy: float
    bias: float
    calibrated_bias: float
    temperature: float
    low_degree_accuracy: float
    high_degree_accuracy: float
    loss_slope: float
    accuracy_slope: float
    calibration: CalibrationOutcome


def evaluate_run(
    logits: Tensor, y: Tensor, degree: Tensor, mask: Tensor, val_mask: Tensor
) -> RunMetrics:
    """Compute the metrics of one run on the nodes in ``mask``.

    Nodes without a label (``y`` = -1) are ignored. Sums are in float64 and on the CPU, where they
    are the same every time.

    Args:
        logits: Scores before any softmax, (nodes, classes).
        y: Classes, (nodes,).
        degree: Number of neighbors, (nodes,).
        mask: The evaluated nodes, (nodes,), bool.
        val_mask: The nodes that the temperature is chosen on, (nodes,), bool.

    Returns:
        The metrics.

    Raises:
        RawlsError: If none of the evaluated nodes has a label.
    """
    test_logits, test_y, test_degree = _evaluated(logits, y, degree, mask)
    if not len(test_y):
        raise RawlsError(
            "there is nothing to evaluate: none of the evaluated nodes has a label; "
            "give labels for them or another test mask"
        )
    val_logits, val_y, _ = _evaluated(logits, y, degree, val_mask)

    loss, right = node_scores(test_logits, test_y)
    groups = DegreeGroups.of(test_degree)
    mean_loss = groups.mean(loss)
    scaling, outcome = temperature(val_logits, val_y)
    scaled_loss, _ = node_scores(test_logits / scaling, test_y)
    low, high = degree_quarters(test_degree.numpy())
    return RunMetrics(
        accuracy=_percent(right),
        bias=variance(mean_loss),
        calibrated_bias=variance(groups.mean(scaled_loss)),
        temperature=scaling,
        low_degree_accuracy=_percent(right[test_degree <= low]),
        high_degree_accuracy=_percent(right[test_degree >= high]),
        loss_slope=degree_line(groups, mean_loss)[0],
        accuracy_slope=100 * degree_line(groups, groups.mean(right))[0],
        calibration=outcome,
    )


def _evaluated(
    logits: Tensor, y: Tensor, degree: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Logits (float64), labels and degrees of the labeled nodes in ``mask``."""
    y, degree, mask = y.cpu(), degree.cpu(), mask.cpu()
    nodes = (mask & (y >= 0)).nonzero().squeeze(-1)
    picked = logits.detach()[nodes.to(logits.device)]
    return picked.cpu().double(), y[nodes], degree[nodes]


def _percent(right: Tensor) -> float:
    return 100 * float(right.mean())
