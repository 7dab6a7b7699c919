"""``balance``: the doubly stochastic form is right, unique, symmetric, and the same in any form."""

from __future__ import annotations

import math
from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from balancing import reference as ref
from hypothesis import given, settings
from hypothesis import strategies as st

from rawlsgcn._core.errors import RawlsError
from rawlsgcn._core.kernels import without_kernels
from rawlsgcn.balancing import StopReason, balance

many = settings(max_examples=300, deadline=None)
some = settings(max_examples=60, deadline=None)


def dense_of(scaling, n):
    index, weight = scaling.matrix()
    out = np.zeros((n, n))
    out[index[0], index[1]] = weight
    return out


@many
@given(ref.graphs())
def test_a_graph_agrees_with_dense_sinkhorn_knopp(graph):
    adjacency, weighted = graph
    n = len(adjacency)
    index, weight = ref.edges(adjacency)
    scaling = balance(index, weight if weighted else None, num_nodes=n, tol=1e-11)
    assert scaling.converged
    assert scaling.scale is not None
    balanced = dense_of(scaling, n)
    assert ref.off_by(balanced) <= 2e-11
    assert (balanced == balanced.T).all()
    expected = ref.sinkhorn_knopp(adjacency + np.eye(n))
    # Where weights span many magnitudes the textbook's rows and columns still disagree a little,
    # one as much too large as the other is too small.
    np.testing.assert_allclose(balanced, (expected + expected.T) / 2, atol=1e-7)


@some
@given(ref.graphs())
def test_the_form_of_the_renormalized_laplacian_is_the_same(graph):
    adjacency, _ = graph
    looped = adjacency + np.eye(len(adjacency))
    factor = looped.sum(1) ** -0.5
    renormalized = factor[:, None] * looped * factor
    renormalized = (renormalized + renormalized.T) / 2
    one, other = (balance(sp.csr_array(m), tol=1e-12) for m in (looped, renormalized))
    np.testing.assert_allclose(one.matrix().toarray(), other.matrix().toarray(), atol=1e-9)


@some
@given(ref.graphs(), st.booleans())
def test_every_form_of_input_gives_the_same_scaling(graph, numpy_edges):
    adjacency, weighted = graph
    n = len(adjacency)
    looped = adjacency + np.eye(n)
    index, weight = ref.edges(adjacency)
    if not numpy_edges:
        index, weight = torch.from_numpy(index), torch.from_numpy(weight)
    expected = balance(index, weight if weighted else None, num_nodes=n).scale
    coo = torch.from_numpy(looped).to_sparse()
    for matrix in (
        sp.csr_array(looped),
        sp.csr_matrix(looped),
        sp.coo_array(looped),
        sp.csc_array(looped),
        sp.lil_array(looped),
        coo,
        coo.to_sparse_csr(),
        coo.to_sparse_csc(),
    ):
        scaling = balance(matrix)
        torch.testing.assert_close(scaling.scale, expected, rtol=1e-6, atol=1e-7)
        balanced = scaling.matrix()
        assert type(balanced) is type(matrix)
        if isinstance(balanced, torch.Tensor):
            assert balanced.layout == matrix.layout
            balanced = balanced.to_dense().numpy()
        else:
            balanced = balanced.toarray()
        assert ref.off_by(balanced) <= 1.1e-8
        assert (balanced == balanced.T).all()


