"""Symmetry is decided exactly, with compiled kernels and without."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import scipy.sparse as sp
from balancing.reference import graphs
from hypothesis import given, settings
from hypothesis import strategies as st

from rawlsgcn.balancing.matrix_input import read_matrix
from rawlsgcn.balancing.symmetry import inspect_matrix


def symmetric(matrix):
    inside, _ = read_matrix(sp.csr_array(matrix), None, None)
    diagonal, symmetric = inspect_matrix(inside)
    np.testing.assert_array_equal(diagonal, np.asarray(matrix).diagonal())
    return symmetric


@settings(max_examples=150, deadline=None)
@given(graphs(), st.integers(0, 2**32 - 1))
def test_symmetry_is_told_to_the_last_bit(graph, seed):
    adjacency, weighted = graph
    matrix = adjacency + np.diag(np.arange(len(adjacency)) % (5 if weighted else 2))
    assert symmetric(matrix)
    index = np.stack(adjacency.nonzero())
    if index.shape[1]:
        i, j = index[:, np.random.default_rng(seed).integers(index.shape[1])]
        for other in (np.nextafter(matrix[i, j], np.inf), 2 * matrix[i, j], 0.0):
            changed = matrix.copy()
            changed[i, j] = other
            assert not symmetric(changed)


def test_no_two_missing_arcs_hide_each_other():
    """Every two of them, as keys that are related for related nodes would let some pass."""
    arcs = list(permutations(range(5), 2))
    for one, other in combinations(arcs, 2):
        if one == other[::-1]:
            continue
        for weight in (1.0, 0.7):
            matrix = np.full((5, 5), weight)
            matrix[one] = matrix[other] = 0
            inside, _ = read_matrix(sp.csr_array(matrix), None, None)
            # With other keys each time, and not those of reading it.
            unknown = replace(inside, inspection=None)
            assert not any(inspect_matrix(unknown)[1] for _ in range(10))
