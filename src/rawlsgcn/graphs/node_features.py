"""Node features as float32: dense for users, sparse inside the package where that is smaller.

A graph without features gets some that are made of its edges alone. Up to ``MOST_ONE_HOT`` nodes a
node's only feature is itself (a unit vector): smoothed over the graph, it says which nodes are
near. A larger graph gets the leading singular vectors of Â, which say the same in a few numbers,
and the logarithm of the degree.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._core.errors import RawlsError
from .._core.memory import physical_memory
from .._core.sparse import csr_entries, csr_tensor

FILL_IN = "fill it in or leave that column out"
"""The cure for a feature that is missing."""
SPARSE_BELOW = 0.1
"""Features with a smaller share of non-zeros than this are kept as ``torch.sparse_csr``."""
_LARGE, _NEARLY_EMPTY = 64 << 20, 1e-4
"""Sparse features of more bytes than the first are made dense only above this density."""
MOST_ONE_HOT, SPECTRAL = 20_000, 128


def compact(x: Any) -> Tensor:
    """``x`` in float32: CSR with int64 indices if under 10 % of it is non-zero, else dense.

    ``x`` is a matrix of numpy, scipy.sparse or torch, which is left as it is; where its form is
    right already, it is shared and not copied.
    """
    if (
        isinstance(x, Tensor)
        and (x.layout, x.dtype) == (torch.sparse_csr, torch.float32)
        and x._nnz() < SPARSE_BELOW * max(x.numel(), 1)
    ):
        return x.detach().cpu()
    matrix = _single(x)
    filled = matrix.nnz if sp.issparse(matrix) else np.count_nonzero(matrix)
    if filled < SPARSE_BELOW * max(math.prod(matrix.shape), 1):
        return from_scipy(sp.csr_matrix(matrix))
    return torch.from_numpy(matrix.toarray() if sp.issparse(matrix) else matrix)


def dense(x: Any) -> Tensor:
    """``x`` in float32 as a dense tensor, with a warning if it must stay sparse.

    A sparse matrix stays so where its dense form would fill more than a quarter of this machine's
    memory, or is large and nearly empty: one number in a small file may claim any width.
    """
    if is_sparse(x):
        stored, size = x._nnz() if isinstance(x, Tensor) else x.nnz, 4 * math.prod(x.shape)
        nearly_empty = size > _LARGE and 4 * stored < _NEARLY_EMPTY * size
        if nearly_empty or size > physical_memory() // 4:
            warnings.warn(
                "the features stay sparse (torch.sparse_csr): a dense matrix of them would take "
                f"{size / 2**30:.1f} GiB",
                stacklevel=2,
            )
            return compact(x)
    matrix = _single(x)
    return torch.from_numpy(matrix.toarray() if sp.issparse(matrix) else matrix)


def _single(x: Any) -> Any:
    """``x`` in float32, as an array or as a CSR matrix of scipy without zeros."""
    if isinstance(x, Tensor):
        x = x.detach().cpu()
        if x.layout == torch.strided:
            x = x.to(torch.float32).numpy()
        else:
            # Any other layout passes through COO, the one that all of them convert to.
            coo = x.to_sparse(layout=torch.sparse_coo).coalesce()
            values, indices = coo.values().to(torch.float32).numpy(), coo.indices().numpy()
            x = sp.coo_matrix((values, indices), shape=tuple(x.shape))
    # float64 to float32 may overflow; the check for finite features says so in its own words.
    with np.errstate(over="ignore"):
        if not sp.issparse(x):
            return np.ascontiguousarray(x, dtype=np.float32)
        matrix = sp.csr_matrix(x, dtype=np.float32, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def prefer_sparse(x: Tensor) -> Tensor:
    """A dense ``x`` as CSR if under 10 % of it is non-zero; any other tensor as it is.

    The type of the numbers and the device are kept.
    """
    if x.layout != torch.strided or x.dim() != 2:
        return x
    if int(torch.count_nonzero(x)) >= SPARSE_BELOW * max(x.numel(), 1):
        return x
    found = x.to_sparse_csr()
    return csr_tensor(found.crow_indices(), found.col_indices(), found.values(), x.shape)


def is_sparse(x: Any) -> bool:
    """Whether a matrix of scipy or torch is sparse."""
    return x.layout != torch.strided if isinstance(x, Tensor) else bool(sp.issparse(x))


def from_scipy(matrix: Any) -> Tensor:
    """A scipy CSR matrix as a ``torch.sparse_csr`` tensor."""
    return csr_tensor(
        torch.from_numpy(matrix.indptr.astype(np.int64)),
        torch.from_numpy(matrix.indices.astype(np.int64)),
        torch.from_numpy(np.asarray(matrix.data, dtype=np.float32)),
        matrix.shape,
    )


def dense_rows(x: Tensor, first: int, last: int) -> NDArray[np.float32]:
    """Some rows of a dense or ``torch.sparse_csr`` matrix, as a dense array."""
    if x.layout != torch.sparse_csr:
        dense_part: NDArray[np.float32] = x[first:last].numpy()
        return dense_part
    start, stop = x.crow_indices()[[first, last]].tolist()
    rows = np.repeat(np.arange(last - first), x.crow_indices()[first : last + 1].diff().numpy())
    part = np.zeros((last - first, x.shape[1]), np.float32)
    part[rows, x.col_indices()[start:stop].numpy()] = x.values()[start:stop].numpy()
    return part


def first_not_finite(x: Tensor) -> int | None:
    """The first row of ``x`` with a NaN or an infinity."""
    if x.layout == torch.sparse_csr:
        bad = (~torch.isfinite(x.values())).nonzero().view(-1)
        if len(bad) == 0:
            return None
        return int(torch.searchsorted(x.crow_indices(), bad[0], right=True)) - 1
    rows = (~torch.isfinite(x).all(1)).nonzero().view(-1)
    return int(rows[0]) if len(rows) else None


def require_matrix(where: str, shape: tuple[int, ...]) -> None:
    """Refuse features that are not in rows and columns; ``where`` is their file."""
    if len(shape) != 2 or not all(int(size) == size > 0 for size in shape):
        raise RawlsError(
            f"{where}: features must be a matrix with a row for each node, they have the shape "
            f"{tuple(shape)}"
        )


def feature_flaw(finite: bool) -> str:
    """Say what is wrong with a node's feature that is not ``finite``, or too large."""
    if not finite:
        return f"has a feature that is NaN or infinite: {FILL_IN}"
    return (
        "has a feature over 3e38, the largest number of single precision: divide that column first"
    )


