"""Metrics of models on smoothed rows, from the scores of a block of nodes at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..._core.distributed_context import DistributedContext
from ..._core.errors import RawlsError
from ...evaluation.calibration import precise_temperature
from ...evaluation.degree_bias import node_scores
from ...evaluation.run_metrics import RunMetrics, metrics_of_scores
from ...graphs.shards.shard_graph import ShardNodes
from ...methods.base import accuracy_of
from ...training.sampled.inference import exchange_rows
from ...training.smoothed.row_order import evenly
from ...training.smoothed.row_scores import RowModel, row_scores

Ints = NDArray[np.int64]
#: Validation nodes that the temperature is found on, at most: of more, so many are taken.
_CALIBRATION_NODES = 200_000


def evaluate_rows(
    models: Sequence[RowModel],
    nodes: ShardNodes,
    context: DistributedContext | None = None,
    temperature: float | None = None,
) -> tuple[RunMetrics, float]:
    """Compute the metrics on all test nodes, of which only three numbers each are kept.

    The scores of several models are those of their mean, divided by the ``temperature``.

    Returns:
        The metrics, the same in every process, and the accuracy on the validation nodes, of which
        at most 200,000 are taken, in per cent.
    """
    context = context or DistributedContext()

    def shared(chosen: Ints, width: int, figures: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """The figures of nodes from their scores and classes; every process takes a range."""
        cuts = (np.arange(context.world_size + 1) * len(chosen) // context.world_size).tolist()
        out = torch.empty(len(chosen), width, dtype=torch.float64)
        own = slice(*cuts[context.rank : context.rank + 2])
        for part, logits in row_scores(models, chosen[own], temperature):
            require_finite_scores(logits)
            y = torch.from_numpy(nodes.y[chosen[own][part]])
            out[own][part] = figures(logits.double(), y)
        exchange_rows(out, cuts, context.device)
        return out

    val, test = evenly(nodes.nodes("val"), _CALIBRATION_NODES), nodes.nodes("test")
    val_y = torch.from_numpy(nodes.y[val])
    val_logits = shared(val, nodes.shards.classes, lambda logits, _: logits)
    scaling = precise_temperature(val_logits, val_y)

    def loss_right_scaled(logits: Tensor, y: Tensor) -> Tensor:
        scaled, _ = node_scores(logits / scaling.value, y)
        return torch.stack([*node_scores(logits, y), scaled], 1)

    loss, right, scaled = shared(test, 3, loss_right_scaled).unbind(1)
    degree = torch.from_numpy(nodes.degree[test])
    return metrics_of_scores(loss, right, scaled, degree, scaling), 100 * accuracy_of(
        val_logits, val_y
    )


def require_finite_scores(logits: Tensor, lr: float | None = None) -> None:
    """Raise an error if scores of a model that was just trained are not finite numbers."""
    if not bool(logits.isfinite().all()):
        rate = "" if lr is None else f" of {lr:g}"
        raise RawlsError(
            "the trained model's scores are not finite numbers, so that it is not saved: lower the "
            f"learning rate{rate} and start again"
        )
