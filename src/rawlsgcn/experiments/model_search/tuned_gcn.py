"""The GCN that the answer of ``auto`` is compared with: tuned with as many runs as the pool has."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from ...methods import Settings
from .pool import GCN, RATES

#: It is no member of the pool.
TUNED_GCN = replace(GCN, name="GCN to compare with")
TITLE = "Tuned GCN"
#: What it is tuned over, besides the rates of the pool; it is the mean of so many of its best runs.
DECAYS, WIDTHS, DROPOUTS = (5e-3, 5e-4, 5e-5, 0.0), (64, 256), (0.5, 0.8)
BEST_RUNS = 6


def tuned_gcn_settings() -> list[Settings]:
    """Every rate with every decay, width and dropout."""
    return [
        GCN.settings(lr=lr, weight_decay=decay, hidden_channels=width, dropout=dropout)
        for width, dropout, lr, decay in product(WIDTHS, DROPOUTS, RATES, DECAYS)
    ]
