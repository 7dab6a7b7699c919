"""Dropout: the share that is met, the expectation kept, and the edge of what can be asked."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rawlsgcn.training.stacked.dropout import Dropout


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


def test_a_seed_means_the_same_masks_whatever_trains_beside_it() -> None:
    both = Dropout([7, 8], 0.5, torch.device("cpu"))
    alone = Dropout([8], 0.5, torch.device("cpu"))
    for _ in range(3):
        wide = both(torch.ones(30, 2 * 64))
        torch.testing.assert_close(wide[:, 64:], alone(torch.ones(30, 64)), rtol=0, atol=0)


def test_half_is_drawn_bit_by_bit_from_the_seeds_own_stream() -> None:
    mask = Dropout([3], 0.5, torch.device("cpu"))(torch.ones(10, 64)).numpy()
    drawn = np.random.Generator(np.random.SFC64(3)).bytes(80)
    bits = np.unpackbits(np.frombuffer(drawn, dtype=np.uint8))
    np.testing.assert_array_equal(mask.ravel(), bits * 2)
