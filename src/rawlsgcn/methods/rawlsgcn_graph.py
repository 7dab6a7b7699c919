"""RawlsGCN-Graph: a GCN on a doubly stochastic matrix (pre-processing)."""

from __future__ import annotations

from typing import ClassVar

from ..balancing import ABLATION_NORMALIZATIONS
from .gcn import Convolutional
from .settings import Settings


class RawlsGCNGraph(Convolutional):
    """Â_DS in the place of Â, in training and at test time; 100 epochs, no early stopping.

    With every row and column summing to one, each node's influence on the gradient of every
    weight matrix has the same weight (Theorem 1). The other normalizations are the ablation's.
    """

    name = "rawlsgcn-graph"
    title = "RawlsGCN-Graph"
    defaults: ClassVar[Settings] = Settings(lr=0.05, epochs=100, normalization="doubly-stochastic")
    normalizations: ClassVar[tuple[str, ...]] = ABLATION_NORMALIZATIONS
