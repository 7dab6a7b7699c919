"""The descent: exact where it can be, guarded where it cannot, honest about its residual."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rawlsgcn.balancing import vector_updates
from rawlsgcn.balancing.accelerated_descent import Descent
from rawlsgcn.balancing.iterations import SinkhornKnopp, Symmetric
from rawlsgcn.balancing.matrix_input import read_matrix
from rawlsgcn.balancing.symmetry import inspect_matrix

CPU = torch.device("cpu")


def problem(n=40, seed=0, span=0.0):
    rng = np.random.default_rng(seed)
    upper = np.triu((rng.random((n, n)) < 0.2) * 10 ** rng.uniform(-span, span, (n, n)), 1)
    return upper + upper.T + np.eye(n)


def symmetric(matrix, accelerate=True):
    inside, _ = read_matrix(torch.from_numpy(matrix).to_sparse_csr(), None, None)
    iteration = Symmetric(inside, inspect_matrix(inside)[0], jacobi=accelerate)
    return Descent(iteration, CPU, accelerate)


def point(descent):
    descent.keep()
    return descent.best.numpy().copy()


def energy(matrix, x):
    return x @ matrix @ x / 2 - np.log(x).sum()


@pytest.mark.parametrize("part", [7, 1 << 13])
@pytest.mark.parametrize("accelerate", [False, True])
def test_the_product_of_a_mixture_is_known_without_computing_it(monkeypatch, part, accelerate):
    monkeypatch.setattr(vector_updates, "_CPU_CHUNK", part)
    matrix = problem()
    descent = symmetric(matrix, accelerate)
    descent.begin()
    for _ in range(30):
        x = point(descent)
        true = np.abs(x * (matrix @ x) - 1).max()
        assert abs(true - descent.residual) <= descent.error + 1e-14
        descent.step()
    assert descent.error <= 1e-12
    assert descent.measure() == 1
    assert descent.error == 0


@pytest.mark.parametrize("span", [0, 3])
def test_the_curvature_along_the_last_displacement_is_carried_along(span):
    matrix = problem(80, span=span)
    descent = symmetric(matrix)
    descent.begin()
    steps = 0
    while descent.residual > 1e-12:
        x, before = (descent._points[at, 0] for at in (descent._at, descent._before))
        displacement, rounding = x - before, 1e-15 * x
        terms = np.abs(displacement) @ matrix @ np.abs(displacement)
        slack = (2 * np.abs(displacement) + rounding) @ matrix @ rounding
        true = displacement @ matrix @ displacement
        assert abs(descent._images[2] - true) <= 1e-9 * terms + slack
        assert (terms > 0) == (steps > 0)
        descent.step()
        steps += 1
    assert steps > 10
    descent.measure()
    assert descent._images[2] == 0


def test_weights_of_many_magnitudes_take_few_products():
    matrix = problem(300, span=3)
    descent = symmetric(matrix)
    descent.begin()
    for _ in range(70):
        descent.step()
    assert descent.residual < 1e-6


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 30), st.integers(0, 2**32 - 1), st.floats(0, 4), st.booleans())
def test_every_step_contracts_the_residual_or_lowers_the_energy(n, seed, span, accelerate):
    matrix = problem(n, seed, span)
    descent = symmetric(matrix, accelerate)
    descent.begin()
    best, before = descent.residual, energy(matrix, point(descent))
    while descent.residual > 1e-6:
        descent.step()
        x = point(descent)
        assert (x > 0).all()
        after = energy(matrix, x)
        assert after <= before + 1e-12 * abs(before) or descent.residual <= 0.9 * best
        best, before = min(best, descent.residual), after


def test_two_directions_do_what_the_whole_history_would():
    """Conjugate gradients: on a problem of few distinct eigenvalues, few steps."""
    n = 60
    ring = sum(np.roll(np.eye(n), k, axis=1) for k in (-1, 1))
    blocks = np.kron(np.eye(n // 3), np.ones((3, 3)))
    for matrix in (blocks, np.eye(n) + ring):
        descent = symmetric(matrix)
        descent.begin()
        assert descent.residual <= 1e-12
    rng = np.random.default_rng(0)
    near = blocks * (1 + 1e-3 * rng.random((n, n)))
    descent = symmetric((near + near.T) / 2)
    descent.begin()
    first = descent.residual
    for _ in range(3):
        descent.step()
    assert descent.residual <= 1e-3 * first


def test_sinkhorn_knopp_balances_one_side_at_a_time():
    matrix = np.array([[1.0, 2, 0], [0, 1, 3], [2, 0, 1]])
    inside, _ = read_matrix(torch.from_numpy(matrix).to_sparse_csr(), None, None)
    descent = Descent(SinkhornKnopp(inside), CPU, accelerate=False)
    descent.begin()
    for step in range(6):
        r, c = np.split(point(descent), 2)
        exact = r * (matrix @ c) if step % 2 == 0 else c * (matrix.T @ r)
        np.testing.assert_allclose(exact, 1, rtol=1e-12)
        descent.step()


@pytest.mark.parametrize("wrong", [math.nan, math.inf, 1e300, -1e300])
def test_a_senseless_mixture_is_refused(monkeypatch, wrong):
    matrix = problem()
    plain, spoilt = symmetric(matrix), symmetric(matrix)
    monkeypatch.setattr(spoilt, "_newton_weights", lambda: (wrong, wrong))
    monkeypatch.setattr(plain, "_newton_weights", lambda: (-1.0, 0.0))
    with np.errstate(all="ignore"):
        for descent in (plain, spoilt):
            descent.begin()
            for _ in range(3):
                descent.step()
    assert (point(spoilt) > 0).all()
    if abs(wrong) > 1e300 or math.isnan(wrong):
        np.testing.assert_allclose(point(spoilt), point(plain))
