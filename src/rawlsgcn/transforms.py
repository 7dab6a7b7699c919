"""Transforms of the data, for any model: the doubly stochastic form, and edges for low degrees."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.datapipes import functional_transform
from torch_geometric.transforms import BaseTransform
from torch_geometric.typing import SparseTensor
from torch_geometric.utils import is_sparse, to_edge_index
from torch_geometric.utils.num_nodes import maybe_num_nodes

from ._core.argument_checks import require_edges, require_floating, require_nodes
from ._core.errors import RawlsError
from ._core.threads import fork_safe_threads
from .graphs.lifting.lifted_graph import lift_low_degrees
from .graphs.tf_idf import tf_idf
from .nn.balanced_weights import Loops, balanced_entries

__all__ = ["DoublyStochastic", "LiftLowDegrees", "doubly_stochastic_norm"]

_FLOWS = ("source_to_target", "target_to_source")
_FEATURES = ("tf-idf", "raw")


@fork_safe_threads()
def doubly_stochastic_norm(
    edge_index: Any,
    edge_weight: Tensor | None = None,
    num_nodes: int | None = None,
    add_self_loops: bool = True,
    flow: str = "source_to_target",
    dtype: torch.dtype | None = None,
) -> Any:
    r"""Compute the doubly stochastic form of a graph, like torch_geometric's ``gcn_norm``.

    .. math:: \hat A_{DS} = \operatorname{diag}(x)\, (A + I) \operatorname{diag}(x),

    in which every row and every column sums to one. It is the same matrix for A + I as for its
    renormalized form Â (:mod:`rawlsgcn.balancing`). A directed graph has two vectors instead of x.

    Args:
        edge_index: Edge indices (2, E), or a square sparse matrix (``torch.sparse_coo``,
            ``torch.sparse_csr``, or a ``SparseTensor`` where torch_sparse is installed).
        edge_weight: Weights (E,) of the edges; by default all are one. Repeated edges add up.
        num_nodes: Number of nodes of an edge index; by default its largest node plus one.
        add_self_loops: Add a self-loop of weight 1 to each node without one; of several self-loops
            of a node the last is kept, as in ``gcn_norm``. Otherwise several add up.
        flow: As in ``gcn_norm``. Both rows and columns sum to one, so it changes nothing.
        dtype: Type of the weights; by default that of ``edge_weight``, or torch's default.

    Returns:
        The pair (edge index, edge weight), the edges in their order, self-loops last; for a
        ``torch.sparse`` matrix the pair (matrix, None), for a ``SparseTensor`` the matrix.

    Raises:
        RawlsError: If the graph has no such form; the message names the nodes.

    Example:
        >>> import torch
        >>> from rawlsgcn.transforms import doubly_stochastic_norm
        >>> edge_index, edge_weight = doubly_stochastic_norm(torch.tensor([[0, 1], [1, 0]]))
        >>> edge_weight
        tensor([0.5000, 0.5000, 0.5000, 0.5000])
    """
    if flow not in _FLOWS:
        raise RawlsError(f"flow must be {' or '.join(map(repr, _FLOWS))}, not {flow!r}.")
    matrix, weight, _ = _balanced(edge_index, edge_weight, num_nodes, add_self_loops, dtype)
    return matrix if isinstance(matrix, SparseTensor) else (matrix, weight)


@functional_transform("doubly_stochastic")
class DoublyStochastic(BaseTransform):  # type: ignore[misc]
    r"""Replace the edge weights by those of the doubly stochastic form (RawlsGCN-Graph).

    .. math:: \hat A_{DS} = \operatorname{diag}(x)\, (A + I) \operatorname{diag}(x)

    (functional name: :obj:`doubly_stochastic`). Like torch_geometric's ``GCNNorm`` it rewrites
    ``edge_index`` and ``edge_weight``, self-loops included, or ``adj_t``, for any layer that takes
    edge weights. A ``GCNConv`` may keep its ``normalize=True`` on the whole graph, where it changes
    nothing; on sampled parts of it use ``normalize=False``.

    The vector x is stored as ``data.scaling`` (nodes,), or (nodes, 2) with the scalings of sources
    and of targets for a directed graph. Loaders slice it with the nodes, so the entry of an edge
    with weight a is exactly ``scaling[i] * a * scaling[j]`` on any sampled part.

    Args:
        add_self_loops: Add a self-loop of weight 1 to each node without one.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from rawlsgcn.transforms import DoublyStochastic
        >>> path = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
        >>> data = DoublyStochastic()(path)
        >>> data.edge_weight
        tensor([0.3820, 0.3820, 0.3820, 0.3820, 0.6180, 0.2361, 0.6180])
        >>> data.scaling
        tensor([0.7862, 0.4859, 0.7862])
    """

    def __init__(self, add_self_loops: bool = True) -> None:
        self.add_self_loops = add_self_loops

    @fork_safe_threads()
    def forward(self, data: Data) -> Data:
        """Balance a graph in place.

        Args:
            data: A homogeneous graph with ``edge_index`` or ``adj_t``.

        Returns:
            The same graph.

        Raises:
            RawlsError: If the graph is heterogeneous, has attributes of edges that self-loops would
                lack, or has no doubly stochastic form.
        """
        if not isinstance(data, Data):
            raise RawlsError(
                f"DoublyStochastic takes a graph of one kind of nodes and edges, not a "
                f"{type(data).__name__}: its matrix is not square, so it has no doubly stochastic "
                "form; use data.to_homogeneous() first."
            )
        loops = self.add_self_loops
        # The labels of link prediction belong to pairs of nodes of their own.
        known = {"edge_index", "edge_weight", "adj_t", "edge_label", "edge_label_index"}
        for name in data.edge_attrs():
            if name not in known and data[name] is not None:
                raise RawlsError(
                    f"DoublyStochastic cannot say what {name} of a self-loop should be: give "
                    f"weights as edge_weight, and remove {name} or set it after the transform."
                )
        if "edge_index" in data:
            data.edge_index, data.edge_weight, data.scaling = _balanced(
                data.edge_index, data.edge_weight, data.num_nodes, loops, None
            )
        elif "adj_t" in data:
            data.adj_t, _, data.scaling = _balanced(data.adj_t, None, None, loops, None)
        else:
            raise RawlsError("DoublyStochastic needs a graph with edge_index or adj_t.")
        return data

    def __repr__(self) -> str:
        return f"{type(self).__name__}(add_self_loops={self.add_self_loops})"


@functional_transform("lift_low_degrees")
class LiftLowDegrees(BaseTransform):  # type: ignore[misc]
    """Give nodes with few neighbors edges to the nodes with the nearest features.

    (functional name: :obj:`lift_low_degrees`). Every node with fewer than ``min_degree`` neighbors
    gets edges in both directions to its nearest other nodes by the cosine of their features, as
    many as it lacks, where the cosine is positive (:func:`rawlsgcn.graphs.lift_low_degrees`). Other
    nodes get only the edges that such nodes choose. Given edges are kept; ``edge_weight`` and
    ``edge_attr``, if there are any, are 1 for added edges. ``data.lift_note`` says in one sentence
    how many edges were added and by which search.

    Args:
        min_degree: Number of neighbors that every node should have.
        features: 'tf-idf' compares 1[x > 0] · log(n / number of nodes with the feature), or x
            itself where a feature is negative or, of the nodes and features that are not all zero,
            more than half of the entries are positive; features that are the same for all nodes add
            no edges. 'raw' always compares x.
        search: 'exact', 'approximate' (needs ``pip install rawlsgcn[ann]``) or 'auto': exact up to
            100,000 nodes.

    Raises:
        RawlsError: If an argument is invalid.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from rawlsgcn.transforms import LiftLowDegrees
        >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
        >>> data = LiftLowDegrees()(Data(x=x, edge_index=torch.tensor([[0, 1], [1, 0]])))
        >>> data.edge_index
        tensor([[0, 0, 1, 2],
                [1, 2, 0, 0]])
    """

    def __init__(
        self, min_degree: int = 10, features: str = "tf-idf", search: str = "auto"
    ) -> None:
        if features not in _FEATURES:
            raise RawlsError(
                f"features must be {' or '.join(map(repr, _FEATURES))}, not {features!r}"
            )
        # Invalid arguments raise an error here, not at the first graph.
        lift_low_degrees(
            torch.empty(2, 0, dtype=torch.long),
            torch.empty(0, 1),
            min_degree=min_degree,
            search="exact" if search == "approximate" else search,
        )
        self.min_degree, self.features, self.search = min_degree, features, search

    def forward(self, data: Data) -> Data:
        """Add edges to a graph in place.

        Args:
            data: A homogeneous graph with ``edge_index`` and features ``x``, dense or sparse.

        Returns:
            The same graph.

        Raises:
            RawlsError: If the graph is heterogeneous, balanced already, has no ``edge_index`` or no
                ``x``, or has attributes of edges that added edges would lack.
        """
        if not isinstance(data, Data):
            raise RawlsError(
                f"LiftLowDegrees takes a graph of one kind of nodes and edges, not a "
                f"{type(data).__name__}, whose nodes have features of several kinds; use "
                "data.to_homogeneous() first."
            )
        if data.get("edge_index") is None:
            raise RawlsError(
                "LiftLowDegrees needs a graph with edge_index: apply it before ToSparseTensor."
            )
        if data.get("scaling") is not None:
            raise RawlsError(
                "this graph is balanced already, and edges that are added to it would not be: "
                "apply LiftLowDegrees before DoublyStochastic."
            )
        if not isinstance(data.x, Tensor) or data.x.dim() != 2:
            raise RawlsError(
                "LiftLowDegrees needs a graph with features x of shape (nodes, features), whose "
                "cosine says which nodes are near each other."
            )
        edges = data.edge_index.shape[1]
        for name in set(data.edge_attrs()) | {"edge_weight", "edge_attr"} & set(data.keys()):
            plain = name in ("edge_weight", "edge_attr") and data[name] is not None
            if name != "edge_index" and not (plain and data[name].shape in ((edges,), (edges, 1))):
                raise RawlsError(
                    f"LiftLowDegrees cannot say what {name} of an added edge should be: only "
                    "edge_weight and edge_attr with one number for each edge are extended, by 1; "
                    f"remove {name} or set it after the transform."
                )
        x = data.x if data.x.layout == torch.strided else data.x.to_sparse(layout=torch.sparse_csr)
        # Instead of weights the given edges carry their number plus two: it says where each one is
        # after sorting, and which ones, of weight one, were added.
        lifted = lift_low_degrees(
            data.edge_index,
            tf_idf(x) if self.features == "tf-idf" else x,
            edge_weight=torch.arange(2, edges + 2, device=data.edge_index.device),
            min_degree=self.min_degree,
            search=self.search,
        )
        assert lifted.edge_weight is not None
        origin = lifted.edge_weight - 2
        for name in ("edge_weight", "edge_attr"):
            if data.get(name) is not None:
                value = data[name]
                data[name] = torch.cat([value, value.new_ones(1, *value.shape[1:])])[origin]
        data.edge_index, data.lift_note = lifted.edge_index, lifted.note
        return data

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(min_degree={self.min_degree}, features={self.features!r}, "
            f"search={self.search!r})"
        )


def _balanced(
    adjacency: Any,
    edge_weight: Tensor | None,
    num_nodes: int | None,
    add_self_loops: bool,
    dtype: torch.dtype | None,
) -> tuple[Any, Tensor | None, Tensor]:
    """Return the balanced graph in its own format, its weights, and the scaling."""
    edges, weight = adjacency, edge_weight
    if is_sparse(adjacency):
        size = tuple(adjacency.size())
        if len(size) != 2 or size[0] != size[1]:
            raise RawlsError(f"only a square matrix can be balanced, not {size}.")
        edges, weight = to_edge_index(adjacency)
        num_nodes = size[0]
    require_edges(edges, weight, "the doubly stochastic form")
    num_nodes = maybe_num_nodes(edges, num_nodes)
    require_nodes(edges, num_nodes, "the doubly stochastic form")
    if dtype is None:
        floating = weight is not None and weight.is_floating_point()
        dtype = weight.dtype if weight is not None and floating else torch.get_default_dtype()
    require_floating(dtype, "the doubly stochastic form")
    loops = Loops(1.0 if add_self_loops else 0.0, last=add_self_loops)
    edge, loop, balanced = balanced_entries(edges, weight, num_nodes, loops, dtype)
    scaling = torch.stack([balanced.row_scale, balanced.col_scale], 1).to(dtype)
    scaling = scaling if balanced.scale is None else scaling[:, 0].contiguous()
    # Self-loops go last, each once; where none is added, only the nodes that had one keep theirs.
    node = loop.nonzero().squeeze(1)
    others = edges[0] != edges[1]
    edges = torch.cat([edges[:, others], torch.stack([node, node])], 1)
    weight = torch.cat([edge[others], loop[node]])
    if not is_sparse(adjacency):
        return edges, weight, scaling
    if isinstance(adjacency, SparseTensor):
        return SparseTensor.from_edge_index(edges, weight, tuple(adjacency.size())), None, scaling
    matrix = torch.sparse_coo_tensor(edges, weight, adjacency.shape).coalesce()
    return matrix.to_sparse(layout=adjacency.layout), None, scaling
