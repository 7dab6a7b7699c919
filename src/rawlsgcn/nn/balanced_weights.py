r"""The entries of the doubly stochastic form B of a layer's matrix, at the edges of its input.

Every layer's matrix is balanced by one rule: its entries at the edges, including its own
self-loops, and a self-loop for each node that has none. Without its diagonal a graph's matrix need
not have a doubly stochastic form (a star has none); with it a symmetric one always has.
"""

from __future__ import annotations

import operator
import weakref
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.typing import SparseTensor
from torch_geometric.utils import is_sparse, to_edge_index

from .._core.argument_checks import require_nodes
from .._core.errors import RawlsError
from .._core.sparse import csr_tensor
from ..balancing import Scaling, balance
from ..balancing.scaling import tolerance

#: Graphs that are cached, and forms of each. The layers of one model receive the same few.
_CACHE_SIZE = 8
#: How far a matrix may be from symmetric by the rounding of its float32 entries alone.
_ROUNDING = 1e-5


class Loops(NamedTuple):
    """The diagonal of a layer's matrix beyond the self-loops among its edges.

    Attributes:
        weight: The weight of a self-loop that the layer adds.
        everywhere: Add it to every node, rather than to nodes without a self-loop.
        last: Of several self-loops of a node the last counts, rather than their sum.
    """

    weight: float | Tensor
    everywhere: bool = False
    last: bool = False


def balanced_entries(
    edge_index: Tensor,
    edge_weight: Tensor | None,
    num_nodes: int,
    loops: Loops,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor, Scaling]:
    """Return B's entries at the edges (E,) and on its diagonal (num_nodes,), and the scaling.

    Edges from a node to itself are moved to the diagonal: their own entries are zero. Nothing is
    differentiated.
    """
    if loops.weight < 0:
        raise RawlsError(
            f"a self-loop of weight {float(loops.weight):.3g} leaves a matrix without a doubly "
            "stochastic form: the eps of a GINConv must stay above -1; fix it or train it at a "
            "lower rate."
        )
    tol = tolerance(dtype)
    row, column = edge_index
    own = row == column
    weight = row.new_ones(len(row), dtype=torch.float64)
    if edge_weight is not None:
        weight = edge_weight.detach().double()
    diagonal = weight.new_full((num_nodes,), float(loops.weight))
    if not loops.everywhere:
        diagonal[row[own]] = 0.0
    if loops.last:
        diagonal[row[own]] = weight[own]
    else:
        diagonal.index_add_(0, row[own], weight[own])
    weight = weight.masked_fill(own, 0.0)
    if edge_weight is None and bool((diagonal == 1.0).all()):
        others = edge_index[:, ~own] if bool(own.any()) else edge_index
        scaling = balance(others, num_nodes=num_nodes, tol=tol)
    else:
        node = torch.arange(num_nodes, device=edge_index.device)
        indices = torch.cat([edge_index, torch.stack([node, node])], 1)
        scaling = balance(_symmetrized(indices, torch.cat([weight, diagonal]), num_nodes), tol=tol)
    edge = scaling.usable("the graph").weight(edge_index, weight)
    loop = scaling.row_scale * scaling.col_scale * diagonal
    return edge.to(dtype), loop.to(dtype), scaling


def _symmetrized(indices: Tensor, values: Tensor, num_nodes: int) -> Tensor:
    """Return the matrix; exactly symmetric if it is so except for rounding, as Â in float32 is."""
    shape = (num_nodes, num_nodes)
    matrix = torch.sparse_coo_tensor(indices, values, shape, check_invariants=False).coalesce()
    other = matrix.t().coalesce()
    one, two = matrix.values(), other.values()
    if (
        not torch.equal(matrix.indices(), other.indices())
        or torch.equal(one, two)
        or not torch.allclose(one, two, rtol=_ROUNDING, atol=0.0)
    ):
        return matrix
    return torch.sparse_coo_tensor(
        matrix.indices(), (one + two) / 2, shape, is_coalesced=True, check_invariants=False
    )


