"""Tf-idf: the formula in every layout, type and index type."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rawlsgcn import RawlsError
from rawlsgcn.graphs.tf_idf import inverse_document_frequency, tf_idf, unit_rows


def matrix(seed: int, nodes: int, width: int, signed: bool) -> Tensor:
    rng = np.random.default_rng(seed)
    x = rng.random((nodes, width)) * (rng.random((nodes, width)) < 0.4)
    return torch.from_numpy(x - (0.3 * (x > 0) if signed else 0))


def by_the_formula(x: Tensor) -> Tensor:
    if (x < 0).any():
        weights = x.double()
    else:
        frequency = (x > 0).sum(0).double()
        idf = torch.where(frequency > 0, torch.log(len(x) / frequency.clamp(min=1)), 0.0)
        weights = (x > 0) * idf
        some = x[x.any(1)][:, x.any(0)].double()
        if some.numel() and (some > 0).double().mean() > 0.5:
            rows = some / some.norm(dim=1, keepdim=True)
            weights = x.double() * (not torch.allclose(rows, rows[:1]))
    length = weights.norm(dim=1, keepdim=True)
    return torch.where(length > 0, weights / length.clamp(min=1e-300), 0.0)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    nodes=st.integers(1, 12),
    width=st.integers(1, 8),
    signed=st.booleans(),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    index=st.sampled_from([None, torch.int32, torch.int64]),
)
def test_it_is_the_formula_in_every_layout(
    seed: int, nodes: int, width: int, signed: bool, dtype: torch.dtype, index: torch.dtype | None
) -> None:
    dense = matrix(seed, nodes, width, signed).to(dtype)
    x = dense
    if index is not None:
        csr = dense.to_sparse_csr()
        indices = csr.crow_indices().to(index), csr.col_indices().to(index)
        x = torch.sparse_csr_tensor(*indices, csr.values(), dense.shape)
    before = x.clone()
    result = tf_idf(x)
    assert result.dtype == dtype
    assert result.layout == x.layout
    if index is not None:
        assert result.col_indices().dtype == result.crow_indices().dtype == index
        assert torch.equal(result.col_indices(), x.col_indices())
    torch.testing.assert_close(
        result.to_dense().double(), by_the_formula(dense), rtol=1e-5, atol=1e-6
    )
    assert torch.equal(x.to_dense(), before.to_dense())  # the input stays as it is


def test_the_frequency_counts_nodes_and_not_stored_zeros() -> None:
    x = torch.tensor([[5.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    expected = torch.tensor([np.log(2), 0.0, np.log(2)], dtype=torch.float32)
    assert torch.equal(inverse_document_frequency(x), expected)
    stored = torch.sparse_csr_tensor([0, 2, 4], [0, 1, 0, 2], [5.0, 0.0, 0.0, 1.0], (2, 3))
    assert torch.equal(inverse_document_frequency(stored), expected)
    assert inverse_document_frequency(stored.double()).dtype == torch.float32


def test_the_frequencies_of_another_graph() -> None:
    x = torch.tensor([[1.0, 2.0], [0.0, 1.0]])
    idf = torch.tensor([3.0, 4.0])
    expected = torch.tensor([[0.6, 0.8], [0.0, 1.0]])
    torch.testing.assert_close(tf_idf(x, idf), expected)
    torch.testing.assert_close(tf_idf(x.to_sparse_csr(), idf).to_dense(), expected)
    # The frequencies decide, not the features: a model gets what it was trained on.
    torch.testing.assert_close(tf_idf(x - 1.5, idf), torch.tensor([[0.0, 1.0], [0.0, 0.0]]))
    negative = inverse_document_frequency(-x)
    assert torch.equal(negative, inverse_document_frequency(-x.to_sparse_csr()))
    for other in (x, -x):
        torch.testing.assert_close(tf_idf(other, negative), unit_rows(other))


@pytest.mark.parametrize("zeros", [0, 1, 3])
def test_dense_features_are_used_as_they_are(zeros: int) -> None:
    """Their frequencies say next to nothing: by tf-idf nodes could not be told from one another."""
    x = torch.rand(9, 4, generator=torch.Generator().manual_seed(0)) + 0.01
    x.view(-1)[:zeros] = 0
    for form in (x, torch.nn.functional.pad(x, (0, 9, 0, 40))):  # with features and nodes of zeros
        torch.testing.assert_close(tf_idf(form), unit_rows(form))
        torch.testing.assert_close(tf_idf(form.to_sparse_csr()).to_dense(), unit_rows(form))


def test_features_that_are_the_same_for_all_nodes_tell_nothing() -> None:
    x = torch.tensor([[0.1, 0.9, 0.0], [0.2, 1.8, 0.0], [0.0, 0.0, 0.0]])
    for form in (x, x.to_sparse_csr()):
        assert not tf_idf(form).to_dense().any()


@pytest.mark.parametrize(
    ("x", "said"),
    [
        (torch.tensor([[1.0], [np.nan]]), "node 1 has NaN"),
        (torch.tensor([[1.0], [np.inf]]).to_sparse_csr(), "node 1 has NaN or an infinity"),
        (torch.ones(2, 1, dtype=torch.complex64), "real numbers"),
    ],
)
def test_features_without_a_meaning_are_an_error(x: torch.Tensor, said: str) -> None:
    with pytest.raises(RawlsError, match=said):
        tf_idf(x)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_rows_of_any_size_have_unit_length(scale: float) -> None:
    x = torch.tensor([[3.0, -4.0], [0.0, 0.0]]) * scale
    expected = torch.tensor([[0.6, -0.8], [0.0, 0.0]])
    torch.testing.assert_close(tf_idf(x), expected)
    torch.testing.assert_close(tf_idf(x.to_sparse_csr()).to_dense(), expected)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_nothing_is_no_error(shape: tuple[int, int]) -> None:
    assert tf_idf(torch.zeros(shape)).shape == shape
    assert tf_idf(torch.zeros(shape).to_sparse_csr()).shape == shape
    assert inverse_document_frequency(torch.zeros(shape)).tolist() == [0.0] * shape[1]


def test_integers_become_floats() -> None:
    for x in (torch.tensor([[1, 0], [0, 2]]), torch.tensor([[True, False], [False, True]])):
        assert torch.equal(tf_idf(x), torch.eye(2))
        assert torch.equal(tf_idf(x.to_sparse_csr()).to_dense(), torch.eye(2))


def test_refusals() -> None:
    with pytest.raises(RawlsError, match=r"of shape \(n, d\), not \(3,\)"):
        tf_idf(torch.ones(3))
    with pytest.raises(RawlsError, match=r"dense or sparse CSR tensor, not torch\.sparse_coo"):
        inverse_document_frequency(torch.ones(3, 2).to_sparse_coo())
    with pytest.raises(RawlsError, match="one number for each feature"):
        tf_idf(torch.ones(3, 2), torch.ones(3))
