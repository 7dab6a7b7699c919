"""A matrix without total support raises an error that names the rows and columns."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.balancing import balance


def has_total_support(matrix):
    """Every positive entry lies on a positive diagonal: by trying every permutation."""
    n = len(matrix)
    covered = np.zeros_like(matrix, dtype=bool)
    for order in permutations(range(n)):
        if all(matrix[i, order[i]] for i in range(n)):
            covered[np.arange(n), list(order)] = True
    return n > 0 and covered.any() and (covered == (matrix > 0)).all()


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 5), st.integers(0, 2**32 - 1), st.sampled_from([0.3, 0.5, 0.8]))
def test_exactly_the_matrices_without_total_support_are_refused(n, seed, density):
    matrix = (np.random.default_rng(seed).random((n, n)) < density).astype(float)
    if has_total_support(matrix):
        assert balance(sp.csr_array(matrix)).converged
    else:
        with pytest.raises(RawlsError, match="no doubly stochastic form"):
            balance(sp.csr_array(matrix))


def test_an_entry_on_no_diagonal_is_named():
    with pytest.raises(RawlsError, match=r"1 of its entries .*\(0, 2\)"):
        balance(sp.csr_array(np.eye(3) + np.eye(3, k=2)))
    triangle = sp.csr_array(np.triu(np.ones((9, 9))))
    with pytest.raises(RawlsError, match=r"36 of its entries .*\(0, 5\), …"):
        balance(triangle)
    # A directed graph with self-loops but without cycles is such a triangle.
    with pytest.raises(RawlsError, match=r"\(0, 1\)"):
        balance(np.array([[0], [1]]))


def test_rows_that_share_too_few_columns_are_named():
    hub = np.zeros((5, 5))
    hub[0, 1:] = hub[1:, 0] = 1
    with pytest.raises(RawlsError, match=r"rows \d, \d \(2 in all\) .* only in column 0,"):
        balance(sp.csr_array(hub))


def test_empty_rows_and_columns_are_named():
    matrix = np.ones((9, 9))
    matrix[[2, 4]] = 0
    with pytest.raises(RawlsError, match=r"rows 2, 4 \(2 in all\) have no positive entry"):
        balance(sp.csr_array(matrix))
    with pytest.raises(RawlsError, match=r"columns 2, 4 \(2 in all\) have no positive entry"):
        balance(sp.csr_array(matrix.T))
    matrix[:8] = 0
    with pytest.raises(RawlsError, match=r"rows 0, 1, 2, 3, 4 and 3 more \(8 in all\)"):
        balance(sp.csr_array(matrix))


def test_a_stored_zero_is_no_entry():
    matrix = sp.csr_array(np.eye(3) + np.eye(3, k=2))
    matrix.data[matrix.indices == 2] = [0, 1]
    assert balance(matrix).converged
