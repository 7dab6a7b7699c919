"""From predictions, a part at a time, to each node's loss, class and confidence.

The parts are gone through twice: once for the scores, and, when the temperature is known, once more
for the losses after scaling. In between only numbers of single nodes are kept, and the scores of
a sample of nodes to find the temperature on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch

from ..._core.errors import RawlsError, unknown_name
from ..calibration import CalibrationOutcome, temperature
from .prediction_formats import (
    FORMS,
    LARGEST_LOSS,
    LabeledNodes,
    PredictionSource,
    capped,
    check_columns,
    classes_of,
    form_of,
    log_scores,
    log_sum,
    refuse_twice,
)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_FIT_NODES = 10_000
BLURRED = 0.8
"""Under this temperature a model is so much too unsure that its bias is read with care."""


@dataclass(frozen=True)
class NodeScores:
    """One model on the evaluated nodes, all arrays (nodes,) in the same order.

    ``loss`` is the cross entropy, or 1 - right where only classes are known; then ``confidence``
    (the probability of the predicted class) and ``calibrated_loss`` are None. ``learned`` and
    ``majority`` are those of :class:`.findings.ModelAudit`.
    """

    name: str
    source: str
    format: str
    format_reason: str
    predicted: npt.NDArray[np.int64]
    loss: Floats
    right: Floats
    confidence: Floats | None = None
    calibrated_loss: Floats | None = None
    temperature: float = float("nan")
    outcome: str = ""
    fitted_on: str = ""
    learned: bool = True
    majority: float = float("nan")
    warnings: list[str] = field(default_factory=list)

    @property
    def loss_kind(self) -> str:
        return "zero-one" if self.confidence is None else "cross entropy"

    @property
    def under_confident(self) -> bool:
        """Not where the temperature ran into its bound: that tells of few nodes, not of blur."""
        return self.outcome == CalibrationOutcome.FOUND.value and self.temperature < BLURRED


@dataclass
class AllScores:
    """One model on all nodes of the graph; NaN (or -1) where it said nothing."""

    name: str
    source: str
    format: str
    format_reason: str
    predicted: Ints
    loss: Floats
    confidence: Floats | None
    calibrated: Floats | None = None
    temperature: float = math.nan
    outcome: str = ""
    fitted_on: str = ""
    warnings: list[str] = field(default_factory=list)

    @property
    def there(self) -> npt.NDArray[np.bool_]:
        return self.predicted >= 0

    def at(self, chosen: Ints, y: Ints) -> NodeScores:
        """The scores of the ``chosen`` nodes, whose labels are ``y[chosen]``."""
        right = (self.predicted[chosen] == y[chosen]).astype(float)
        known = self.confidence is not None
        return NodeScores(
            self.name,
            self.source,
            self.format,
            self.format_reason,
            self.predicted[chosen],
            self.loss[chosen] if known else 1 - right,
            right,
            None if self.confidence is None else self.confidence[chosen],
            None if self.calibrated is None else self.calibrated[chosen],
            self.temperature,
            self.outcome,
            self.fitted_on,
            warnings=self.warnings,
        )


def score_nodes(
    predictions: PredictionSource, nodes: LabeledNodes, form: str = "auto"
) -> AllScores:
    """Go through the predictions of one model; ``form`` is "auto" or what they are taken for."""
    if form not in FORMS:
        raise unknown_name("form of scores", form, FORMS)
    count = len(nodes.y)
    if not (nodes.y >= 0).any():
        raise RawlsError("no node has a label, all are -1: label some of the predicted ones")
    predicted, loss = np.full(count, -1, np.int64), np.full(count, np.nan)
    confidence = np.full(count, np.nan)
    seen_at = np.full(count, -1, np.int64)
    fit = _fit_nodes(nodes)
    place = np.full(count, -1, np.int64)
    place[fit] = np.arange(len(fit))
    kept: Floats | None = None
    chosen_form, reason, zeros = form, "you said so", 0
    for part in predictions.rows():
        refuse_twice(predictions, part, seen_at, nodes)
        if part.scores is None or form == "classes":
            if form in ("probabilities", "logits"):
                raise RawlsError(
                    f"{predictions.source} holds classes only, no {form}: leave --scores out"
                )
            chosen_form, reason = "classes", "there are no scores beside the class"
            if part.scores is not None:
                reason = "you said so"
            predicted[part.nodes] = classes_of(predictions, part, nodes)
            continue
        check_columns(predictions, part, nodes)
        if chosen_form == "auto":
            chosen_form, reason = form_of(predictions, part)
        z = log_scores(predictions, part, chosen_form, nodes)
        predicted[part.nodes] = part.scores.argmax(1)
        y = nodes.y[part.nodes]
        labelled = y >= 0
        own = -z[np.arange(len(y)), np.maximum(y, 0)]
        zeros += int((np.isinf(own) & labelled).sum())
        loss[part.nodes] = np.where(labelled, capped(own), np.nan)
        confidence[part.nodes] = np.exp(z.max(1))
        wanted = place[part.nodes]
        if kept is None:
            kept = np.full((len(fit), z.shape[1]), np.nan)
        kept[wanted[wanted >= 0]] = z[wanted >= 0]
    found = AllScores(
        predictions.name,
        predictions.source,
        chosen_form,
        reason,
        predicted,
        loss,
        None if kept is None else confidence,
    )
    if zeros:
        found.warnings.append(
            f"{zeros:,} nodes were given the probability 0 for their own class, an infinite loss; "
            f"it was counted as {LARGEST_LOSS:.1f}."
        )
    if kept is not None:
        _calibrate(predictions, nodes, found, fit, kept)
    return found


def _fit_nodes(nodes: LabeledNodes) -> Ints:
    """Whose scores are kept to find the temperature on: validation and eligible nodes, or a
    sample of each."""
    rng = np.random.default_rng(0)
    chosen = []
    for mask in (nodes.validation, nodes.eligible):
        found = np.flatnonzero(mask & (nodes.y >= 0))
        if len(found) > _FIT_NODES:
            found = np.sort(rng.choice(found, _FIT_NODES, replace=False))
        chosen.append(found)
    return np.unique(np.concatenate(chosen))


def _calibrate(
    predictions: PredictionSource, nodes: LabeledNodes, found: AllScores, fit: Ints, kept: Floats
) -> None:
    known = ~np.isnan(kept[:, 0])
    validation = known & nodes.validation[fit]
    used = validation if validation.any() else known
    kind = "validation" if validation.any() else "evaluated"
    z = torch.from_numpy(kept[used])
    scaling, outcome = temperature(z, torch.from_numpy(nodes.y[fit[used]]))
    found.temperature = scaling
    found.outcome = outcome.value.replace("validation nodes", f"{kind} nodes")
    found.fitted_on = f"{int(used.sum()):,} {kind} nodes"
    if outcome not in (CalibrationOutcome.FOUND, CalibrationOutcome.DIVERGED):
        found.warnings.append(f"temperature scaling: {found.outcome}.")
    calibrated = np.full(len(nodes.y), np.nan)
    for part in predictions.rows():
        assert part.scores is not None
        y = nodes.y[part.nodes]
        scaled = log_scores(predictions, part, found.format, nodes) / scaling
        scaled -= log_sum(scaled)
        own = -scaled[np.arange(len(y)), np.maximum(y, 0)]
        calibrated[part.nodes] = np.where(y >= 0, capped(own), np.nan)
    found.calibrated = calibrated
