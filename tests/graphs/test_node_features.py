"""Features keep their values in whichever form they are given, and their sparsity decides."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from strategies import graphs
from torch_geometric.data import Data

from rawlsgcn.graphs.node_features import (
    compact,
    dense,
    first_not_finite,
    prefer_sparse,
    row_normalized,
)

SPARSE = sp.random(40, 30, density=0.05, random_state=0, format="csr")
DENSE = np.random.default_rng(0).random((40, 30))


@pytest.mark.parametrize(
    "form",
    [
        lambda m: m,
        lambda m: m.tocoo(),
        lambda m: m.tocsc(),
        lambda m: m.toarray(),
        lambda m: torch.from_numpy(m.toarray()),
        lambda m: torch.from_numpy(m.toarray()).to_sparse_coo(),
        lambda m: torch.from_numpy(m.toarray()).to_sparse_csr(),
        lambda m: torch.from_numpy(m.toarray()).to_sparse_csc(),
    ],
)
@pytest.mark.parametrize(("values", "layout"), [(SPARSE, torch.sparse_csr), (DENSE, torch.strided)])
def test_every_form_gives_the_same_values(form, values, layout) -> None:  # type: ignore[no-untyped-def]
    x = compact(form(sp.csr_matrix(values)))
    assert x.dtype == torch.float32
    assert x.layout == layout
    expected = values.toarray() if sp.issparse(values) else values
    np.testing.assert_allclose(x.to_dense().numpy(), expected, rtol=1e-6)
    full = dense(form(sp.csr_matrix(values)))
    assert full.layout == torch.strided
    assert torch.equal(full, x.to_dense())
    again = prefer_sparse(full)
    assert again.layout == layout
    assert torch.equal(compact(full).to_dense(), x.to_dense())


def test_explicit_zeros_do_not_count_as_density() -> None:
    matrix = sp.csr_matrix((np.zeros(30), (np.arange(30), np.arange(30))), shape=(30, 30))
    x = compact(matrix)
    assert x.layout == torch.sparse_csr
    assert x.values().numel() == 0


def test_features_that_would_fill_the_memory_stay_sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = "rawlsgcn.graphs.node_features.physical_memory"
    monkeypatch.setattr(memory, lambda: 4 * 4 * 40 * 30)
    assert dense(SPARSE).layout == torch.strided
    monkeypatch.setattr(
        "rawlsgcn.graphs.node_features.physical_memory", lambda: 4 * 4 * 40 * 30 - 1
    )
    with pytest.warns(UserWarning, match="the features stay sparse"):
        x = dense(SPARSE)
    assert x.layout == torch.sparse_csr
    assert dense(SPARSE.toarray()).layout == torch.strided


def test_a_few_numbers_do_not_make_a_large_matrix() -> None:
    wide = sp.csr_matrix((np.ones(2), ([0, 1], [0, 10**9])), shape=(2, 10**9 + 1))
    with pytest.warns(UserWarning, match="the features stay sparse"):
        assert dense(wide).layout == torch.sparse_csr


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_first_row_that_is_not_finite_is_found(bad: float) -> None:
    dense = np.ones((6, 4))
    dense[4, 2] = dense[5, 0] = bad
    assert first_not_finite(compact(dense)) == 4
    sparse = sp.random(50, 50, density=0.03, random_state=1).tolil()
    sparse[17, 3] = bad
    assert first_not_finite(compact(sparse)) == 17
    assert first_not_finite(compact(SPARSE)) is None


@settings(max_examples=50, deadline=None)
@given(graph=graphs())
def test_rows_sum_to_one_or_zero_and_sparse_equals_dense(graph: Data) -> None:
    x = graph.x.to_dense()
    normal = row_normalized(x)
    sums = normal.sum(1)
    assert torch.allclose(sums, (x.sum(1) > 0).double())
    torch.testing.assert_close(row_normalized(x.to_sparse_csr()).to_dense(), normal)


@pytest.mark.parametrize("sparse", [False, True])
def test_huge_features_do_not_overflow_their_sum(sparse: bool) -> None:
    x = torch.rand(30, 50, generator=torch.Generator().manual_seed(0)) * 1e38
    normal = row_normalized(x.to_sparse_csr() if sparse else x).to_dense()
    torch.testing.assert_close(normal.sum(1), torch.ones(30))
