"""Features keep their values in whichever form they are given, and their sparsity decides."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from rawlsgcn.graphs.features import compact, first_not_finite

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
    dense = x.to_dense() if layout == torch.sparse_csr else x
    expected = values.toarray() if sp.issparse(values) else values
    np.testing.assert_allclose(dense.numpy(), expected, rtol=1e-6)


def test_explicit_zeros_do_not_count_as_density() -> None:
    matrix = sp.csr_matrix((np.zeros(30), (np.arange(30), np.arange(30))), shape=(30, 30))
    x = compact(matrix)
    assert x.layout == torch.sparse_csr
    assert x.values().numel() == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_first_row_that_is_not_finite_is_found(bad: float) -> None:
    dense = np.ones((6, 4))
    dense[4, 2] = dense[5, 0] = bad
    assert first_not_finite(compact(dense)) == 4
    sparse = sp.random(50, 50, density=0.03, random_state=1).tolil()
    sparse[17, 3] = bad
    assert first_not_finite(compact(sparse)) == 17
    assert first_not_finite(compact(SPARSE)) is None
