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
from ..prediction_formats import (
    FORMATS,
    LARGEST_LOSS,
    LabeledNodes,
    capped,
    check_class_count,
    check_duplicates,
    detect_format,
    log_probabilities,
    log_sum_exp,
    predicted_classes,
)
from ..predictions import Predictions

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_CALIBRATION_NODES = 10_000


@dataclass(frozen=True)
class NodeScores:
    """One model's predictions, reduced to a few numbers for each node; all arrays are (nodes,).

    Attributes:
        name: The model's name.
        source: The file or array that its predictions come from.
        format: "probabilities", "logits" or "classes".
        format_reason: Why the predictions were taken for that.
        predicted: The predicted classes; -1 for nodes without a prediction.
        loss: The cross entropy, or 1 - right where only classes are known; NaN for nodes without a
            prediction or a label.
        right: Whether the predicted class is the label, 0 or 1.
        confidence: The probability of the predicted class; None where only classes are known.
        calibrated_loss: The loss after temperature scaling; None likewise, and where the
            temperature is not known well enough.
        temperature: The temperature of that scaling.
        outcome: How the search for it ended, in a sentence.
        fitted_on: Which nodes it was found on.
        warnings: Sentences for the user.
    """

    name: str
    source: str
    format: str
    format_reason: str
    predicted: Ints
    loss: Floats
    right: Floats
    confidence: Floats | None = None
    calibrated_loss: Floats | None = None
    temperature: float = math.nan
    outcome: str = ""
    fitted_on: str = ""
    warnings: list[str] = field(default_factory=list)

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
        return replace(
            self,
            predicted=self.predicted[nodes],
            loss=self.loss[nodes],
            right=self.right[nodes],
            confidence=None if self.confidence is None else self.confidence[nodes],
            calibrated_loss=None if self.calibrated_loss is None else self.calibrated_loss[nodes],
        )


def score_nodes(predictions: Predictions, nodes: LabeledNodes, scores: str = "auto") -> NodeScores:
    """Read the predictions of one model and score every node of the graph.

    Args:
        predictions: A file or an array of predictions.
        nodes: The graph's labels and masks.
        scores: "auto", or the format that the scores are taken for.

    Returns:
        The scores of all nodes of the graph.

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
        check_duplicates(predictions, chunk, seen_at, nodes)
        if chunk.values.ndim == 1 or scores == "classes":
            if scores in ("probabilities", "logits"):
                raise RawlsError(
                    f"{predictions.source} has classes only, no {scores}: omit --scores "
                    "(scores='auto')"
                )
            chosen = "classes"
            if chunk.values.ndim == 1:
                reason = "there are no scores beside the class"
            predicted[chunk.nodes] = predicted_classes(predictions, chunk, nodes)
            continue
        check_class_count(predictions, chunk, nodes)
        if chosen == "auto":
            chosen, reason = detect_format(predictions, chunk)
        z = log_probabilities(predictions, chunk, chosen, nodes)
        predicted[chunk.nodes] = chunk.values.argmax(1)
        own = _loss_of_label(z, nodes.y[chunk.nodes])
        zeros += int(np.isinf(own).sum())
        loss[chunk.nodes] = capped(own)
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


def _loss_of_label(z: Floats, y: Ints) -> Floats:
    """-log p of each node's own class; NaN for a node without a label."""
    own: Floats = np.where(y >= 0, -z[np.arange(len(y)), np.maximum(y, 0)], np.nan)
    return own


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
    known = ~np.isnan(z[:, 0])
    validation = known & nodes.validation[sample]
    used = validation if validation.any() else known
    kind = "validation" if validation.any() else "evaluated"
    labels = torch.from_numpy(nodes.y[sample[used]])
    scaling, outcome = precise_temperature(torch.from_numpy(z[used]), labels)
    words = outcome.value.replace("validation nodes", f"{kind} nodes")
    if outcome not in (CalibrationOutcome.FOUND, CalibrationOutcome.DIVERGED):
        model.warnings.append(f"temperature scaling: {words}.")
    calibrated = np.full(len(nodes.y), np.nan) if outcome.usable else None
    for chunk in predictions.chunks() if calibrated is not None else ():
        scaled = log_probabilities(predictions, chunk, model.format, nodes) / scaling
        scaled -= log_sum_exp(scaled)
        assert calibrated is not None
        calibrated[chunk.nodes] = capped(_loss_of_label(scaled, nodes.y[chunk.nodes]))
    return replace(
        model,
        calibrated_loss=calibrated,
        temperature=scaling,
        outcome=words,
        fitted_on=f"{int(used.sum()):,} {kind} nodes",
    )