def edges_of(adjacency: Any, edge_weight: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Return the edges (source, target) and weights of any adjacency that torch_geometric takes.

    A sparse matrix is the transposed adjacency there: its rows are the targets.
    """
    if is_sparse(adjacency):
        edge_index, weight = to_edge_index(adjacency)
        return edge_index.flip(0), weight
    if isinstance(adjacency, EdgeIndex):
        adjacency = adjacency.as_tensor()
    return adjacency, edge_weight


def fair_weight_of(
    adjacency: Any,
    edge_weight: Tensor | None,
    num_nodes: int,
    loops: Loops,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor | None]:
    """Return B's entries at the edges and on its diagonal (E + num_nodes,), and B as a CSR matrix.

    The matrix is None if B is not symmetric, and in compiled code, for which this is one operator.
    """
    if torch.compiler.is_compiling() and not is_sparse(adjacency):
        weight = torch.as_tensor(loops.weight)
        compiled: Tensor = torch.ops.rawlsgcn.fair_weight(
            adjacency, edge_weight, num_nodes, weight, loops.everywhere, loops.last, dtype
        )
        return compiled, None
    form: Any = _form
    if torch.compiler.is_compiling():  # no decorator: it would import torch's whole compiler
        form = torch.compiler.disable(form)  # type: ignore[no-untyped-call]
    found: _Form = form(adjacency, edge_weight, num_nodes, loops, dtype)
    return found


_Form = tuple[Tensor, Tensor | None]


@dataclass(frozen=True, eq=False)
class _CachedGraph:
    """The forms of a graph by their options, while its tensors exist and hold the same numbers.

    So a graph is balanced once for all layers and steps. The copies are compared, since torch's
    version counter does not see a change through ``.data`` or through numpy. To compare them the
    edges are read once, where a layer's messages read them once for each feature; on a GPU it waits
    for the device once.
    """

    tensors: list[weakref.ref[Tensor]]
    copies: list[Tensor]
    forms: dict[tuple[Any, ...], _Form]


_cache: deque[_CachedGraph] = deque(maxlen=_CACHE_SIZE)


@torch.no_grad()
def _form(
    adjacency: Any,
    edge_weight: Tensor | None,
    num_nodes: int,
    loops: Loops,
    dtype: torch.dtype,
) -> _Form:
    loops = loops._replace(weight=float(loops.weight))
    tensors = [tensor for tensor in (adjacency, edge_weight) if tensor is not None]
    tracked = all(isinstance(tensor, Tensor) for tensor in tensors)  # not a SparseTensor
    forms = _forms_of(tensors) if tracked else {}
    options = (num_nodes, loops, dtype)
    if options in forms:
        return forms[options]
    edges, weight = edges_of(adjacency, edge_weight)
    require_nodes(edges, num_nodes, "a fair layer")
    try:
        edge, loop, scaling = balanced_entries(edges, weight, num_nodes, loops, dtype)
    except RawlsError as error:
        raise RawlsError(
            f"the graph of a fair layer cannot be balanced ({str(error).rstrip('.')}); if it is a "
            "sample, pass the whole graph's entries as fair_weight, or use "
            "rawlsgcn.nn.fair_weights."
        ) from error
    csr = None
    if scaling.scale is not None:
        csr = csr_tensor(*scaling.csr(dtype), (num_nodes, num_nodes))
    if len(forms) >= _CACHE_SIZE:  # as of a GINConv, whose ε is learned
        forms.pop(next(iter(forms)), None)
    forms[options] = torch.cat([edge, loop]), csr
    return forms[options]


def _forms_of(tensors: list[Tensor]) -> dict[tuple[Any, ...], _Form]:
    """Return the cached forms of a graph; forget those of changed graphs and of past ones."""
    numbers = [part for tensor in tensors for part in _numbers(tensor)]
    for graph in tuple(_cache):
        known = [tensor() for tensor in graph.tensors]
        same = len(known) == len(tensors) and all(map(operator.is_, known, tensors))
        if same and _equal(graph.copies, numbers):
            return graph.forms
        if same or any(tensor is None for tensor in known):
            with suppress(ValueError):  # another thread removed it
                _cache.remove(graph)
    copies = [part.clone() for part in numbers]
    graph = _CachedGraph([weakref.ref(tensor) for tensor in tensors], copies, {})
    _cache.append(graph)
    return graph.forms


def _numbers(tensor: Tensor) -> tuple[Tensor, ...]:
    """Return the plain tensors of an edge index, a weight or a sparse matrix."""
    if isinstance(tensor, EdgeIndex):
        return (tensor.as_tensor(),)
    if tensor.layout == torch.sparse_coo:
        return tensor._indices(), tensor._values()
    if tensor.layout == torch.sparse_csr:
        return tensor.crow_indices(), tensor.col_indices(), tensor.values()
    if tensor.layout == torch.sparse_csc:
        return tensor.ccol_indices(), tensor.row_indices(), tensor.values()
    return (tensor,)


def _equal(copies: list[Tensor], numbers: list[Tensor]) -> bool:
    return len(copies) == len(numbers) and all(
        copy.dtype == own.dtype and copy.device == own.device and torch.equal(copy, own)
        for copy, own in zip(copies, numbers, strict=True)
    )


def same_graph(one: Any, two: Any) -> bool:
    """Whether two adjacencies share their memory, as one and its ``detach()`` do."""
    first, second = (
        (each.data_ptr(), each.shape, each.stride(), each.device)
        for each in (_indices(one), _indices(two))
    )
    return first == second


def _indices(adjacency: Any) -> Tensor:
    if isinstance(adjacency, SparseTensor):
        column: Tensor = adjacency.storage.col()
        return column
    return _numbers(adjacency)[1 if adjacency.layout == torch.sparse_csr else 0]


def _operator(
    edge_index: Tensor,
    edge_weight: Tensor | None,
    num_nodes: int,
    loop_weight: Tensor,
    loops_everywhere: bool,
    last_loop: bool,
    dtype: torch.dtype,
) -> Tensor:
    loops = Loops(loop_weight, loops_everywhere, last_loop)
    entries: Tensor = _form(edge_index, edge_weight, num_nodes, loops, dtype)[0]
    return entries.clone()  # compiled code may write into what an operator returns


def _shape(edge_index: Tensor, edge_weight: Any, num_nodes: int, *options: Any) -> Tensor:
    return edge_index.new_empty(edge_index.shape[1] + num_nodes, dtype=options[-1])


# Not torch.library.custom_op, which reads the paths of all loaded modules: a tenth of a second.
_library: Any = torch.library.Library("rawlsgcn", "FRAGMENT")  # type: ignore[no-untyped-call]
_library.define(
    "fair_weight(Tensor edge_index, Tensor? edge_weight, SymInt num_nodes, Tensor loop_weight, "
    "bool loops_everywhere, bool last_loop, ScalarType dtype) -> Tensor",
    tags=(torch.Tag.pt2_compliant_tag,),
)
_library.impl("fair_weight", _operator, "CompositeExplicitAutograd")
_library.impl("fair_weight", _shape, "Meta")
_library.impl("fair_weight", torch.library.fallthrough_kernel, "Autograd")  # has no gradient
