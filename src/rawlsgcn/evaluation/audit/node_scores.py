"""From predictions, a chunk at a time, to each node's loss, class and confidence.

The chunks are read twice: once for the scores, and, when the temperature is known, once more for
the losses after scaling. In between only a few numbers of each node are kept, and the scores of a
sample of nodes to find the temperature on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import torch

from ..._core.errors import RawlsError, unknown_name
from ..calibration import UNDER_CONFIDENT, CalibrationOutcome, precise_temperature
from ..prediction_formats import FORMATS, CheckedChunk, LabeledNodes, log_sum_exp
from ..predictions import Predictions

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
LARGEST_LOSS = -math.log(float(np.finfo(np.float32).tiny))
"""What a probability of exactly 0 counts as: about 87.3, the most that single precision tells."""
_CALIBRATION_NODES = 10_000


@dataclass(frozen=True)
class NodeScores:
    """One model's predictions, reduced to a few numbers for each node; all arrays are (nodes,).

    ``loss`` is the cross entropy, or 1 - right where only classes are known; NaN for nodes without
    a prediction or a label. ``confidence`` and ``calibrated_loss`` are None where only classes are
    known; the latter also where the temperature is not known well enough.
    """

    name: str  #: the model's name
    source: str  #: the file or array that its predictions come from
    format: str  #: "probabilities", "logits" or "classes"
    format_reason: str  #: why the predictions were taken for that
    predicted: Ints  #: the predicted classes; -1 for nodes without a prediction
    loss: Floats
    right: Floats  #: whether the predicted class is the label, 0 or 1
    confidence: Floats | None = None  #: the probability of the predicted class
    calibrated_loss: Floats | None = None  #: the loss after temperature scaling
    temperature: float = math.nan  #: the temperature of that scaling
    outcome: str = ""  #: how the search for it ended, in a sentence
    fitted_on: str = ""  #: which nodes it was found on
    warnings: list[str] = field(default_factory=list)  #: sentences for the user

    @property
    def loss_kind(self) -> str:
        """ "cross entropy", or "zero-one" where only classes are known."""
        return "zero-one" if self.confidence is None else "cross entropy"

    @property
    def under_confident(self) -> bool:
        """Whether the temperature was found, not at its bound, and is low."""
        found = self.outcome == CalibrationOutcome.FOUND.value
        return found and self.temperature < UNDER_CONFIDENT

    def at(self, nodes: Ints) -> NodeScores:
        """The scores of some ``nodes`` only."""
        arrays = {key: each[nodes] for key, each in vars(self).items() if hasattr(each, "dtype")}
        return replace(self, **arrays)


def score_nodes(predictions: Predictions, nodes: LabeledNodes, scores: str = "auto") -> NodeScores:
    """Score every node of the graph by one model's predictions.

    ``scores`` is "auto", or the format that the scores are taken for.

    Raises:
        RawlsError: If no node has a label, or the predictions do not fit the labels or the format.
    """
    if scores not in FORMATS:
        raise unknown_name("format of scores", scores, FORMATS)
    if not (nodes.y >= 0).any():
        raise RawlsError("no node has a label, all are -1: label some of the predicted ones")
    count = len(nodes.y)
    predicted, seen_at = np.full((2, count), -1, np.int64)
    loss, confidence = np.full((2, count), np.nan)
    sample = _calibration_sample(nodes)
    position = np.full(count, -1, np.int64)
    position[sample] = np.arange(len(sample))
    kept: Floats | None = None
    chosen, reason, zeros = scores, "you said so", 0
    for chunk in predictions.chunks():
        checked = CheckedChunk(predictions, nodes, chunk)
        checked.first_of_each(seen_at)
        if chunk.values.ndim == 1 or scores == "classes":
            if scores in ("probabilities", "logits"):
                raise RawlsError(
                    f"{predictions.source} has classes only, no {scores}: omit --scores "
                    "(scores='auto')"
                )
            chosen = "classes"
            if chunk.values.ndim == 1:
                reason = "there are no scores beside the class"
            predicted[chunk.nodes] = checked.classes()
            continue
        checked.require_every_class()
        if chosen == "auto":
            chosen, reason = checked.detect_format()
        z = checked.log_probabilities(chosen)
        predicted[chunk.nodes] = chunk.values.argmax(1)
        own, infinite = _loss_of_label(z, nodes.y[chunk.nodes])
        zeros += infinite
        loss[chunk.nodes] = own
        confidence[chunk.nodes] = np.exp(z.max(1))
        places = position[chunk.nodes]
        if kept is None:
            kept = np.full((len(sample), z.shape[1]), np.nan)
        kept[places[places >= 0]] = z[places >= 0]
    right = (predicted == nodes.y).astype(float)
    if kept is None:
        loss = np.where((predicted >= 0) & (nodes.y >= 0), 1 - right, np.nan)
    model = NodeScores(predictions.name, predictions.source, chosen, reason, predicted, loss, right)
    if chosen == "classes" and right[nodes.y >= 0].all():
        model.warnings.append(
            f"'{model.name}' predicts the label of every labeled node, as a file of the labels "
            "does: is it the file of predictions?"
        )
    if zeros:
        model.warnings.append(
            f"{zeros:,} nodes were given the probability 0 for their own class, an infinite loss; "
            f"it was counted as {LARGEST_LOSS:.1f}."
        )
    if kept is None:
        return model
    return _calibrated(predictions, nodes, replace(model, confidence=confidence), sample, kept)


def _loss_of_label(z: Floats, y: Ints) -> tuple[Floats, int]:
    """-log p of each node's own class, NaN without a label; and how many of them are infinite.

    An infinite one counts as ``LARGEST_LOSS``.
    """
    own = np.where(y >= 0, -z[np.arange(len(y)), np.maximum(y, 0)], np.nan)
    infinite = np.isinf(own)
    return np.where(infinite, LARGEST_LOSS, own), int(infinite.sum())


def _calibration_sample(nodes: LabeledNodes) -> Ints:
    """Whose scores are kept for the temperature: validation and eligible nodes, or a sample."""
    rng = np.random.default_rng(0)
    chosen = []
    for mask in (nodes.validation, nodes.eligible):
        candidates = np.flatnonzero(mask & (nodes.y >= 0))
        if len(candidates) > _CALIBRATION_NODES:
            candidates = np.sort(rng.choice(candidates, _CALIBRATION_NODES, replace=False))
        chosen.append(candidates)
    return np.unique(np.concatenate(chosen))


def _calibrated(
    predictions: Predictions, nodes: LabeledNodes, model: NodeScores, sample: Ints, z: Floats
) -> NodeScores:
    """Find the temperature on the ``sample``, of scores ``z``, and the losses after scaling."""
    used, kind = ~np.isnan(z[:, 0]), "evaluated"
    validation = used & nodes.validation[sample]
    if validation.any():
        used, kind = validation, "validation"
    labels = torch.from_numpy(nodes.y[sample[used]])
    scaling, outcome = precise_temperature(torch.from_numpy(z[used]), labels)
    words = outcome.value.replace("validation nodes", f"{kind} nodes")
    if outcome not in (CalibrationOutcome.FOUND, CalibrationOutcome.DIVERGED):
        model.warnings.append(f"temperature scaling: {words}.")
    calibrated = None
    if outcome.usable:
        calibrated = np.full(len(nodes.y), np.nan)
        for chunk in predictions.chunks():
            checked = CheckedChunk(predictions, nodes, chunk)
            scaled = checked.log_probabilities(model.format) / scaling
            scaled -= log_sum_exp(scaled)
            calibrated[chunk.nodes] = _loss_of_label(scaled, nodes.y[chunk.nodes])[0]
    return replace(
        model,
        calibrated_loss=calibrated,
        temperature=scaling,
        outcome=words,
        fitted_on=f"{int(used.sum()):,} {kind} nodes",
    )
