"""The metrics of runs: how accurate they are, how unevenly by degree, and a frame by degree."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .._core.errors import RawlsError
from .audit.group_statistics import GroupedScores
from .audit.intervals import GroupMeans
from .audit.resampling import resampled
from .calibration import CalibrationOutcome, Temperature, precise_temperature
from .degree_bias import (
    SMALLEST_GROUP,
    DegreeGroups,
    degree_line,
    degree_quarters,
    node_scores,
    variance,
)

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class RunMetrics:
    """One run on its evaluated nodes. A figure that is not defined is NaN.

    Attributes:
        accuracy: Per cent of the nodes classified correctly.
        bias: Var({AvgCE(k)}), the paper's bias: the sample variance (n-1), over the degrees
            present, of the mean cross entropy of the nodes of degree k. NaN for one degree only.
        calibrated_bias: The same after temperature scaling on the validation nodes. NaN where
            they do not determine the temperature (``calibration.precise_temperature``).
        temperature: The temperature of that scaling; above 1, the model was too sure.
        low_degree_accuracy: Accuracy, per cent, of the nodes at or under the 25th percentile of
            the evaluated nodes' degrees.
        high_degree_accuracy: The same at or over the 75th percentile.
        loss_slope: Slope of the least squares line through the mean losses of the degrees of
            more than five nodes, per degree. NaN for fewer than two such degrees.
        accuracy_slope: The same of accuracy, in percentage points per degree.
        calibration: How the search for the temperature ended.
        scaled_bias: The bias at that temperature, however little the nodes determine it: for the
            paper's tables, in which nothing is left out.
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
    scaled_bias: float = math.nan


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
    val_logits, val_y, _ = _evaluated(logits, y, degree, val_mask, needed=False)
    loss, right = node_scores(test_logits, test_y)
    scaling = precise_temperature(val_logits, val_y)
    scaled_loss, _ = node_scores(test_logits / scaling.value, test_y)
    return metrics_of_scores(loss, right, scaled_loss, test_degree, scaling)


def metrics_of_scores(
    loss: Tensor, right: Tensor, scaled_loss: Tensor, degree: Tensor, scaling: Temperature
) -> RunMetrics:
    """Compute the metrics of one run from a few numbers of each evaluated node, all (nodes,).

    ``loss`` is its cross entropy, float64, and ``scaled_loss`` that after temperature ``scaling``.
    """
    groups = DegreeGroups.of(degree)
    mean_loss, scaled_bias = groups.mean(loss), variance(groups.mean(scaled_loss))
    low, high = degree_quarters(degree.numpy())
    return RunMetrics(
        accuracy=100 * float(right.mean()),
        bias=variance(mean_loss),
        calibrated_bias=scaled_bias if scaling.outcome.usable else math.nan,
        temperature=scaling.value,
        low_degree_accuracy=100 * float(right[degree <= low].mean()),
        high_degree_accuracy=100 * float(right[degree >= high].mean()),
        loss_slope=degree_line(groups, mean_loss)[0],
        accuracy_slope=100 * degree_line(groups, groups.mean(right))[0],
        calibration=scaling.outcome,
        scaled_bias=scaled_bias,
    )


def degree_frame(
    logits: Tensor,
    y: Tensor,
    degree: Tensor,
    mask: Tensor,
    *,
    resamples: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> pd.DataFrame:
    """Compute count, mean loss and accuracy (per cent) of the nodes in ``mask``, by degree.

    Args:
        logits: (runs, nodes, classes), or (nodes, classes) of a single run.
        y: Classes, (nodes,); unlabeled nodes (-1) are ignored.
        degree: Number of neighbors, (nodes,).
        mask: The evaluated nodes, (nodes,), bool.
        resamples: Draws of the bootstrap.
        seed: The seed of those draws.
        level: The confidence level of the intervals.

    Returns:
        A frame indexed by degree with the columns count, loss, loss_low, loss_high, accuracy,
        accuracy_low and accuracy_high. A node's loss and correctness are averaged over the runs
        first: the intervals are about the choice of nodes, not about the seeds. They are those of
        the audit: the studentized bootstrap for the loss and Wilson's for the accuracy; NaN for
        degrees of fewer than ``SMALLEST_GROUP`` nodes.

    Raises:
        RawlsError: If none of the evaluated nodes has a label.
    """
    import pandas as pd

    runs = logits if logits.dim() == 3 else logits.unsqueeze(0)
    sums = torch.zeros((), dtype=torch.float64)
    for run in runs:  # one at a time: the float64 copy of a run's logits is the largest thing here
        picked, labels, degrees = _evaluated(run, y, degree, mask)
        sums = sums + torch.stack(node_scores(picked, labels))
    grouped = GroupedScores.of(degrees.numpy(), *(sums / len(runs)).numpy())
    means = GroupMeans(grouped.sums(), resampled(grouped, resamples, seed), level)
    columns = {"count": grouped.count, "loss": means.mean}
    columns["loss_low"], columns["loss_high"] = means.loss_ends
    columns["accuracy"] = 100 * means.rate
    columns["accuracy_low"], columns["accuracy_high"] = (100 * end for end in means.rate_ends)
    return pd.DataFrame(columns, index=pd.Index(grouped.value.astype(int), name="degree"))


def worst_off(frame: pd.DataFrame, groups: int = 3, at_least: int = SMALLEST_GROUP) -> pd.DataFrame:
    """Choose the degrees of lowest accuracy, worst first.

    Of two degrees of the same accuracy the one with the higher loss is worse off.

    Args:
        frame: A frame of :func:`degree_frame`.
        groups: The most rows to return.
        at_least: The fewest nodes of a degree that is named.

    Returns:
        Rows of ``frame``.
    """
    big = frame[frame["count"] >= at_least]
    return big.sort_values(["accuracy", "loss"], ascending=[True, False], kind="stable").head(
        groups
    )


def _evaluated(
    logits: Tensor, y: Tensor, degree: Tensor, mask: Tensor, needed: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """Logits (float64), labels and degrees of the labeled nodes in ``mask``."""
    y, degree, mask = y.cpu(), degree.cpu(), mask.cpu()
    nodes = (mask & (y >= 0)).nonzero().squeeze(-1)
    if needed and not len(nodes):
        raise RawlsError(
            "there is nothing to evaluate: none of the evaluated nodes has a label; "
            "give labels for them or another test mask"
        )
    picked = logits.detach()[nodes.to(logits.device)]
    return picked.cpu().double(), y[nodes], degree[nodes]
