"""What the committed results say about seven graphs, for advice that can be checked.

Figures of results/defaults (default settings, five seeds): means over the seeds. The two figures
of each graph are those of :class:`~rawlsgcn.evaluation.portrait.Portrait`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figures:
    """Accuracy of all evaluated nodes and of the low-degree quarter, per cent; calibrated bias."""

    accuracy: float
    low: float
    calibrated_bias: float


@dataclass(frozen=True)
class Measured:
    """One graph: how uneven and how homophilous it is, and what three methods made of it."""

    name: str
    title: str
    weight_ratio: float
    adjusted_homophily: float
    gcn: Figures
    graph: Figures
    grad: Figures


MEASURED = (
    Measured(
        *("citeseer", "Citeseer", 1.20, 0.67),
        gcn=Figures(68.3, 64.1, 0.531),
        graph=Figures(68.9, 64.3, 0.292),
        grad=Figures(68.5, 64.3, 0.566),
    ),
    Measured(
        *("cora-ml", "Cora-ML", 1.50, 0.75),
        gcn=Figures(79.8, 75.9, 1.356),
        graph=Figures(75.9, 70.9, 0.183),
        grad=Figures(78.8, 75.3, 0.611),
    ),
    Measured(
        *("coauthor-physics", "Coauthor-Physics", 1.51, 0.87),
        gcn=Figures(94.0, 89.6, 0.021),
        graph=Figures(93.6, 89.2, 0.017),
        grad=Figures(94.1, 89.5, 0.021),
    ),
    Measured(
        *("coauthor-cs", "Coauthor-CS", 1.56, 0.78),
        gcn=Figures(93.2, 92.8, 0.050),
        graph=Figures(92.6, 91.9, 0.020),
        grad=Figures(92.9, 91.4, 0.035),
    ),
    Measured(
        *("amazon-computers", "Amazon-Computers", 1.84, 0.68),
        gcn=Figures(65.2, 42.9, 1.905),
        graph=Figures(78.9, 65.4, 0.321),
        grad=Figures(73.3, 60.4, 0.900),
    ),
    Measured(
        *("amazon-photo", "Amazon-Photo", 1.89, 0.79),
        gcn=Figures(79.0, 65.3, 7.827),
        graph=Figures(89.5, 81.1, 0.304),
        grad=Figures(82.8, 73.6, 1.563),
    ),
    Measured(
        *("chameleon", "Chameleon", 2.04, 0.03),
        gcn=Figures(57.0, 55.7, 0.867),
        graph=Figures(56.1, 51.1, 0.158),
        grad=Figures(55.7, 51.6, 1.060),
    ),
)
