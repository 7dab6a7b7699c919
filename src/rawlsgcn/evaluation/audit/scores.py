"""What a model said of the evaluated nodes, reduced to a few numbers for each of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..calibration import Outcome

Floats = npt.NDArray[np.float64]
BLURRED = 0.8
"""Under this temperature a model is so much too unsure that its bias is read with care."""


@dataclass(frozen=True)
class Scores:
    """One model on the evaluated nodes, all arrays (nodes,) in the same order.

    ``loss`` is the cross entropy, or 1 - right where only classes are known; then ``confidence``
    (the probability of the predicted class) and ``calibrated_loss`` are None. ``learned`` and
    ``majority`` are those of :class:`.parts.ModelAudit`.
    """

    name: str
    source: str
    form: str
    form_reason: str
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
        return self.outcome == Outcome.FOUND.value and self.temperature < BLURRED
