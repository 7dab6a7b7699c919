"""Read every supported matrix format into one CSR form, without needless copies.

Every format is either compressed (starts of rows or columns, and the other index of each entry) or
a list of entries. Compressed rows that are sorted and unique stay as they are; all others become a
list of entries, whose repetitions are added up.
"""

from __future__ import annotations

import warnings
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
#: The types that torch can hold but hardly compute with.
_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)
#: Row starts, columns and values, which are None for ones.
_Rows = tuple[Tensor, Tensor, Tensor | None]


def read_matrix(matrix: Any, edge_weight: Any, num_nodes: int | None) -> tuple[SparseMatrix, Any]:
    """Read a matrix, its stored diagonal included; return it and its input format.

    The format is ``"edges"``, ``"numpy edges"``, a class of scipy or a layout of torch.
    """
    if hasattr(matrix, "edge_index") or hasattr(matrix, "is_directed"):
        _refuse_extras(edge_weight, num_nodes, "a graph")
        matrix, edge_weight, num_nodes = _from_graph(matrix)
    if hasattr(matrix, "tocsr"):
        _refuse_extras(edge_weight, num_nodes, "a scipy matrix")
        return _checked(_from_scipy(matrix)), type(matrix)
    if isinstance(matrix, Tensor) and matrix.layout != torch.strided:
        _refuse_extras(edge_weight, num_nodes, "a torch sparse tensor")
        return _checked(_from_torch(matrix.detach())), matrix.layout
    if not isinstance(matrix, np.ndarray | Tensor):
        raise RawlsError(
            f"cannot balance a {type(matrix).__name__}: pass an edge index of shape (2, E), "
            "a scipy sparse matrix, a torch sparse tensor or a torch_geometric Data "
            "(rg.read makes one of a file, rg.load of a named dataset)"
        )
    edges = _tensor(matrix)
    if not is_edge_index(edges):
        raise RawlsError(
            f"an edge index has shape (2, E) and integers, this one has shape "
            f"{tuple(edges.shape)} and {edges.dtype}; pass a dense matrix as a sparse one."
        )
    weight = None if edge_weight is None else _tensor(edge_weight).detach().to(edges.device)
    rows = _from_edges(_index(edges), weight, num_nodes)
    return _checked(rows), "edges" if isinstance(matrix, Tensor) else "numpy edges"


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


def _index(array: Any) -> Tensor:
    """Return numbers of rows, columns or entries in a type that torch compares."""
    index = _tensor(array)
    return index.long() if index.dtype in _UNSIGNED else index


def _weights(values: Tensor) -> Tensor:
    """Return the values as float32 or float64, whichever holds them exactly.

    One of these two types for every matrix: then one product is used for all of them, sums do not
    overflow (200 + 200 is not 144), and the result depends on the numbers alone.
    """
    if values.is_complex():
        raise RawlsError("a matrix of complex numbers cannot be balanced.")
    if values.dtype in (torch.float32, torch.float64):
        return values
    return values.float() if values.is_floating_point() or values.itemsize <= 2 else values.double()


def _from_scipy(matrix: Any) -> _Rows:
    nodes = _square(matrix.shape)
    if matrix.format == "coo":
        row, column = _index(matrix.row), _index(matrix.col)
        _require_inside(row, column, nodes=nodes)
        return _from_entries(row, column, _tensor(matrix.data), nodes)
    matrix = matrix if matrix.format in ("csr", "csc") else matrix.tocsr()
    starts, index, values = _index(matrix.indptr), _index(matrix.indices), _tensor(matrix.data)
    # Scipy's arrays may be longer than what is in use of them.
    end = min(int(starts[-1]) if len(starts) else 0, len(index), len(values))
    _require_rising(starts, nodes, end)
    if matrix.format == "csr" and matrix.has_canonical_format:  # which scipy remembers
        return starts, index[:end], values[:end]
    return _from_compressed(starts, index[:end], values[:end], nodes, matrix.format == "csr")


