"""The base classes of the fair layers: where the entries of B come from, and the forward passes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn.aggr import MeanAggregation, SumAggregation
from torch_geometric.nn.dense.linear import is_uninitialized_parameter
from torch_geometric.typing import Size, SparseTensor
from torch_geometric.utils import is_sparse

from .._core.argument_checks import require_edges
from .._core.errors import RawlsError
from .balanced_weights import Loops, edges_of, fair_weight_of
from .fair_gradient import FairMatrix, attach
from .fair_weights import FairWeightHolder, require_fair_weight


class FairLayer(FairWeightHolder):
    """The part of a fair layer that torch_geometric's parent class does not have.

    The entries of B come from the first of these that exists: the ``fair_weight`` argument of
    ``forward``, the tensor set by ``fair_weights``, the cache of a layer with ``cached=True``,
    the balanced form of the graph that the layer receives.
    """

    #: A class attribute, so that a layer turned fair in place has it too.
    _cached_fair: FairMatrix | None = None

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


class HomogeneousFairLayer(FairLayer):
    """A fair layer between nodes of one kind, with weights of the edges; ``lin`` has the weight."""

    lin: Any
    node_dim: int
    #: Compute the layer of (x, edge_index, edge_weight) with the fair gradient by a FairMatrix.
    _fair_forward: Callable[..., Tensor]

    def forward(
        self,
        x: Tensor,
        edge_index: Any,
        edge_weight: Tensor | None = None,
        fair_weight: Tensor | None = None,
    ) -> Tensor:
        """Compute the layer.

        Args:
            x: Node features (nodes, inputs).
            edge_index: Edge indices (2, edges), or the transposed adjacency as a sparse matrix.
            edge_weight: Edge weights (edges,); by default all are one.
            fair_weight: B's entries at the edges (edges,), or at the edges and on the diagonal
                (edges + nodes,); by default the graph is balanced.

        Returns:
            Node features (nodes, outputs).

        Raises:
            RawlsError: If the graph has no doubly stochastic form, or ``fair_weight`` is invalid.
        """
        learned = self._learned(x)
        if isinstance(x, (tuple, list)) or not self._learns(edge_index, *learned):
            return super().forward(x, edge_index, edge_weight)  # type: ignore[misc,no-any-return]
        nodes = x.shape[self.node_dim]
        sizes, dtype = (nodes, nodes), learned[0].dtype
        matrix = self._fair_matrix(edge_index, edge_weight, fair_weight, sizes, dtype)
        return self._fair_forward(x, edge_index, edge_weight, matrix)

    def _learned(self, x: Tensor) -> list[Tensor]:
        """Return what gets the fair gradient: the weight, unless a layer says otherwise."""
        return [self.lin.weight]


class BipartiteFairLayer(FairLayer):
    """A fair layer that aggregates features, applies a Linear layer, and adds the node itself."""

    node_dim: int
    #: Return the Linear layer that acts on the aggregated features.
    _linear: Callable[[], Any]
    #: Compute the layer of (aggregated features, x, root) with the fair gradient by a FairMatrix.
    _fair_forward: Callable[..., Tensor]

    def forward(
        self, x: Any, edge_index: Any, size: Size = None, fair_weight: Tensor | None = None
    ) -> Tensor:
        """Compute the layer.

        Args:
            x: Node features (nodes, inputs), or a pair of those of sources and of targets.
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
        return self._compute(x, edge_index, size, fair_weight)

    def _compute(
        self, x: Any, edge_index: Any, size: Size, fair_weight: Tensor | None, **weights: Any
    ) -> Tensor:
        """Compute the layer; ``weights`` is ``edge_weight`` where the layer takes such weights."""
        linear, name = self._linear(), type(self).__name__
        if not self._learns(edge_index, linear.weight):
            return super().forward(x, edge_index, size=size, **weights)  # type: ignore[misc,no-any-return]
        if not is_sparse(edge_index):
            require_edges(edge_index, weights.get("edge_weight"), name)
        x, root = (x, x) if isinstance(x, Tensor) else x
        dtype = ready(linear, x).dtype
        out = self.propagate(edge_index, x=(x, root), size=size, **weights)  # type: ignore[attr-defined]
        sizes = (x.shape[self.node_dim], out.shape[self.node_dim])
        if isinstance(edge_index, SparseTensor) and not weights:
            edge_index = edge_index.set_value(None, layout=None)  # as the parent's aggregation
        edge_weight = weights.get("edge_weight")
        matrix = self._fair_matrix(edge_index, edge_weight, fair_weight, sizes, dtype)
        return self._fair_forward(out, x, root, matrix)


def fair_linear(
    linear: Any, inputs: Tensor, h: Tensor, matrix: FairMatrix, power: int, node_dim: int
) -> Tensor:
    """Apply a Linear layer to ``inputs``, P^k h; its weight learns by the k-th power of B."""
    out = functional.linear(inputs, linear.weight.detach(), linear.bias)
    return attach(out, h, matrix, [linear.weight], [power], node_dim)


def ready(linear: Any, inputs: Tensor) -> Tensor:
    """Return the weight of a Linear layer, initialized first if its size was not known."""
    if is_uninitialized_parameter(linear.weight):
        linear.initialize_parameters(linear, (inputs,))
    weight: Tensor = linear.weight
    return weight
