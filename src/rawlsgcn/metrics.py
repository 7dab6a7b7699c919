"""The paper's degree bias as a torchmetrics metric, for any training loop."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat

from ._core.errors import RawlsError
from .evaluation.degree_bias import DegreeGroups, node_scores, variance

__all__ = ["DegreeBias"]


def _look_like_probabilities(scores: Tensor) -> bool:
    """Whether every row has no negative number and the sum one."""
    if not scores.numel() or scores.shape[1] < 2 or bool((scores < 0).any()):
        return False
    return bool(((scores.double().sum(-1) - 1).abs() < 1e-2).all())


class DegreeBias(Metric):
    r"""The degree bias of `RawlsGCN <https://arxiv.org/abs/2202.13547>`_, over batches and
    processes.

    .. math::
        \textrm{Bias} = \textrm{Var}\big(\{\textrm{AvgCE}(k)\}\big), \qquad
        \textrm{AvgCE}(k) = \textrm{mean}\{\textrm{CE}(u) : \deg(u) = k\}

    with the sample variance (n-1) over the degrees of the nodes so far. It is NaN for fewer than
    two degrees. A lower bias is not better by itself: a uniform guess has no bias at all.

    The state is one row (degree, nodes, sum of losses) for every degree, whatever the number of
    nodes. Processes have different degrees, so their rows cannot be added position by position;
    they are concatenated, and rows of the same degree are added afterwards. All states are float64,
    which holds degrees and counts up to 2^53 exactly.

    In a :class:`torchmetrics.MetricCollection` pass the degrees by keyword, so that the other
    metrics do not get them: ``metrics(logits, target, degree=degree)``.

    Args:
        ignore_index: Targets with this value (by default -1, unlabeled) are ignored.
        **kwargs: Passed to :class:`torchmetrics.Metric`.

    Shapes:
        - **preds:** (nodes, classes), logits: scores before any softmax
        - **target:** (nodes,), classes
        - **degree:** (nodes,), the nodes' degrees in the whole graph, not in a sampled part of it

    Example:
        >>> import torch
        >>> from rawlsgcn.metrics import DegreeBias
        >>> bias = DegreeBias()
        >>> logits = torch.tensor([[2.0, 0.0], [0.0, 2.0], [1.0, 0.0]])
        >>> bias.update(logits, target=torch.tensor([0, 1, 1]), degree=torch.tensor([5, 5, 1]))
        >>> bias.compute()
        tensor(0.7037, dtype=torch.float64)
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
        # A process without a batch contributes an empty tensor of this type.
        self.set_dtype(torch.float64)

    def update(self, preds: Tensor, target: Tensor, degree: Tensor) -> None:
        """Add a batch of nodes.

        Args:
            preds: Logits (nodes, classes): scores before any softmax.
            target: Classes (nodes,).
            degree: Degrees (nodes,) in the whole graph.

        Raises:
            RawlsError: If the shapes do not match, a target is no class of the logits, or a degree
                is negative or not finite.
        """
        if preds.dim() != 2 or target.shape != preds.shape[:1] or degree.shape != target.shape:
            raise RawlsError(
                "DegreeBias needs logits (nodes, classes), target (nodes,) and degree (nodes,), "
                f"but got {tuple(preds.shape)}, {tuple(target.shape)} and {tuple(degree.shape)}"
            )
        if target.is_floating_point() or target.is_complex() or target.dtype == torch.bool:
            raise RawlsError(
                f"DegreeBias needs classes as integers, but target is {target.dtype}: use "
                "target.long()"
            )
        kept = target != self.ignore_index
        preds, target, degree = preds.detach()[kept], target[kept], degree[kept]
        if len(target) and not 0 <= int(target.min()) <= int(target.max()) < preds.shape[1]:
            raise RawlsError(
                f"DegreeBias got targets from {int(target.min())} to {int(target.max())} for "
                f"{preds.shape[1]} columns of logits: they must be 0 to {preds.shape[1] - 1}, or "
                f"ignore_index ({self.ignore_index})"
            )
        if not bool((degree >= 0).all() & degree.isfinite().all()):
            raise RawlsError("DegreeBias needs degrees that are at least 0 and finite")
        if _look_like_probabilities(preds):
            warnings.warn(
                "DegreeBias was given what look like probabilities: it needs logits, the scores "
                "before the softmax (or the logarithm of probabilities)",
                stacklevel=2,
            )
        loss, _ = node_scores(preds, target)
        self.degree.append(degree.double())
        self.count.append(torch.ones_like(loss))
        self.loss.append(loss)
        self._add_up()

    def compute(self) -> Tensor:
        """Compute the bias of all nodes so far.

        Returns:
            The bias, a float64 scalar; NaN for fewer than two degrees.
        """
        if not len(self.degree):
            return torch.tensor(torch.nan, dtype=torch.float64, device=self.device)
        _, count, loss = self._rows()
        return torch.tensor(variance(loss / count), dtype=torch.float64, device=self.device)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Add a batch and compute the bias of that batch alone.

        Args:
            *args: As for :meth:`update`.
            **kwargs: As for :meth:`update`.

        Returns:
            The bias of the batch.
        """
        value = super().forward(*args, **kwargs)
        self._add_up()  # torchmetrics has appended the batch's rows to those before
        return value

    def _rows(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the states with the rows of each degree added up."""
        groups = DegreeGroups.of(dim_zero_cat(self.degree))
        count = groups.total(dim_zero_cat(self.count))
        return groups.degree, count, groups.total(dim_zero_cat(self.loss))

    def _add_up(self) -> None:
        degree, count, loss = self._rows()
        self.degree, self.count, self.loss = [degree], [count], [loss]
