"""The base of the fair layers: where the entries of B come from, and the forward pass."""

from __future__ import annotations

from functools import wraps
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn.aggr import MeanAggregation, SumAggregation
from torch_geometric.typing import SparseTensor
from torch_geometric.utils import is_sparse

from .._core.argument_checks import require_edges
from .._core.errors import RawlsError
from .balanced_weights import Loops, edges_of, fair_weight_of
from .fair_gradient import FairMatrix, attach
from .fair_linear import FairLinear, fair_class
from .fair_weights import FairWeightHolder, require_fair_weight


class FairLayer(FairWeightHolder):
    """The part of a fair layer that torch_geometric's parent class does not have.

    The entries of B come from the first of these that exists: the ``fair_weight`` argument of
    ``forward``, the tensor set by ``fair_weights``, the cache of a layer with ``cached=True``,
    the balanced form of the graph that the layer receives.
    """

    #: Whether features are aggregated before the Linear layer, and may be a pair.
    _aggregates_first = _bipartite = False
    #: A class attribute, so that a layer turned fair in place has it too.
    _cached_fair: FairMatrix | None = None
    lin: Any
    node_dim: int

    def __init_subclass__(cls, **options: Any) -> None:
        """Make every constructor raise the errors of ``make_fair``, and keep its signature."""
        super().__init_subclass__(**options)
        if not issubclass(cls, nn.Module):
            return
        parent = cls.__init__

        @wraps(parent)
        def checked(self: Any, *args: Any, **kwargs: Any) -> None:
            parent(self, *args, **kwargs)
            reason = self.refusal(self)
            if reason is not None:
                raise RawlsError(f"{type(self).__name__} cannot be made: {reason}.")
            self.prepare()

        cls.__init__ = checked  # type: ignore[method-assign]

    @staticmethod
    def refusal(layer: Any) -> str | None:
        """Return why a layer of the parent class has no fair form, or None."""
        if type(layer.aggr_module) not in (SumAggregation, MeanAggregation):
            return (
                f"its aggregation '{layer.aggr}' is not a product with a matrix, as sum and mean "
                "are"
            )
        return None

    def prepare(self) -> None:
        """Complete the conversion of a layer after its class was changed."""
        for linear, _ in self._learning():
            if not isinstance(linear, FairLinear):
                linear.__class__ = fair_class(type(linear))

    def forward(
        self,
        x: Any,
        edge_index: Any,
        edge_weight: Tensor | None = None,
        fair_weight: Tensor | None = None,
    ) -> Tensor:
        """Compute the layer.

        Args:
            x: Node features (nodes, inputs); of SAGEConv, GraphConv and GINConv also a pair of
                those of sources and of targets.
            x_0: Initial node features (nodes, channels), of GCN2Conv.
            edge_index: Edge indices (2, edges), or the transposed adjacency as a sparse matrix.
            edge_weight: Edge weights (edges,) where the layer takes them; by default all are one.
            size: The numbers of source and target nodes of a bipartite block.
            fair_weight: B's entries at the edges (edges,), or at the edges and on the diagonal
                (edges + targets,); by default the graph is balanced.

        Returns:
            Node features (targets, outputs).

        Raises:
            RawlsError: If the graph has no doubly stochastic form, or ``fair_weight`` is invalid.
        """
        return self._compute(x, edge_index, fair_weight, edge_weight=edge_weight)

    def _compute(self, x: Any, adjacency: Any, fair_weight: Tensor | None, **graph: Any) -> Tensor:
        """Compute the parent's layer of ``x`` and ``graph`` with the fair gradient."""
        learning, single = self._learning(), isinstance(x, Tensor)
        weights = [linear.weight for linear, _ in learning]
        if not self._learns(adjacency, *weights) or not (single or self._bipartite):
            return super().forward(x, adjacency, **graph)  # type: ignore[misc,no-any-return]
        self.prepare()  # a Linear layer may be new
        h, root = (x, x) if single else x
        size, sources = graph.get("size"), h.shape[self.node_dim]
        if root is not None:
            targets = root.shape[self.node_dim]
        elif size is not None and size[1] is not None:
            targets = size[1]
        else:
            targets = adjacency.size(0) if is_sparse(adjacency) else sources
        weighted, edge_weight = adjacency, graph.get("edge_weight")
        if isinstance(adjacency, SparseTensor) and "edge_weight" not in graph:
            weighted = adjacency.set_value(None, layout=None)  # as the parent's aggregation
        sizes, dtype = (sources, targets), weights[0].dtype
        matrix = self._fair_matrix(weighted, edge_weight, fair_weight, sizes, dtype)
        for linear, power in learning:
            linear.route = (h, matrix, power, self.node_dim) if self._aggregates_first else ()
        try:
            out: Tensor = super().forward(x, adjacency, **graph)  # type: ignore[misc]
        finally:
            for linear, _ in learning:
                linear.route = None
        if self._aggregates_first:
            return out
        powers = [power for _, power in learning]
        return attach(out, h, matrix, [each.weight for each, _ in learning], powers, self.node_dim)

    def _learning(self) -> list[tuple[Any, int]]:
        """Return the Linear layers that act on aggregated features, each with the power of B."""
        return [(self.lin, 1)]

    def _learns(self, adjacency: Any, *weights: Tensor) -> bool:
        """Whether any of these weights gets a gradient from this forward pass.

        It is called first and stores the weights of ``fair_weights`` for this ``adjacency``, also
        where nothing learns: with ``use_reentrant=True`` the first pass of checkpointing.
        """
        if not torch.compiler.is_compiling():
            self._store_fair_weight(adjacency)
        return torch.is_grad_enabled() and any(weight.requires_grad for weight in weights)

    def _fair_matrix(
        self,
        adjacency: Any,
        edge_weight: Tensor | None,
        fair_weight: Tensor | None,
        sizes: tuple[int, int],
        dtype: torch.dtype,
    ) -> FairMatrix:
        """Return B for a graph of ``sizes`` (sources, targets)."""
        if not is_sparse(adjacency):
            require_edges(adjacency, edge_weight, type(self).__name__)
        fair_weight = self._current_fair_weight(adjacency) if fair_weight is None else fair_weight
        if fair_weight is not None:
            require_fair_weight(fair_weight)
            return self._by_edges(adjacency, fair_weight.detach(), sizes)
        # Compiled code cannot hold a sparse matrix: it uses the cache of all layers instead.
        cached = getattr(self, "cached", False) and not torch.compiler.is_compiling()
        if cached and self._cached_fair is not None:
            return self._cached_fair
        sources, targets = sizes
        if sources != targets:
            raise RawlsError(
                f"{type(self).__name__} got a block of {sources} source and {targets} target "
                "nodes, which has no doubly stochastic form of its own: if it is a sample, pass "
                "the whole graph's entries as fair_weight, or use rawlsgcn.nn.fair_weights; if it "
                "is a relation between two types of nodes, use a layer that is not fair."
            )
        # Sums over hubs need the digits, whatever the type of the weights.
        dtype = torch.promote_types(dtype, torch.float32)
        entries, csr = fair_weight_of(adjacency, edge_weight, sources, self._loops(), dtype)
        matrix = FairMatrix(csr=csr, csr_transposed=csr)
        if csr is None:
            matrix = self._by_edges(adjacency, entries, sizes)
        if cached:
            self._cached_fair = matrix
        return matrix

    def _by_edges(self, adjacency: Any, fair_weight: Tensor, sizes: tuple[int, int]) -> FairMatrix:
        edges, targets = edges_of(adjacency, None)[0], sizes[1]
        count, loop = edges.shape[1], None
        if fair_weight.shape[0] == count + targets:
            fair_weight, loop = fair_weight[:count], fair_weight[count:]
        elif fair_weight.shape[0] != count:
            raise RawlsError(
                f"fair_weight has {fair_weight.shape[0]} entries, but {type(self).__name__} got "
                f"{count} edges and {targets} target nodes: pass one entry for each edge, or these "
                "followed by one for each target node's self-loop."
            )
        source, target = edges if self.flow == "source_to_target" else edges.flip(0)  # type: ignore[attr-defined]
        return FairMatrix(source, target, fair_weight, loop)

    def _loops(self) -> Loops:
        """Return the self-loops of the layer's matrix; of weight 1 if it has none."""
        # gcn_norm takes the last of a node's self-loops where it adds them; messages add up.
        last = getattr(self, "normalize", True) and getattr(self, "add_self_loops", False)
        return Loops(1.0, last=last)

    def __getstate__(self) -> dict[str, Any]:
        """Copy and pickle the layer without its caches: torch cannot copy a CSR matrix."""
        caches = ("_cached_fair", "_stored_fair_weights")
        return {name: value for name, value in self.__dict__.items() if name not in caches}

    def reset_parameters(self) -> None:
        """Draw new parameters and empty the caches."""
        super().reset_parameters()  # type: ignore[misc]
        self._cached_fair = None