def _from_torch(matrix: Tensor) -> _Rows:
    nodes = _square(matrix.shape[:1] if matrix.dense_dim() else matrix.shape)
    if matrix.layout == torch.sparse_coo:
        row, column = matrix._indices()
        _require_inside(row, column, nodes=nodes)
        return _from_entries(row, column, matrix._values(), nodes)
    if matrix.layout == torch.sparse_csr:
        starts, index = matrix.crow_indices(), matrix.col_indices()
    elif matrix.layout == torch.sparse_csc:
        starts, index = matrix.ccol_indices(), matrix.row_indices()
    else:
        raise RawlsError(f"cannot balance layout {matrix.layout}: use matrix.to_sparse_csr().")
    if len(index) != len(matrix.values()):
        raise _damaged(nodes)
    by_rows = matrix.layout == torch.sparse_csr
    return _from_compressed(starts, index, matrix.values(), nodes, by_rows)


def _square(shape: Any) -> int:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise RawlsError(f"only a square matrix can be balanced, this one is {tuple(shape)}.")
    return int(shape[0])


def _from_edges(edges: Tensor, weight: Tensor | None, num_nodes: int | None) -> _Rows:
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
    return _from_entries(row, column, weight, num_nodes)


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


def _from_compressed(
    starts: Tensor, index: Tensor, values: Tensor, nodes: int, by_rows: bool
) -> _Rows:
    """Return the rows of compressed rows or columns."""
    _require_rising(starts, nodes, len(index))
    if by_rows:
        rising = index[1:] > index[:-1]
        first = starts[1:-1]
        rising[first[(first > 0) & (first < len(index))].long() - 1] = True
        if rising.all():
            return starts, index, values
    _require_inside(index, nodes=nodes)
    outer = torch.arange(nodes, device=index.device).repeat_interleave(starts.diff())
    row, column = (outer, index) if by_rows else (index, outer)
    return _from_entries(row, column, values, nodes)


def _from_entries(row: Tensor, column: Tensor, values: Tensor, nodes: int) -> _Rows:
    """Sort entries whose rows and columns exist, and add up repeated ones."""
    values, shape = _weights(values), (nodes, nodes)
    if row.device.type != "cpu":
        index = torch.stack([row.long(), column.long()])
        coo = torch.sparse_coo_tensor(index, values, shape, check_invariants=False)
        csr = coo.coalesce().to_sparse_csr()
        return csr.crow_indices(), csr.col_indices(), csr.values()
    # Two counting sorts, where torch's coalesce would sort 64-bit keys and need thrice the memory.
    from scipy.sparse import coo_array

    numbers = values.numpy(), (row.numpy(), column.numpy())
    matrix = coo_array(numbers, shape=shape).tocsr()
    parts = matrix.indptr, matrix.indices[: matrix.nnz], matrix.data[: matrix.nnz]
    starts, column, values = map(torch.from_numpy, parts)
    return starts, column, values


def _require_rising(starts: Tensor, nodes: int, entries: int) -> None:
    """Raise an error unless these are the starts of so many rows and entries."""
    begins = as_array(starts)
    fitting = len(begins) == nodes + 1 and begins[0] == 0 and begins[-1] == entries
    if not (fitting and (begins[1:] >= begins[:-1]).all()):
        raise _damaged(nodes)


def _require_inside(*indices: Tensor, nodes: int) -> None:
    """Raise an error for rows or columns outside the matrix."""
    for index in indices:
        low, high = (int(end) for end in index.aminmax()) if len(index) else (0, -1)
        if low < 0 or high >= nodes:
            raise _damaged(nodes)


def _damaged(nodes: int) -> RawlsError:
    return RawlsError(
        f"the matrix is damaged: it names rows or columns outside 0 to {nodes - 1}, or the starts "
        "of its rows or columns do not rise from 0 to the number of its entries."
    )


def _checked(rows: _Rows) -> SparseMatrix:
    """Check a matrix; return it with 32-bit indices, without stored zeros or values of one."""
    starts, column, values = rows
    if len(starts) == 1:
        raise RawlsError("an empty matrix cannot be balanced: it has no rows.")
    if len(starts) > _LARGEST or len(column) > _LARGEST:
        raise RawlsError(f"a matrix of {len(column)} entries is too large: 2³¹ − 1 at most.")
    if values is not None:
        values = _weights(values) if len(values) else None
    inspection = compiled_inspection(CSRArrays(starts, column, values))
    if inspection is None:  # nothing is compiled for it, or it is damaged
        _require_inside(column, nodes=len(starts) - 1)
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
