"""Dropout: the share that is met, the expectation kept, and the edge of what can be asked."""

from __future__ import annotations

import pytest
import torch

from rawlsgcn.training.dropout import Dropout


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.9])
def test_the_share_is_met_and_the_mean_is_kept(p: float) -> None:
    out = Dropout([0, 1], p, torch.device("cpu"))(torch.ones(400, 200))
    assert float((out == 0).float().mean()) == pytest.approx(p, abs=0.01)
    assert float(out.mean()) == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize("p", [0.99999, 0.999999, 1 - 1e-12])
def test_a_share_of_nearly_one_is_finite(p: float) -> None:
    dropout = Dropout([0], p, torch.device("cpu"))
    assert dropout.scale <= 65536
    assert bool(dropout(torch.ones(50, 50)).isfinite().all())
