"""The blocked product equals scipy's, whatever the blocks, the values and the loops."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from rawlsgcn.balancing import sparse_matrix
from rawlsgcn.balancing.sparse_matrix import SparseMatrix, transposed


@pytest.mark.parametrize("block", [1, 7, 100, 1 << 19])
@pytest.mark.parametrize("dtype", [None, np.float32, np.float64, np.int64])
@pytest.mark.parametrize("loops", [False, True])
def test_it_equals_scipys_product(monkeypatch, block, dtype, loops):
    monkeypatch.setattr(sparse_matrix, "_CPU_BLOCK", block)
    rng = np.random.default_rng(0)
    matrix = sp.random_array((60, 60), density=0.1, rng=rng, format="csr")
    matrix.data = np.ones(matrix.nnz) if dtype is None else (9 * matrix.data + 1).astype(dtype)
    inside = SparseMatrix(
        torch.from_numpy(matrix.indptr),
        torch.from_numpy(matrix.indices),
        None if dtype is None else torch.from_numpy(matrix.data),
        loops,
    )
    x = rng.random(60)
    whole = matrix.astype(np.float64) + loops * sp.eye_array(60)
    for form, expected in ((inside, whole @ x), (transposed(inside), whole.T @ x)):
        out = torch.full((60,), torch.nan, dtype=torch.float64)
        form.product()(torch.from_numpy(x), out)
        np.testing.assert_allclose(out, expected, rtol=1e-13)


def test_blocks_cover_every_row_once():
    starts = torch.tensor([0, 0, 5, 5, 400, 401, 402, 402], dtype=torch.int32)
    matrix = SparseMatrix(starts, torch.zeros(402, dtype=torch.int32), None, False)
    for size in (1, 3, 100, 1000):
        blocks = matrix.row_blocks(size)
        assert [first for first, _ in blocks] == [0, *(last for _, last in blocks[:-1])]
        assert blocks[-1][1] == 7