@many
@given(st.integers(1, 10), st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_a_directed_matrix_with_total_support_agrees_with_sinkhorn_knopp(n, seed, terms):
    matrix = ref.shift_sum(n, np.random.default_rng(seed), terms)
    scaling = balance(sp.csr_array(matrix), tol=1e-10)
    assert scaling.converged
    assert (scaling.scale is None) == (not (matrix == matrix.T).all())
    balanced = scaling.matrix().toarray()
    assert ref.off_by(balanced) <= 1.1e-10
    np.testing.assert_allclose(balanced, ref.sinkhorn_knopp(matrix), atol=1e-6)
    r, c = scaling.row_scale.numpy(), scaling.col_scale.numpy()
    np.testing.assert_allclose(balanced, r[:, None] * matrix * c, rtol=1e-12)


@some
@given(ref.graphs(weighted=True, largest=30), st.integers(0, 2**32 - 1))
def test_acceleration_converges_where_the_plain_iteration_does(graph, seed):
    adjacency, _ = graph
    rng = np.random.default_rng(seed)
    wild = np.triu(adjacency * 10.0 ** rng.uniform(-3, 3, adjacency.shape), 1)
    matrix = sp.csr_array(wild + wild.T + np.eye(len(wild)))
    plain = balance(matrix, tol=1e-9, max_iterations=3000, accelerate=False)
    quick = balance(matrix, tol=1e-9, max_iterations=3000)
    if plain.converged:
        assert quick.converged
        # Where components are pairs the plain step is Newton's: six products, and up to 16 with us.
        assert quick.iterations <= max(25, plain.iterations)


def star(n):
    spokes = np.arange(1, n)
    hub = np.zeros(n - 1, dtype=int)
    return np.stack([np.r_[hub, spokes], np.r_[spokes, hub]])


def path(n):
    left = np.arange(n - 1)
    return np.stack([np.r_[left, left + 1], np.r_[left + 1, left]])


def complete(n):
    return np.stack((1 - np.eye(n)).nonzero())


@pytest.mark.parametrize("n", [2, 3, 50, 20_000])
@pytest.mark.parametrize("make", [star, path])
def test_hubs_and_chains(make, n):
    scaling = balance(make(n), num_nodes=n)
    assert scaling.converged
    index, weight = scaling.matrix()
    for side in index:
        assert np.abs(np.bincount(side, weight) - 1).max() <= 1.1e-8


def test_a_graph_of_many_blocks_is_balanced_to_the_stated_residual():
    """Large enough for several blocks of nonzeros and parts of nodes, and for float32 memory."""
    n, rng = 300_000, np.random.default_rng(0)
    ends = (n * rng.random((2, 800_000)) ** 1.5).astype(int)
    ends = np.unique(ends[:, ends[0] < ends[1]], axis=1)
    index = np.concatenate([ends, ends[::-1]], axis=1)
    matrix = sp.coo_array((np.ones(index.shape[1]), index), shape=(n, n)).tocsr()
    for given_matrix, options in ((index, {"num_nodes": n}), (matrix, {"self_loops": True})):
        scaling = balance(given_matrix, **options)
        x = scaling.scale.numpy()
        true = np.abs(x * (matrix @ x + x) - 1).max()
        assert true <= 1e-8
        assert true <= scaling.residual <= 1.1 * true + 1e-10
        assert scaling.iterations <= 25


def test_a_complete_graph_is_balanced_at_once():
    scaling = balance(complete(30))
    assert scaling.iterations == 1
    np.testing.assert_allclose(scaling.scale, 30**-0.5)


def test_isolated_nodes_keep_their_loop():
    scaling = balance(path(4), num_nodes=7)
    np.testing.assert_allclose(scaling.scale[4:], 1, rtol=1e-8)
    nothing = balance(np.empty((2, 0), dtype=int), num_nodes=3)
    np.testing.assert_allclose(nothing.scale, 1)


def test_stored_loops_are_dropped_from_a_graph_and_kept_in_a_matrix():
    index = torch.tensor([[0, 0, 1, 1], [0, 1, 0, 1]])
    weight = torch.tensor([5.0, 1.0, 1.0, 7.0])
    looped = balance(index, weight)
    torch.testing.assert_close(looped.scale, torch.full((2,), 0.5**0.5, dtype=torch.float64))
    kept = balance(index, weight, self_loops=False)
    np.testing.assert_allclose(
        kept.matrix()[1].numpy().reshape(2, 2), ref.sinkhorn_knopp(np.array([[5.0, 1], [1, 7]]))
    )
    matrix = sp.csr_array(np.array([[5.0, 1], [1, 7]]))
    assert torch.equal(balance(matrix, self_loops=True).scale, looped.scale)


def test_edges_in_any_order_and_repeated_ones_add_up():
    index = np.array([[2, 0, 1, 1, 0, 1, 2, 1], [1, 1, 0, 2, 1, 0, 1, 2]])
    dense = np.zeros((3, 3))
    np.add.at(dense, (index[0], index[1]), 1)
    scaling = balance(index)
    expected = ref.sinkhorn_knopp(dense + np.eye(3))
    np.testing.assert_allclose(dense_of(scaling, 3), expected, atol=1e-7)


def test_weight_gives_the_entries_of_a_sampled_part():
    index = torch.from_numpy(star(6))
    scaling = balance(index)
    edges, weight = scaling.matrix()
    chosen = torch.tensor([0, 3, 7])
    torch.testing.assert_close(scaling.weight(edges[:, chosen]), weight[chosen], rtol=0, atol=0)
    doubled = scaling.weight(index, torch.full((index.shape[1],), 2.0))
    torch.testing.assert_close(doubled, 2 * scaling.weight(index))


def test_weights_from_1e_12_to_1e12_end_in_convergence_or_an_honest_reason():
    rng = np.random.default_rng(3)
    for span in (2, 3, 6, 12, 12):
        weight = 10.0 ** rng.uniform(-span, span, (40, 40))
        upper = np.triu((rng.random((40, 40)) < 0.15) * weight, 1)
        scaling = balance(sp.csr_array(upper + upper.T + np.eye(40)), max_iterations=600)
        assert bool(scaling.scale.isfinite().all())
        true = ref.off_by(scaling.matrix().toarray())
        assert true == pytest.approx(scaling.residual, rel=1e-2, abs=1e-12)
        assert scaling.converged == (scaling.residual <= 1e-8)


@settings(max_examples=150, deadline=None)
@given(
    n=st.sampled_from([2, 10, 40]),
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(["directed", "loops", "weighted loops"]),
    magnitudes=st.sampled_from([6, 12, 40]),
    tol=st.sampled_from([0.1, 0.01, 1e-4, 1e-8]),
    accelerate=st.booleans(),
)
def test_what_it_says_of_the_residual_is_true(n, seed, kind, magnitudes, tol, accelerate):
    rng = np.random.default_rng(seed)
    values = 10 ** rng.uniform(-magnitudes / 2, magnitudes / 2, (n, n))
    if kind == "directed":
        matrix = (ref.shift_sum(n, rng, int(rng.integers(2, 5))) > 0) * values
    else:
        upper = np.triu((rng.random((n, n)) < 0.2) * values, 1)
        loops = np.diag(values) if kind == "weighted loops" else np.ones(n)
        matrix = upper + upper.T + np.diag(loops)
    scaling = balance(sp.csr_array(matrix), tol=tol, max_iterations=300, accelerate=accelerate)
    r, c = scaling.row_scale.numpy(), scaling.col_scale.numpy()
    assert (r > 0).all()
    assert (c > 0).all()
    with np.errstate(all="ignore"):
        true = ref.off_by(r[:, None] * matrix * c)
    if scaling.converged:
        assert true <= tol + 1e-12
    elif np.isfinite(scaling.residual):
        assert true <= 1.001 * scaling.residual + 1e-9


def test_numbers_beyond_float64_are_reported_and_not_nan():
    huge = sp.csr_array(np.array([[1e308, 1e308], [1e308, 1e308]]))
    scaling = balance(huge)
    assert scaling.reason in (StopReason.OVERFLOWED, StopReason.CONVERGED)
    assert not math.isnan(scaling.residual)
    assert not bool(scaling.scale.isnan().any())


def test_the_result_says_how_it_ended():
    index = star(500)
    short = balance(index, max_iterations=3)
    assert not short.converged
    assert short.reason is StopReason.OUT_OF_ITERATIONS
    assert "max_iterations" in str(short)
    assert short.iterations == len(short.history) == 3
    assert short.residual == min(short.history)
    exact = balance(index, tol=0)
    assert exact.reason in (StopReason.STAGNATED, StopReason.CONVERGED)
    assert exact.residual < 1e-12
    done = balance(index)
    assert done.reason is StopReason.CONVERGED
    assert done.history[-1] == done.residual <= 1e-8


def test_float32_and_integer_weights_are_balanced_in_float64():
    upper = np.triu(np.random.default_rng(0).integers(0, 4, (30, 30)), 1)
    matrix = sp.csr_array(upper + upper.T + np.eye(30, dtype=int))
    expected = balance(matrix.astype(np.float64), tol=1e-12).scale
    for dtype in (np.float32, np.int64, np.uint8):
        got = balance(matrix.astype(dtype), tol=1e-12)
        assert got.residual <= 1e-12
        torch.testing.assert_close(got.scale, expected, rtol=1e-9, atol=0)


@pytest.mark.parametrize(
    ("tol", "limit"),
    [(-1.0, 10), (math.nan, 10), ("a", 10), (None, 10), (1e-8, 1), (1e-8, 2.5), (1e-8, None)],
)
def test_senseless_settings_are_refused(tol, limit):
    with pytest.raises(RawlsError, match="must be"):
        balance(path(3), tol=tol, max_iterations=limit)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_agrees_with_the_cpu():
    rng = np.random.default_rng(1)
    upper = sp.triu(sp.random_array((500, 500), density=0.02, rng=rng), 1)
    matrix = sp.csr_array(upper + upper.T + sp.eye_array(500))
    here = balance(matrix)
    index = torch.from_numpy(np.stack(matrix.nonzero())).cuda()
    weight = torch.from_numpy(matrix.data).cuda()
    there = balance(index, weight, self_loops=False)
    assert there.scale.is_cuda
    torch.testing.assert_close(there.scale.cpu(), here.scale, rtol=1e-6, atol=0)
    shuffled = torch.randperm(index.shape[1], device="cuda")
    again = balance(index[:, shuffled], weight[shuffled], self_loops=False)
    torch.testing.assert_close(again.scale, there.scale, rtol=1e-9, atol=0)
    csr = torch.sparse_csr_tensor(
        torch.from_numpy(matrix.indptr), torch.from_numpy(matrix.indices), weight.cpu()
    ).cuda()
    torch.testing.assert_close(balance(csr).scale, there.scale, rtol=1e-9, atol=0)
    balanced = balance(csr).matrix().to_dense()
    assert bool((balanced == balanced.T).all())
    directed = torch.from_numpy(ref.shift_sum(50, rng)).to_sparse().cuda()
    assert balance(directed).converged


def test_the_smallest_numbers_there_are_end_in_words():
    scaling = balance(sp.csr_array(np.full((3, 3), 5e-324)))
    assert scaling.reason in (StopReason.OVERFLOWED, StopReason.CONVERGED)


@pytest.mark.parametrize("compiled", [True, False])
def test_the_residual_is_a_python_float(compiled: bool) -> None:
    """Of numpy's type it would print as np.float64(…) where nothing is compiled."""
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    with nullcontext() if compiled else without_kernels():
        scaling = balance(edges)
    assert {type(each) for each in (scaling.residual, *scaling.history)} == {float}
