"""Loss and accuracy of every degree, with bootstrap intervals, and who is worst off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .._core.errors import RawlsError
from .degree_bias import LINE_NODES, DegreeGroups, node_scores

if TYPE_CHECKING:
    import pandas as pd

_DRAWS = 1 << 20
"""Draws held in memory at once (some 40 MB), unless one resample alone has more nodes."""


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
    """Count, mean loss and accuracy (per cent) of the nodes in ``mask``, by degree.

    Args:
        logits: (runs, nodes, classes), or (nodes, classes) of a single run.
        y: Classes, (nodes,); unlabelled nodes (-1) are left out.
        degree: Number of neighbours, (nodes,).
        mask: The evaluated nodes, (nodes,), bool.
        resamples: How many times the nodes of every degree are drawn anew, with replacement.
        seed: The seed of those draws.
        level: The share of the resamples between ``_low`` and ``_high``.

    Returns:
        A frame indexed by degree with the columns count, loss, loss_low, loss_high, accuracy,
        accuracy_low and accuracy_high. A node's loss and correctness are averaged over the runs
        first: the intervals speak of the choice of nodes, not of the seeds. A degree of a single
        node has no interval (NaN), because drawing that node again cannot show any spread.
    """
    import pandas as pd

    y, mask = y.cpu(), mask.cpu()
    nodes = (mask & (y >= 0)).nonzero().squeeze(-1)
    if not len(nodes):
        raise RawlsError(
            "there is nothing to show by degree: none of the evaluated nodes has a label; "
            "give labels for them or another test mask"
        )
    # Nodes of a degree side by side: a group is then a slice, and a draw within it an offset.
    nodes = nodes[degree.cpu()[nodes].argsort(stable=True)]
    loss, right = _mean_scores(logits, nodes, y[nodes])
    groups = DegreeGroups.of(degree.cpu()[nodes])
    count = groups.count.numpy()

    columns: dict[str, Any] = {"count": count}
    intervals = _intervals(loss.numpy(), right.numpy(), count, resamples, seed, level)
    scores = (("loss", loss, 1), ("accuracy", right, 100))
    for (name, values, scale), ends in zip(scores, intervals, strict=True):
        low, high = scale * np.where(count > 1, ends, np.nan)
        columns[name] = scale * groups.mean(values).numpy()
        columns[f"{name}_low"], columns[f"{name}_high"] = low, high
    return pd.DataFrame(columns, index=pd.Index(groups.degree.numpy(), name="degree"))


def worst_off(frame: pd.DataFrame, groups: int = 3, at_least: int = LINE_NODES) -> pd.DataFrame:
    """The ``groups`` rows of lowest accuracy among degrees of ``at_least`` nodes, worst first.

    Of two degrees of the same accuracy the one with the higher loss is worse off.
    """
    big = frame[frame["count"] >= at_least]
    return big.sort_values(["accuracy", "loss"], ascending=[True, False], kind="stable").head(
        groups
    )


def _mean_scores(logits: Tensor, nodes: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    runs = logits.detach() if logits.dim() == 3 else logits.detach().unsqueeze(0)
    loss, right = torch.zeros(2, len(nodes), dtype=torch.float64)
    for run in runs:  # one at a time: the float64 copy of a run's logits is the largest thing here
        run_loss, run_right = node_scores(run[nodes.to(run.device)].cpu(), y)
        loss += run_loss
        right += run_right
    return loss / len(runs), right / len(runs)


def _intervals(
    loss: npt.NDArray[np.float64],
    right: npt.NDArray[np.float64],
    count: npt.NDArray[np.int64],
    resamples: int,
    seed: int,
    level: float,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Percentile bootstrap intervals (2, groups) of the mean loss and of the mean correctness."""
    nodes, rng = len(loss), np.random.default_rng(seed)
    start = np.cumsum(count) - count
    size, offset = np.repeat(count, count), np.repeat(start, count)
    # As the two parts of one complex number, both scores of a drawn node are fetched at once.
    scores = loss + 1j * right
    means = np.empty((resamples, len(count)), dtype=np.complex128)
    rows = max(1, _DRAWS // nodes)
    for first in range(0, resamples, rows):
        draws = rng.random((min(rows, resamples - first), nodes))
        draws *= size
        drawn = draws.astype(np.int64)
        drawn += offset
        means[first : first + rows] = np.add.reduceat(scores[drawn], start, axis=1)
    means /= count
    ends = [(1 - level) / 2, (1 + level) / 2]
    return np.quantile(means.real, ends, axis=0), np.quantile(means.imag, ends, axis=0)
