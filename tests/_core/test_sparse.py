"""Sparse products of training: the dense ones in float64, compiled and not."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rawlsgcn._core.kernels import kernels, without_kernels
from rawlsgcn._core.sparse import SparseProduct, csr_tensor
from rawlsgcn.graphs import synthetic
from rawlsgcn.methods import Inputs, find_method, with_changes
from rawlsgcn.training import Job
from rawlsgcn.training.stacked.engine import StackedEngine


def a_matrix(rows, columns, density, dtype, rng):
    matrix = sp.random_array((rows, columns), density=density, rng=rng, format="csr")
    pieces = map(torch.from_numpy, (matrix.indptr, matrix.indices, matrix.data))
    starts, index, values = pieces
    sparse = csr_tensor(starts.int(), index.int(), (values - 0.5).to(dtype), matrix.shape)
    return sparse, sparse.to_dense().double()


def require_dense(sparse, dense, width, rng, threads):
    right = torch.from_numpy(rng.standard_normal((dense.shape[1], width))).to(sparse.dtype)
    out = torch.full((len(dense), width), torch.nan, dtype=sparse.dtype)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert SparseProduct(sparse)(right, out) is out
    finally:
        torch.set_num_threads(before)
    bound = dense.abs() @ right.double().abs() * 64 * torch.finfo(sparse.dtype).eps
    assert ((out - dense @ right.double()).abs() <= bound).all()


@settings(max_examples=80, deadline=None)
@given(
    st.integers(1, 60),
    st.integers(1, 60),
    st.sampled_from([0.0, 0.05, 0.5, 1.0]),
    st.sampled_from([1, 3, 8, 16, 31, 64, 80, 200]),
    st.sampled_from([torch.float32, torch.float64]),
    st.integers(0, 2**32 - 1),
)
def test_a_product_is_the_dense_one(rows, columns, density, width, dtype, seed):
    rng = np.random.default_rng(seed)
    require_dense(*a_matrix(rows, columns, density, dtype, rng), width, rng, 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_many_pieces_and_long_rows_make_the_dense_product(dtype, threads):
    rng = np.random.default_rng(0)
    sparse, dense = a_matrix(400, 3000, 0.02, dtype, rng)
    require_dense(sparse, dense, 64, rng, threads)
    require_dense(*a_matrix(3, 9000, 1.0, dtype, rng), 70, rng, threads)


def test_it_is_the_same_to_the_bit_for_any_number_of_threads():
    rng = np.random.default_rng(0)
    sparse, _ = a_matrix(400, 3000, 0.02, torch.float32, rng)
    right, before, found = torch.randn(3000, 64), torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(SparseProduct(sparse)(right, torch.empty(400, 64)))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(one, found[0]) for one in found)


def test_what_the_compiled_product_does_not_know_is_left_to_torch():
    sparse, dense = a_matrix(20, 30, 0.3, torch.float64, np.random.default_rng(0))
    wide = torch.randn(30, 10, dtype=torch.float64)
    turned = wide.t().contiguous().t()
    assert not turned.is_contiguous()
    out = torch.empty(20, 10, dtype=torch.float64)
    torch.testing.assert_close(SparseProduct(sparse)(turned, out), dense @ wide)
    long = csr_tensor(
        sparse.crow_indices().long(), sparse.col_indices().long(), sparse.values(), (20, 30)
    )
    torch.testing.assert_close(SparseProduct(long)(wide, out), dense @ wide)


def test_what_does_not_fit_is_refused():
    sparse, _ = a_matrix(20, 30, 0.3, torch.float32, np.random.default_rng(0))
    for right, out in (((29, 64), (20, 64)), ((30, 64), (19, 64)), ((30, 64), (20, 32))):
        with pytest.raises(RuntimeError):
            SparseProduct(sparse)(torch.zeros(right), torch.zeros(out))


compiled_only = pytest.mark.skipif(
    kernels() is None, reason="the package was installed without a C compiler"
)


@compiled_only
def test_a_layers_product_is_the_compiled_one(monkeypatch):
    sparse, dense = a_matrix(20, 30, 0.3, torch.float32, np.random.default_rng(0))
    monkeypatch.setattr(torch, "addmm", None)
    require_dense(sparse, dense, 64, np.random.default_rng(0), 1)


@compiled_only
@pytest.mark.parametrize("method", ["gcn", "rawlsgcn-graph", "rawlsgcn-grad"])
def test_training_is_the_same_with_compiled_products_and_without(method):
    chosen = find_method(method)
    graph = synthetic(300, features=200, words=5)
    inputs = Inputs.of(graph, dtype=torch.float64)
    jobs = [Job(with_changes(chosen.defaults, {"epochs": 20}), seed) for seed in range(2)]

    def trained():
        return StackedEngine(chosen, inputs, jobs[0].settings).train(jobs)

    with without_kernels():
        plain = trained()
    for one, other in zip(trained(), plain, strict=True):
        for mine, theirs in zip(one, other, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-9)
