"""RawlsGCN-Grad: a GCN whose weights learn from the corrected gradient (in-processing)."""

from __future__ import annotations

from typing import ClassVar

from .._core.errors import unknown_name
from ..balancing import ABLATION_NORMALIZATIONS
from .base import Convolutional
from .settings import Settings


class RawlsGCNGrad(Convolutional):
    """Forward with Â; ∂J/∂W = Hᵀ Â_DSᵀ ∂J/∂E in every layer; 100 epochs, no early stopping."""

    name = "rawlsgcn-grad"
    title = "RawlsGCN-Grad"
    defaults: ClassVar[Settings] = Settings(lr=0.05, epochs=100, normalization="doubly-stochastic")

    def forward_normalization(self, settings: Settings) -> str:
        return "renormalized"

    def gradient_normalization(self, settings: Settings) -> str | None:
        if settings.normalization not in ABLATION_NORMALIZATIONS:
            raise unknown_name("normalization", settings.normalization, ABLATION_NORMALIZATIONS)
        return settings.normalization
