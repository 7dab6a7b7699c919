"""The paper's bias as a torchmetrics metric, for any training loop."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat

from ._core.errors import RawlsError
from .evaluation.degree_bias import node_scores, variance
from .evaluation.degree_groups import DegreeGroups


class DegreeBias(Metric):
    r"""The degree bias of `RawlsGCN <https://arxiv.org/abs/2202.13547>`_, over batches and ranks.

    .. math::
        \textrm{Bias} = \textrm{Var}\big(\{\textrm{AvgCE}(k)\}\big), \qquad
        \textrm{AvgCE}(k) = \textrm{mean}\{\textrm{CE}(u) : \deg(u) = k\}

    with the sample variance (n-1) over the degrees seen. It is NaN until two degrees were seen.
    Lower is more even, but not by itself better: a uniform guess has no bias at all.

    The state is one row (degree, nodes, sum of losses) for every degree seen, whatever the number
    of nodes. Ranks see different degrees, so their rows cannot be added position by position;
    they are concatenated, and rows of the same degree are added afterwards. All states are
    float64, which holds degrees and counts up to 2^53 exactly.

    Args:
        ignore_index: Targets with this value (by default -1, unlabeled) are ignored.
        kwargs: Passed on to :class:`torchmetrics.Metric`.

    Shapes:
        - **logits:** (nodes, classes), before any softmax
        - **target:** (nodes,), classes
        - **degree:** (nodes,), the nodes' degrees in the whole graph, not in a sampled part of it
    """

    is_differentiable = False
    higher_is_better = False
    full_state_update = False

    degree: list[Tensor]
    count: list[Tensor]
    loss: list[Tensor]

    def __init__(self, ignore_index: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.ignore_index = ignore_index
        for state in ("degree", "count", "loss"):
            self.add_state(state, default=[], dist_reduce_fx="cat")
        # A rank that saw no batch contributes an empty tensor of this type to the gathering.
        self.set_dtype(torch.float64)

    def update(self, logits: Tensor, target: Tensor, degree: Tensor) -> None:
        """Add a batch of nodes.

        Args:
            logits: Scores before any softmax, (nodes, classes).
            target: Classes, (nodes,).
            degree: The nodes' degrees in the whole graph, (nodes,).

        Raises:
            RawlsError: If the shapes do not fit.
        """
        if logits.dim() != 2 or target.shape != logits.shape[:1] or degree.shape != target.shape:
            raise RawlsError(
                "DegreeBias needs logits (nodes, classes), target (nodes,) and degree (nodes,), "
                f"but got {tuple(logits.shape)}, {tuple(target.shape)} and {tuple(degree.shape)}"
            )
        kept = target != self.ignore_index
        loss, _ = node_scores(logits[kept], target[kept])
        self.degree.append(degree[kept].double())
        self.count.append(torch.ones_like(loss))
        self.loss.append(loss)
        self._add_up()

    def compute(self) -> Tensor:
        """Compute the bias of all nodes so far.

        Returns:
            A float64 scalar; NaN until two degrees were seen.
        """
        if not len(self.degree):
            return torch.tensor(torch.nan, dtype=torch.float64, device=self.device)
        _, count, loss = self._rows()
        return torch.tensor(variance(loss / count), dtype=torch.float64, device=self.device)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Add a batch and return the bias of that batch alone."""
        value = super().forward(*args, **kwargs)
        self._add_up()  # torchmetrics has appended the batch's rows to those before
        return value

    def _rows(self) -> tuple[Tensor, Tensor, Tensor]:
        """The states with the rows of the same degree added up."""
        groups = DegreeGroups.of(dim_zero_cat(self.degree))
        count = groups.total(dim_zero_cat(self.count))
        return groups.degree, count, groups.total(dim_zero_cat(self.loss))

    def _add_up(self) -> None:
        degree, count, loss = self._rows()
        self.degree, self.count, self.loss = [degree], [count], [loss]
