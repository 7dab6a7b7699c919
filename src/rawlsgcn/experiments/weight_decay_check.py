"""A note where the weight decay keeps a model from fitting its training nodes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from .._core.progress import ProgressCallback, no_progress
from ..evaluation.majority_baseline import Learning
from ..methods import Convolutional, Inputs, Method, Settings
from ..training import Job, train_runs

if TYPE_CHECKING:
    from .result import Result

# Measured on the seven graphs and the synthetic one with the default settings of GCN and both
# RawlsGCN methods, and with a weight decay of 5e-6 (table in docs/metrics.md).
#: A training accuracy, in per cent, from which on nothing is checked. With the default of 5e-4 it
#: was 94 % or less where the decay is too large, elsewhere 96 % or more, except for RawlsGCN-Graph
#: on Chameleon.
FITTED = 95.0
#: The run that is trained for comparison has the weight decay divided by this: 5e-4 gives 5e-6.
DIVISOR = 100
#: The largest share of the training errors that less decay may leave; measured: 7 to 50 %.
ERROR_LEFT = 2 / 3
#: Standard errors by which more training and validation nodes must be predicted correctly. The
#: validation nodes prevent a false alarm: on Chameleon RawlsGCN-Graph with less decay fits its
#: training nodes better (93 % instead of 80 %) and validation nodes worse (46 % instead of 59 %).
CLEAR = 2.0
#: The share of the way from the majority class to no error; slow methods get a note below it.
NEAR_CHANCE = 0.25


def weight_decay_note(
    result: Result,
    method: Method,
    settings: Settings,
    inputs: Inputs,
    *,
    engine: str = "auto",
    progress: ProgressCallback = no_progress,
) -> str | None:
    """Return a sentence if the weight decay seems to be too large for the graph, or None.

    Nothing is trained if the training accuracy is at least ``FITTED``. Otherwise a method of the
    GCN family is trained once more, with the seed of the run with the median training accuracy and
    the weight decay divided by ``DIVISOR``. The decay is too large if that run has clearly fewer
    errors on the training nodes and is clearly better on the validation nodes. For other methods,
    which are slow, the sentence depends on the training accuracy alone. The result is not changed.
    """
    if settings.weight_decay == 0 or result.diverged:
        return None
    accuracies = result.training_accuracy.runs
    median = sorted(range(len(accuracies)), key=accuracies.__getitem__)[(len(accuracies) - 1) // 2]
    if accuracies[median] >= FITTED:
        return None
    lower = float(f"{settings.weight_decay / DIVISOR:.3g}")
    if not isinstance(method, Convolutional):
        return _near_chance(result, median, settings.weight_decay, lower)
    job = Job(replace(settings, weight_decay=lower), result.seeds[median])
    (probe,), _ = train_runs(method, inputs, [job], engine=engine, progress=progress)
    if not bool(probe.logits.isfinite().all()):
        return None
    graph = result.graph
    rises, errors_left = [], []
    for mask in (graph.train_mask, graph.val_mask):
        nodes = mask & (graph.y >= 0)
        right = [
            logits[nodes].argmax(-1) == graph.y[nodes]
            for logits in (result.logits[median], probe.logits)
        ]
        count = len(right[0])
        before, after = (int(each.sum()) for each in right)
        if not after - before > CLEAR * math.sqrt(int(torch.ne(*right).sum())):  # a sign test
            return None
        errors_left.append((count - after) / max(1, count - before))
        rises.append(f"from {100 * before / count:.0f} % to {100 * after / count:.0f} %")
    if errors_left[0] > ERROR_LEFT:
        return None
    return (
        f"{result.title}: the weight decay of {_short(settings.weight_decay)} is too large for "
        f"this graph. With {_short(lower)} (seed {result.seeds[median]}) training accuracy rises "
        f"{rises[0]}, and validation accuracy {rises[1]}: {_advice(lower)}."
    )


def _near_chance(result: Result, run: int, decay: float, lower: float) -> str | None:
    """The sentence about a slow method near chance; one that has not learned has a note already."""
    nodes = result.graph.train_mask & (result.graph.y >= 0)
    fit = Learning.of(result.logits[run][nodes].argmax(-1), result.graph.y[nodes])
    least = fit.majority + NEAR_CHANCE * (100 - fit.majority)
    if result.failure is not None or fit.accuracy >= least:
        return None
    return (
        f"{result.title}: training accuracy is only {fit.accuracy:.0f} %, where predicting the "
        f"most frequent class gives {fit.majority:.0f} %. The weight decay of {_short(decay)} may "
        f"be too large for this graph: {_advice(lower)}."
    )


def _advice(decay: float) -> str:
    setting = f"weight_decay={_short(decay)}"
    return f"try {setting} (on the command line --set {setting})"


def _short(value: float) -> str:
    """A small number as people write it: 5e-6, not 5e-06 and not 0.000005."""
    small = np.format_float_scientific(value, precision=2, trim="-", exp_digits=1)
    return f"{value:g}" if value >= 1e-3 else small
