"""The acceleration: exact where it can be, guarded where it cannot, honest about its residual."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rawlsgcn.balancing.anderson import Anderson

CPU = torch.device("cpu")


def problem(n=40, seed=0):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) < 0.2, 1).astype(float)
    return torch.from_numpy(upper + upper.T + np.eye(n))


def energy(matrix, x):
    return float(x @ matrix @ x / 2 - x.log().sum())


def run(matrix, memory, steps):
    x = matrix.sum(1).rsqrt()
    y = matrix @ x
    for _ in range(steps):
        out_x, out_y = torch.empty_like(x), torch.empty_like(y)
        stated = memory.mix(x, y, out_x, out_y)
        yield x, out_x, out_y, stated
        x = (out_x / out_y).sqrt()
        y = matrix @ x
        memory.push(out_x, out_y, x, y)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_product_of_a_mixture_is_known_without_computing_it(dtype):
    matrix = problem()
    memory = Anderson(40, 5, dtype, CPU)
    for _, x, y, stated in run(matrix, memory, 12):
        true = float((x * (matrix @ x) - 1).abs().max())
        torch.testing.assert_close(y, matrix @ x, rtol=1e-6, atol=1e-9)
        assert abs(true - stated) <= memory.error + 1e-14
        assert memory.error <= 1e3 * torch.finfo(dtype).eps


def test_every_mixture_contracts_the_residual_or_lowers_the_energy():
    matrix, best = problem(seed=3), math.inf
    for before, after, _, stated in run(matrix, Anderson(40, 5, torch.float64, CPU), 10):
        lower = energy(matrix, after) <= energy(matrix, before)
        assert lower or stated <= 0.9 * best
        best = min(best, stated)


def test_without_memory_it_changes_nothing():
    x = torch.rand(7, dtype=torch.float64)
    out_x, out_y = torch.empty_like(x), torch.empty_like(x)
    stated = Anderson(7, 3, torch.float64, CPU).mix(x, 2 * x, out_x, out_y)
    assert torch.equal(out_x, x)
    assert torch.equal(out_y, 2 * x)
    assert stated == pytest.approx(float((2 * x * x - 1).abs().max()))


def test_senseless_steps_are_refused():
    x = torch.ones(4, dtype=torch.float64)
    for step in (math.nan, math.inf, 0.0):
        memory = Anderson(4, 2, torch.float64, CPU)
        memory.push(x, x, x + step, x - step)
        out_x, out_y = torch.empty_like(x), torch.empty_like(x)
        memory.mix(x, 2 * x, out_x, out_y)
        assert bool(out_x.isfinite().all())
        assert bool((out_x > 0).all())