def all_finite(x: Any) -> bool:
    """Whether ``x``, in whatever form and precision it was given, has neither NaN nor infinity."""
    if isinstance(x, Tensor):
        if x.layout != torch.strided:
            x = x.detach().to_sparse(layout=torch.sparse_coo).coalesce().values()
        return bool(torch.isfinite(x).all())
    return bool(np.isfinite(sp.coo_matrix(x).data if sp.issparse(x) else x).all())


def has_negative_features(x: Tensor) -> bool:
    """Whether any feature is negative, so that rows cannot be divided by their sums.

    Such features (embeddings, standardized columns) are used as they are.
    """
    values = x.values() if x.layout == torch.sparse_csr else x
    return bool(values.numel()) and bool(values.min() < 0)


def structural_features(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Make features of the edges alone, which go in both directions, without self-loops.

    They are the identity as CSR up to 20,000 nodes; for more a dense matrix with 129 columns. The
    same edges give the same features.
    """
    if num_nodes <= MOST_ONE_HOT:
        numbers = torch.arange(num_nodes + 1)
        return csr_tensor(numbers, numbers[:-1], torch.ones(num_nodes), (num_nodes, num_nodes))
    degree = torch.bincount(edge_index[0], minlength=num_nodes) + 1.0
    factor = degree.rsqrt()
    row, column = edge_index
    values = torch.cat([factor[row] * factor[column], factor.square()])
    loops = torch.arange(num_nodes)
    entries = torch.stack([torch.cat([row, loops]), torch.cat([column, loops])])
    matrix = torch.sparse_coo_tensor(entries, values, (num_nodes, num_nodes)).to_sparse_csr()
    random = torch.Generator().manual_seed(0)
    basis = torch.randn(num_nodes, SPECTRAL, generator=random)
    for _ in range(4):  # subspace iteration; Â is symmetric
        basis = torch.linalg.qr(matrix @ (matrix @ basis)).Q
    vectors = torch.linalg.eigh(basis.T @ (matrix @ basis)).eigenvectors
    found = basis @ vectors * num_nodes**0.5
    return torch.cat([found, degree.log()[:, None]], 1)


def structural_note(num_nodes: int) -> str:
    """Return the sentence that says what the features are."""
    if num_nodes <= MOST_ONE_HOT:
        what = "each node itself (a unit vector)"
    else:
        what = f"{SPECTRAL} singular vectors of the normalized adjacency matrix and the degree"
    return f"the graph has no node features: its structure alone is used, as features {what}."


def is_structural(x: Tensor, edge_index: Tensor) -> bool:
    """Whether features can be those of :func:`structural_features`, by what is fast to compare."""
    nodes = int(x.shape[0])
    if nodes <= MOST_ONE_HOT:
        if tuple(x.shape) != (nodes, nodes):
            return False
        stored = x if x.layout == torch.sparse_csr else x.to_sparse_csr()
        numbers, ones = torch.arange(nodes), torch.ones(nodes, dtype=x.dtype)
        return torch.equal(stored.col_indices(), numbers) and torch.equal(stored.values(), ones)
    if x.layout != torch.strided or x.shape[1] != SPECTRAL + 1:
        return False
    degree = torch.bincount(edge_index[0], minlength=nodes) + 1.0
    return torch.equal(x[:, -1], degree.log())


def row_normalized(x: Tensor) -> Tensor:
    """Each row divided by its sum, taken in float64; a row whose sum is not positive stays."""
    if x.layout != torch.sparse_csr:
        return (x / row_sums(x)).to(x.dtype)
    rows, _, values = csr_entries(x)
    sums = torch.zeros(x.shape[0], dtype=torch.float64, device=x.device)
    sums.index_add_(0, rows, values.double())
    sums[sums <= 0] = 1
    divided = (values.double() / sums[rows]).to(x.dtype)
    return csr_tensor(x.crow_indices(), x.col_indices(), divided, x.shape)


def row_sums(x: Tensor) -> Tensor:
    """The sums that rows of a dense matrix are divided by, float64, of shape (rows, 1)."""
    sums = x.sum(1, keepdim=True, dtype=torch.float64)
    return sums.masked_fill_(sums <= 0, 1)
