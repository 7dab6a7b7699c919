"""The nearest nodes by the cosine of their features, for a part of the nodes.

The search has two steps. The first gives each node a few candidates, by products in single
precision (exact: none of the nearest is missing) or by an index (approximate). The second computes
the cosines of the candidates in double precision and keeps the nearest. So the answer does not
depend on how, on which device and with how many threads the products were computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..._core.sparse import csr_tensor
from ..node_features import has_negative_features
from ..tf_idf import unit_rows
from .approximate_search import approximate_neighbors

Array = NDArray[Any]

#: Up to this number of nodes the search is exact by default.
MAX_EXACT_NODES = 100_000
#: The largest block of cosines, and the largest part of one that is copied in other forms.
_BLOCK_BYTES, _PART_BYTES = 64 << 20, 8 << 20
#: The largest dense copy of sparse features.
_DENSE_BYTES = 256 << 20
#: More than the rounding error of a cosine in single precision.
_MARGIN = 1e-5
#: Candidates beyond those that a node needs.
_SPARE = 8
#: Of so many equally near nodes or more, those are taken that come next in a random order: with the
#: smallest numbers all would take the same ones.
_MANY_TIES = 64
#: Decimals to which cosines in double precision are compared.
_DECIMALS = 10
#: How many multiplications of a dense product take as long as one of a sparse product.
_SPARSE_COST = 50
#: A product with a smaller share of non-zeros than this is sorted without its zeros.
_FEW_PRODUCTS = 0.005


#: Nodes, as positions in a part of the nodes, each with a node that may be near it.
Candidates = tuple[Array, Array]


@dataclass(frozen=True)
class _Search:
    """What is searched for: for each node of ``low`` as many near nodes as it lacks."""

    low: Array
    lacks: Array
    excluded: Array  # node · n + other node, sorted: neighbors and the node itself
    nodes: int
    most: int  # so many nearest nodes contain all that any node may get
    floor: float  # candidates have a larger cosine in single precision

    def is_allowed(self, node: Array, other: Array) -> Array:
        """Whether two nodes are neither neighbors nor the same."""
        key = node.astype(np.int64) * self.nodes + other
        at = np.searchsorted(self.excluded, key)
        return np.asarray(self.excluded[np.minimum(at, len(self.excluded) - 1)] != key)

    @cached_property
    def _place(self) -> Tensor:
        random = np.random.default_rng(0)
        return torch.from_numpy(random.permutation(self.nodes).astype(np.int32))

    def turn(self, node: Array, other: Array) -> Tensor:
        """When another node comes after a node in a random order, the same each time."""
        return (self._place[other] - self._place[node]) % self.nodes


def nearest_nodes(
    features: Tensor, low: Tensor, lacks: Tensor, pairs: Tensor, *, exact: bool
) -> tuple[Tensor, Tensor]:
    """Return an edge (source, target) from each node of ``low`` to each of its nearest nodes.

    Node ``low[i]`` gets at most ``lacks[i]``, none of them itself, in ``pairs`` (source · n +
    target, sorted, both directions) or with a cosine of zero or less.
    """
    nodes = features.shape[0]
    empty = torch.empty(0, dtype=torch.long)
    if not len(low) or nodes < 2 or not features.shape[1]:
        return empty, empty
    excluded = torch.cat([pairs.cpu(), torch.arange(nodes) * (nodes + 1)]).sort().values.numpy()
    counts = np.diff(np.searchsorted(excluded, np.arange(nodes + 1) * nodes))
    rows, lack = low.cpu().numpy(), lacks.cpu().numpy()
    most = min(int((counts[rows] + lack).max()), nodes)
    floor = -_MARGIN if has_negative_features(features) else 0.0
    search = _Search(rows, lack, excluded, nodes, most, floor)

    matrix = _to_scipy(features) if features.layout == torch.sparse_csr else features
    if exact:
        matrix = _cheaper_layout(matrix, search)
    sources, targets = [empty], [empty]
    for start, candidates in _exact(matrix, search) if exact else _approximate(matrix, search):
        position, node = _nearest(candidates, start, matrix, search)
        sources.append(torch.from_numpy(rows[start + position]))
        targets.append(torch.from_numpy(node))
    return torch.cat(sources), torch.cat(targets)


def _nearest(
    candidates: Candidates, start: int, matrix: Any, search: _Search
) -> tuple[Array, Array]:
    """Return the pairs of candidates that are nearest, of equally near ones the smaller number.

    Of many equally near ones, those are returned whose turn it is.
    """
    position, node = candidates
    allowed = search.is_allowed(search.low[start + position], node)
    position, node = position[allowed], node[allowed]
    cosine = _cosines(matrix, search.low[start + position], node).round(_DECIMALS)
    keep = cosine > 0
    position, node, cosine = _nearest_first(position[keep], node[keep], cosine[keep])
    begins = np.diff(position, prepend=position[:1]) != 0
    begins |= np.diff(cosine, prepend=cosine[:1]) != 0
    tie = begins.cumsum()
    many = np.bincount(tie)[tie] >= _MANY_TIES
    if many.any():
        turn = np.where(many, search.turn(search.low[start + position], node), node)
        node = node[np.lexsort((turn, tie))]
    keep = _rank(position) < search.lacks[start + position]
    return position[keep], node[keep]


def _nearest_first(position: Array, node: Array, cosine: Array) -> tuple[Array, Array, Array]:
    order = np.lexsort((node, -cosine, position))
    return position[order], node[order], cosine[order]


def _rank(group: Array) -> Array:
    """Number the entries of each group from 0; equal numbers are beside each other."""
    return np.asarray(np.arange(len(group)) - np.searchsorted(group, group))


def _cosines(matrix: Any, one: Array, other: Array) -> Array:
    """Return the cosine of the rows of each pair in double precision."""
    entries = matrix.shape[1] if isinstance(matrix, Tensor) else matrix.nnz // matrix.shape[0] + 1
    size = max(1, _PART_BYTES // (8 * entries))
    parts = [np.empty(0)]
    for start in range(0, len(one), size):
        pair = one[start : start + size], other[start : start + size]
        if isinstance(matrix, Tensor):
            a, b = (
                unit_rows(matrix[torch.from_numpy(each).to(matrix.device)].double())
                for each in pair
            )
            parts.append((a * b).sum(1).cpu().numpy())
        else:
            a, b = (matrix[each] for each in pair)
            parts.append(np.asarray(a.multiply(b).sum(1)).ravel())
    return np.concatenate(parts)


def _cheaper_layout(matrix: Any, search: _Search) -> Any:
    """Return the features dense or sparse, as their product takes less time."""
    nodes, width = matrix.shape
    dense_cost = float(nodes) * width * len(search.low)
    if isinstance(matrix, Tensor):
        if matrix.device.type != "cpu":
            return matrix
        stored = matrix != 0
        products = (stored.sum(0).double() * stored[search.low].sum(0).double()).sum().item()
        is_dense = dense_cost <= _SPARSE_COST * products
        return matrix if is_dense else _to_scipy(matrix.to_sparse_csr())
    is_small = 4 * nodes * width <= _DENSE_BYTES
    if is_small and dense_cost <= _SPARSE_COST * _products(matrix, search.low).sum():
        return torch.from_numpy(matrix.toarray())
    return matrix


def _products(matrix: Any, rows: Array) -> Array:
    """Return how many multiplications each row takes in a sparse product with all others."""
    frequency = np.bincount(matrix.indices, minlength=matrix.shape[1]).astype(np.float64)
    ones = sp.csr_matrix((np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape)
    return np.asarray((ones @ frequency)[rows])


def _exact(matrix: Any, search: _Search) -> Iterator[tuple[int, Candidates]]:
    """Yield blocks of nodes, as the position of the first one in ``low``, with their candidates."""
    rows = max(1, _BLOCK_BYTES // (4 * search.nodes))
    if isinstance(matrix, Tensor):
        unit = unit_rows(matrix).to(_product_type())
        for start in range(0, len(search.low), rows):
            part = torch.from_numpy(search.low[start : start + rows]).to(unit.device)
            yield start, _of_dense(unit[part] @ unit.t(), start, search)
        return
    products = _products(matrix, search.low)
    left = matrix.astype(np.float32)[search.low]
    right = matrix.astype(np.float32).T.tocsr()
    if products.sum() < _FEW_PRODUCTS * search.nodes * len(search.low):
        total = products.cumsum()
        start = 0
        while start < len(products):
            before = total[start] - products[start]
            end = int(np.searchsorted(total, before + _BLOCK_BYTES // 32, side="right"))
            end = max(end, start + 1)
            found = (left[start:end] @ right).tocoo()
            yield start, _of_entries(found.row, found.col, found.data, start, search)
            start = end
        return
    has_mkl = torch.backends.mkl.is_available()  # type: ignore[no-untyped-call]
    other, room = _to_torch(right), torch.zeros(rows if has_mkl else 0, search.nodes)
    for start in range(0, len(search.low), rows):
        part = left[start : start + rows]
        if has_mkl:  # each product in the memory of the last
            out = room[: part.shape[0]]
            cosines = torch.addmm(out, _to_torch(part), other, beta=0, out=out)
        else:
            cosines = torch.from_numpy((part @ right).toarray())
        yield start, _of_dense(cosines, start, search)


def _to_torch(matrix: Any) -> Tensor:
    """Return a scipy matrix as a CSR tensor with 32-bit indices, which MKL uses as they are."""
    starts, columns = (torch.from_numpy(a).int() for a in (matrix.indptr, matrix.indices))
    return csr_tensor(starts, columns, torch.from_numpy(matrix.data), matrix.shape)


def _product_type() -> torch.dtype:
    """Single precision, except where the user allows products of less than that."""
    with suppress(RuntimeError):  # raised if the precision was set for one kind of device
        if torch.get_float32_matmul_precision() == "highest":
            return torch.float32
    return torch.float64


def _of_dense(cosines: Tensor, start: int, search: _Search) -> Candidates:
    """Return the candidates of a block of rows of cosines (b, n)."""
    count = min(search.most + _SPARE, search.nodes)
    best, node = (each.cpu().numpy() for each in cosines.topk(count, 1))
    position = np.broadcast_to(np.arange(len(best))[:, None], best.shape)
    allowed = search.is_allowed(search.low[start + position], node)
    ordered = -np.sort(-np.where(allowed, best, -1.0), axis=1)
    lack = np.minimum(search.lacks[start : start + len(best)], count)
    last = ordered[np.arange(len(best)), lack - 1]  # of those that the node needs
    limit = np.maximum(last - _MARGIN, search.floor)
    # More nodes than were taken may be as near as the last one.
    many = np.flatnonzero((best[:, -1] > limit) & (count < search.nodes))
    keep = allowed & (best > limit[:, None])
    keep[many] = False
    positions, others = [position[keep]], [node[keep]]
    size = max(1, _PART_BYTES // (4 * search.nodes))
    for first in range(0, len(many), size):
        rows = many[first : first + size]
        near = cosines[torch.from_numpy(rows).to(cosines.device)]
        low, high = (
            torch.from_numpy(each[rows, None]).to(near) for each in (limit, last + _MARGIN)
        )
        tie = (near > low) & (near <= high)
        turn = search.turn(search.low[start + rows, None], np.arange(search.nodes)).to(near.device)
        turn = torch.where(tie, turn, search.nodes)
        kept = min(_MANY_TIES + search.most, search.nodes)
        chosen = tie & (turn <= turn.topk(kept, 1, largest=False).values[:, -1:])
        i, j = (each.cpu().numpy() for each in (chosen | (near > high)).nonzero().unbind(1))
        positions.append(rows[i])
        others.append(j)
    return np.concatenate(positions), np.concatenate(others)


def _of_entries(
    position: Array, node: Array, cosine: Array, start: int, search: _Search
) -> Candidates:
    """Return the candidates of a block of rows of cosines, given by its entries."""
    keep = (cosine > search.floor) & search.is_allowed(search.low[start + position], node)
    position, node, cosine = _nearest_first(position[keep], node[keep], cosine[keep])
    # The cosine of the last one that each node needs; minus one if there are fewer.
    last = np.full(len(search.low), -1.0)
    is_last = _rank(position) == search.lacks[start + position] - 1
    last[position[is_last]] = cosine[is_last]
    above = cosine - last[position]
    near = np.flatnonzero(np.abs(above) <= _MARGIN)
    turn = search.turn(search.low[start + position[near]], node[near])
    near = near[np.lexsort((turn, position[near]))]
    keep = above > _MARGIN
    keep[near[_rank(position[near]) < _MANY_TIES + search.most]] = True
    return position[keep], node[keep]


def _approximate(matrix: Any, search: _Search) -> Iterator[tuple[int, Candidates]]:
    """Yield blocks of nodes with their candidates from an index of approximate neighbors."""
    for start, node in approximate_neighbors(matrix, search.low, search.most):
        position = np.broadcast_to(np.arange(len(node))[:, None], node.shape)
        keep = node >= 0
        yield start, (position[keep], node[keep])


def _to_scipy(features: Tensor) -> Any:
    """Return sparse features as a scipy matrix in double precision, with rows of unit length."""
    unit = unit_rows(features.cpu().to(torch.float64))
    parts = unit.values(), unit.col_indices(), unit.crow_indices()
    matrix = sp.csr_matrix(tuple(part.numpy() for part in parts), shape=tuple(unit.shape))
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix
