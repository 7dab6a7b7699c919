"""GCN (Kipf and Welling, 2017): the network that the paper makes fair."""

from __future__ import annotations

from typing import ClassVar

from .base import Convolutional
from .settings import RENORMALIZED, Settings


class GCN(Convolutional):
    """H ← σ(Â H W) with Â = D̃^(-1/2) (A + I) D̃^(-1/2); 200 epochs at 0.01."""

    name = "gcn"
    title = "GCN"
    defaults: ClassVar[Settings] = Settings(lr=0.01, epochs=200)

    def forward_normalization(self, settings: Settings) -> str:
        return RENORMALIZED
