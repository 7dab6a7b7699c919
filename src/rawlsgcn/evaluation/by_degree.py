"""Loss and accuracy of every degree, with the audit's intervals, and the worst-off degrees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .._core.errors import RawlsError
from .audit.group_statistics import GroupedScores
from .audit.intervals import GroupMeans
from .audit.resampling import resampled
from .degree_bias import node_scores
from .degree_groups import SMALLEST_GROUP

if TYPE_CHECKING:
    import pandas as pd


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

    y, mask = y.cpu(), mask.cpu()
    nodes = (mask & (y >= 0)).nonzero().squeeze(-1)
    if not len(nodes):
        raise RawlsError(
            "there is nothing to show by degree: none of the evaluated nodes has a label; "
            "give labels for them or another test mask"
        )
    loss, right = _mean_scores(logits, nodes, y[nodes])
    grouped = GroupedScores.of(degree.cpu()[nodes].numpy(), loss.numpy(), right.numpy())
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


def _mean_scores(logits: Tensor, nodes: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Loss and correctness of ``nodes``, averaged over the runs."""
    runs = logits.detach() if logits.dim() == 3 else logits.detach().unsqueeze(0)
    loss, right = torch.zeros(2, len(nodes), dtype=torch.float64)
    for run in runs:  # one at a time: the float64 copy of a run's logits is the largest thing here
        run_loss, run_right = node_scores(run[nodes.to(run.device)].cpu(), y)
        loss += run_loss
        right += run_right
    return loss / len(runs), right / len(runs)
