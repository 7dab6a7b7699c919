"""Read every supported matrix format into one CSR form, without needless copies."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._core.argument_checks import is_edge_index, whole_number
from .._core.errors import RawlsError
from .._core.kernels import CSRArrays
from .._core.sparse import array_module, as_array, as_tensor
from .sparse_matrix import SparseMatrix
from .symmetry import compiled_inspection

_LARGEST = 2**31 - 1
#: The types of most arrays, which need no care.
_PLAIN = (np.int32, np.int64, np.float32, np.float64)
#: The integers that float32 holds exactly.
_SMALL = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.uint16)
#: The types that torch can hold but hardly compute with.
_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)


@dataclass(frozen=True)
class InputFormat:
    """The format of the input, in which the balanced matrix is returned."""

    kind: str  # "edges", "numpy edges", "scipy" or "torch"
    scipy_class: Any = None
    layout: torch.layout = torch.sparse_csr


def read_matrix(
    matrix: Any, edge_weight: Any, num_nodes: int | None
) -> tuple[SparseMatrix, InputFormat]:
    """Read a matrix, its stored diagonal included; return it and its input format."""
    if hasattr(matrix, "edge_index") or hasattr(matrix, "is_directed"):
        _refuse_extras(edge_weight, num_nodes, "a graph")
        matrix, edge_weight, num_nodes = _from_graph(matrix)
    if hasattr(matrix, "tocsr"):
        _refuse_extras(edge_weight, num_nodes, "a scipy matrix")
        return _checked(*_from_scipy(matrix)), InputFormat("scipy", scipy_class=type(matrix))
    if isinstance(matrix, Tensor) and matrix.layout != torch.strided:
        _refuse_extras(edge_weight, num_nodes, "a torch sparse tensor")
        return _checked(*_from_torch(matrix.detach())), InputFormat("torch", layout=matrix.layout)
    if not isinstance(matrix, np.ndarray | Tensor):
        raise RawlsError(
            f"cannot balance a {type(matrix).__name__}: pass an edge index of shape (2, E), "
            "a scipy sparse matrix, a torch sparse tensor or a torch_geometric Data "
            "(rg.read makes one of a file, rg.load of a named dataset)"
        )
    edges, kind = _tensor(matrix), "edges" if isinstance(matrix, Tensor) else "numpy edges"
    if not is_edge_index(edges):
        raise RawlsError(
            f"an edge index has shape (2, E) and integers, this one has shape "
            f"{tuple(edges.shape)} and {edges.dtype}; pass a dense matrix as a sparse one."
        )
    edges = edges.long() if edges.dtype in _UNSIGNED else edges
    weight = None if edge_weight is None else _tensor(edge_weight).detach().to(edges.device)
    return _checked(*_from_edges(edges, weight, num_nodes)), InputFormat(kind)


def _from_graph(graph: Any) -> tuple[Tensor, Tensor | None, int]:
    """Edge index, weights and number of nodes of a validated graph, on the device of its edges."""
    from ..graphs import check

    clean = check(graph, need_features=False, need_labels=False)
    edges = getattr(graph, "edge_index", None)
    device = edges.device if isinstance(edges, Tensor) else "cpu"
    weight = clean.get("edge_weight")
    weight = None if weight is None else weight.to(device)
    return clean.edge_index.to(device), weight, int(clean.num_nodes)


def _refuse_extras(edge_weight: Any, num_nodes: int | None, what: str) -> None:
    if edge_weight is not None or num_nodes is not None:
        raise RawlsError(f"edge_weight and num_nodes are for an edge index; {what} has its own.")


def _tensor(array: Any) -> Tensor:
    if isinstance(array, Tensor):
        return array
    if isinstance(array, np.ndarray) and array.dtype in _PLAIN and array.flags.carray:
        return torch.from_numpy(array)
    with warnings.catch_warnings():
        # A read-only array (a memory map, say) is only ever read here.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        try:
            numbers = np.ascontiguousarray(array)
            if not numbers.dtype.isnative:
                numbers = numbers.astype(numbers.dtype.newbyteorder("="))
            return torch.from_numpy(numbers)
        except ValueError as error:
            raise RawlsError("cannot balance lists of different lengths: use arrays.") from error
        except TypeError as error:
            raise RawlsError(
                f"cannot balance numbers of type {numbers.dtype}: use float64."
            ) from error


def _summable(values: Tensor) -> Tensor:
    """Cast to a type in which sums do not overflow: 200 + 200 is not 144."""
    if values.is_complex() or values.dtype in (torch.float32, torch.float64):
        return values
    return values.float() if values.is_floating_point() else values.double()


def _from_scipy(matrix: Any) -> tuple[Tensor, Tensor, Tensor | None]:
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise RawlsError(f"only a square matrix can be balanced, this one is {matrix.shape}.")
    if matrix.dtype.kind in "biu" and not getattr(matrix, "has_canonical_format", False):
        matrix = matrix.astype(np.float64)  # repeated entries are about to be added up
    if matrix.format in ("csr", "csc"):
        # Scipy's arrays may be longer than what is in use of them.
        starts, index = _index(matrix.indptr), _index(matrix.indices)
        end = min(int(starts[-1]) if len(starts) else 0, len(index), len(matrix.data))
        _require_rising(starts, matrix.shape[0], end)
        if not (matrix.format == "csr" and matrix.has_canonical_format):
            _require_inside(index[:end], matrix.shape[0])
    csr = matrix.tocsr()
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return _index(csr.indptr), _index(csr.indices[: csr.nnz]), _tensor(csr.data[: csr.nnz])


def _index(array: Any) -> Tensor:
    """Return numbers of rows, columns or entries in a type that torch compares."""
    index = _tensor(array)
    return index.long() if index.dtype in _UNSIGNED else index


def _require_rising(starts: Tensor, nodes: int, entries: int) -> None:
    """Raise an error unless these are the row starts of so many rows and entries."""
    begins = as_array(starts)
    fitting = len(begins) == nodes + 1 and begins[0] == 0 and begins[-1] == entries
    if not (fitting and (begins[1:] >= begins[:-1]).all()):
        raise _damaged(nodes)


def _require_inside(index: Tensor, nodes: int) -> None:
    """Raise an error for rows or columns outside the matrix."""
    low, high = (int(end) for end in index.aminmax()) if len(index) else (0, -1)
    if low < 0 or high >= nodes:
        raise _damaged(nodes)


def _damaged(nodes: int) -> RawlsError:
    return RawlsError(
        f"the matrix is damaged: it names rows or columns outside 0 to {nodes - 1}, or the starts "
        "of its rows or columns do not rise from 0 to the number of its entries."
    )


def _from_torch(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
    if matrix.dim() != 2 or matrix.shape[0] != matrix.shape[1] or matrix.dense_dim():
        raise RawlsError(
            f"only a square matrix can be balanced, this one is {tuple(matrix.shape)}."
        )
    if matrix.layout == torch.sparse_coo:
        _require_inside(matrix._indices().flatten(), len(matrix))
        parts, done = (matrix._indices(), _summable(matrix._values())), matrix.is_coalesced()
        matrix = torch.sparse_coo_tensor(
            *parts, matrix.shape, is_coalesced=done, check_invariants=False
        ).coalesce()
    elif matrix.layout in (torch.sparse_csr, torch.sparse_csc):
        by_rows = matrix.layout == torch.sparse_csr
        starts = matrix.crow_indices() if by_rows else matrix.ccol_indices()
        index = matrix.col_indices() if by_rows else matrix.row_indices()
        entries = len(index) if len(index) == len(matrix.values()) else -1
        _require_rising(starts, len(matrix), entries)
        if not by_rows:
            _require_inside(index, len(matrix))
    else:
        raise RawlsError(f"cannot balance layout {matrix.layout}: use matrix.to_sparse_csr().")
    csr = matrix.to_sparse_csr()
    starts, column = csr.crow_indices(), csr.col_indices()
    if not _is_sorted(starts, column):
        _require_inside(column, len(matrix))
        # The conversion assumes that its entries are unique: count them again.
        coo = csr.to_sparse(layout=torch.sparse_coo)
        coo = torch.sparse_coo_tensor(
            coo.indices(), _summable(coo.values()), coo.shape, check_invariants=False
        )
        csr = coo.coalesce().to_sparse_csr()
        starts, column = csr.crow_indices(), csr.col_indices()
    return starts, column, csr.values()


def _from_edges(
    edges: Tensor, weight: Tensor | None, num_nodes: int | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    if weight is not None and weight.shape != edges.shape[1:]:
        raise RawlsError(
            f"edge_weight has shape {tuple(weight.shape)}, but there are {edges.shape[1]} edges."
        )
    row, column = edges
    low, high = (int(end) for end in edges.aminmax()) if edges.numel() else (0, -1)
    num_nodes = high + 1 if num_nodes is None else whole_number(num_nodes, "num_nodes")
    if num_nodes > _LARGEST:
        raise RawlsError(f"a graph of {num_nodes} nodes is too large: 2³¹ − 1 at most.")
    if low < 0 or high >= num_nodes:
        raise RawlsError(
            f"the edge index names node {low if low < 0 else high}, "
            f"but the {num_nodes} nodes are numbered from 0 to {num_nodes - 1}."
        )
    ordered = _ordered(row, column.int(), num_nodes)
    if ordered is not None:
        return *ordered, weight
    # Repeated edges add up, as they do in torch_geometric's own normalization.
    if weight is None:
        weight = torch.ones(edges.shape[1], dtype=torch.float32, device=edges.device)
    weight = _summable(weight)
    shape = (num_nodes, num_nodes)
    if edges.device.type != "cpu":
        return _from_torch(torch.sparse_coo_tensor(edges, weight, shape, check_invariants=False))
    # Two counting sorts, where torch's coalesce would sort 64-bit keys and need thrice the memory.
    from scipy.sparse import coo_array

    return _from_scipy(coo_array((weight.numpy(), (row.numpy(), column.numpy())), shape=shape))


def _ordered(row: Tensor, column: Tensor, num_nodes: int) -> tuple[Tensor, Tensor] | None:
    """Return row starts and columns of edges that are sorted and unique; None for others."""
    rows, columns = as_array(row), as_array(column)
    turn = rows[1:] != rows[:-1]
    rising = columns[1:] > columns[:-1]
    rising |= turn
    if not (rising.all() and (rows[1:] >= rows[:-1]).all()):
        return None
    starts = torch.zeros(num_nodes + 1, dtype=torch.int32, device=row.device)
    if len(row):
        last = as_tensor(array_module(row.device).argwhere(turn))[:, 0]
        last = torch.cat([last, last.new_tensor([len(row) - 1])])
        degree = torch.zeros(num_nodes, dtype=torch.long, device=row.device)
        degree[row[last].long()] = last.diff(prepend=last.new_tensor([-1]))
        torch.cumsum(degree, 0, out=starts[1:])
    return starts, column


def _is_sorted(starts: Tensor, column: Tensor) -> bool:
    """Whether columns grow strictly within each row (so that none appears twice)."""
    rising = column[1:] > column[:-1]
    first = starts[1:-1]
    rising[first[(first > 0) & (first < len(column))].long() - 1] = True
    return bool(rising.all())


def _checked(starts: Tensor, column: Tensor, values: Tensor | None) -> SparseMatrix:
    """Check a matrix; return it with 32-bit indices, without stored zeros or values of one."""
    if len(starts) == 1:
        raise RawlsError("an empty matrix cannot be balanced: it has no rows.")
    if len(starts) > _LARGEST or len(column) > _LARGEST:
        raise RawlsError(f"a matrix of {len(column)} entries is too large: 2³¹ − 1 at most.")
    if values is not None:
        values = _weights(values) if len(values) else None
    inspection = compiled_inspection(CSRArrays(starts, column, values))
    if inspection is None:  # nothing is compiled for it, or it is damaged
        _require_inside(column, len(starts) - 1)
    if values is not None:
        low, high = inspection[2:] if inspection else (end.item() for end in values.aminmax())
        if not (np.isfinite(low) and np.isfinite(high)) or low < 0:
            bad = (values < 0) if np.isfinite(low) and low < 0 else ~values.isfinite()
            at = int(bad.nonzero()[0])
            where = int(torch.searchsorted(starts, at, right=True)) - 1
            raise RawlsError(
                f"the entry at row {where}, column {int(column[at])} is {values[at].item()}: "
                "only finite entries of at least 0 can be balanced."
            )
        if low == 0:
            keep = values != 0
            kept = torch.zeros(len(values) + 1, dtype=torch.int32, device=values.device)
            torch.cumsum(keep, 0, out=kept[1:])
            starts, column, values = kept[starts.long()], column[keep], values[keep]
            inspection = None
        elif low == high == 1:
            values = None
    starts, column = (index.to(torch.int32).contiguous() for index in (starts, column))
    return SparseMatrix(starts, column, values, loops=False, inspection=inspection)


def _weights(values: Tensor) -> Tensor:
    """Return the values as float32 or float64, whichever holds them exactly.

    One of these two types for every matrix: then one product is used for all of them, and the
    result depends on the numbers alone, not on their type.
    """
    if values.is_complex():
        raise RawlsError("a matrix of complex numbers cannot be balanced.")
    if values.dtype in (torch.float32, torch.float64):
        return values
    small = values.is_floating_point() or values.dtype in _SMALL
    return values.float() if small else values.double()
