"""RawlsGCN-Grad: a GCN whose weights learn from the corrected gradient (in-processing)."""

from __future__ import annotations

from typing import ClassVar

from ..balancing import ABLATION_NORMALIZATIONS
from .gcn import Convolutional
from .settings import RENORMALIZED, Settings


class RawlsGCNGrad(Convolutional):
    """Forward with Â; ∂J/∂W = Hᵀ Â_DSᵀ ∂J/∂E in every layer; 100 epochs, no early stopping."""

    name = "rawlsgcn-grad"
    title = "RawlsGCN-Grad"
    defaults: ClassVar[Settings] = Settings(lr=0.05, epochs=100, normalization="doubly-stochastic")
    normalizations: ClassVar[tuple[str, ...]] = ABLATION_NORMALIZATIONS

    def forward_normalization(self, settings: Settings) -> str:
        return RENORMALIZED

    def gradient_normalization(self, settings: Settings) -> str | None:
        return settings.normalization
