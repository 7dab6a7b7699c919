"""GCN (Kipf and Welling, 2017): the plain network that the paper sets out to make fair."""

from __future__ import annotations

from typing import ClassVar

from .._core.errors import RawlsError
from .base import Convolutional
from .settings import Settings


class GCN(Convolutional):
    """H ← σ(Â H W) with Â = D̃^(-1/2) (A + I) D̃^(-1/2); 200 epochs at 0.01."""

    name = "gcn"
    title = "GCN"
    defaults: ClassVar[Settings] = Settings(lr=0.01, epochs=200)

    def forward_normalization(self, settings: Settings) -> str:
        if settings.normalization != "renormalized":
            raise RawlsError(
                f"a GCN has no normalization '{settings.normalization}': it is defined with the "
                "renormalized Laplacian; use rawlsgcn-graph for the others"
            )
        return "renormalized"
