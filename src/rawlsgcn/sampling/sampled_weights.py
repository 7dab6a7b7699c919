r"""The weights of sampled arcs: the entries of the whole graph's matrix, corrected for sampling.

Every normalization of A + I is two vectors, so that one of its entries needs no other: each of the
matrices that a graph convolution multiplies by is diag(l) (A + I) diag(r):

================== ================== ==================
normalization      l                  r
================== ================== ==================
renormalized       s = d̃^(-1/2)       s
row                s / t              s
column             s                  s / t
symmetric          s / √t             s / √t
doubly-stochastic  x                  x
================== ================== ==================

with d̃ the row sums of A + I, t = s ∘ (A + I) s the row sums of Â, and x the scaling of ``balance``.
A sampled batch therefore gets the exact entries of the whole graph's matrix. With the doubly
stochastic factors this holds for the matrix of the fair gradient too, ∂J/∂W = Hᵀ F̂ᵀ ∂J/∂E.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.transforms import BaseTransform

from .._core.argument_checks import require_edges, require_floating
from .._core.errors import RawlsError, unknown_name
from ..balancing import NORMALIZATIONS, balance
from ..balancing.matrix_input import read_matrix
from ..balancing.symmetry import inspect_matrix
from .adjacency import Adjacency
from .sampler import edges_of

if TYPE_CHECKING:
    from torch_geometric.data import Data


Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Factors:
    """Two vectors l and r such that l_v a_vu r_u is the matrix's entry of row v and column u.

    Attributes:
        left: l, float64 (nodes,).
        right: r, float64 (nodes,).
    """

    left: Array
    right: Array

    @classmethod
    def of(cls, adjacency: Adjacency, normalization: str, scale: Array | None = None) -> Factors:
        """Compute the factors of a graph.

        Args:
            adjacency: The graph.
            normalization: One of :data:`rawlsgcn.balancing.NORMALIZATIONS`.
            scale: The x of the doubly stochastic form, if it is known already.

        Returns:
            The factors.

        Raises:
            RawlsError: If there is no such normalization, or the graph cannot be balanced.
        """
        if normalization not in NORMALIZATIONS:
            raise unknown_name("normalization", normalization, NORMALIZATIONS)
        if normalization == "doubly-stochastic":
            scale = doubly_stochastic_scale(adjacency) if scale is None else scale
            return cls(scale, scale)
        s = 1 / np.sqrt(adjacency.row_sums())
        if normalization == "renormalized":
            return cls(s, s)
        t = s * adjacency.row_sums(s)
        if normalization == "row":
            return cls(s / t, s)
        if normalization == "column":
            return cls(s, s / t)
        return cls(s / np.sqrt(t), s / np.sqrt(t))


def doubly_stochastic_scale(adjacency: Adjacency) -> Array:
    """Compute x with diag(x) (A + I) diag(x) doubly stochastic, for a graph in memory."""
    from scipy.sparse import csr_array

    if len(adjacency.columns) > 1:
        raise RawlsError(
            "the shards are not balanced yet: run torchrun --nproc-per-node "
            f"{len(adjacency.columns)} -m rawlsgcn balance --shards FOLDER"
        )
    (column,) = adjacency.columns
    weights = [np.ones(len(column), np.uint8)] if adjacency.weights is None else adjacency.weights
    size = (adjacency.num_nodes, adjacency.num_nodes)
    matrix = csr_array((weights[0], column, adjacency.row_start), shape=size)
    scaling = balance(matrix, self_loops=True).usable("the graph")
    if scaling.scale is None:
        raise RawlsError(
            "the graph is not symmetric: make its edges run both ways before it is balanced"
        )
    return np.asarray(scaling.scale.numpy())


class SampledWeights(BaseTransform):  # type: ignore[misc]
    r"""Add self-loops, ``edge_weight`` and ``fair_weight`` to the batches of a ``NodeLoader``.

    .. math:: ŵ_{vu} = (d_v / c_v)\, l_v a_{vu} r_u, \qquad ŵ_{vv} = l_v r_v,

    where c_v = min(k, d_v) of the d_v arcs into v were sampled, each with probability c_v / d_v. A
    sampled row has the whole row as its expectation. The batch may come from any loader that
    samples without replacement along the direction of the arcs, :class:`NeighborSampler` as well as
    ``NeighborLoader``. Use layers with ``normalize=False`` and pass ``fair_weight`` to the fair
    ones::

        with fair_weights(model, batch.fair_weight):
            out = model(batch.x, batch.edge_index, batch.edge_weight)[: batch.batch_size]

    Args:
        data: The whole graph, symmetric and without self-loops.
        normalization: The matrix of the forward pass, one of
            :data:`rawlsgcn.balancing.NORMALIZATIONS`; ``"doubly-stochastic"`` is RawlsGCN-Graph.
        fair: Whether to add ``fair_weight``, the weights of Â_DS.
        dtype: The type of the weights.

    Raises:
        RawlsError: If the graph has self-loops, is not symmetric or has invalid weights.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from torch_geometric.loader import NodeLoader
        >>> from rawlsgcn.sampling import NeighborSampler, SampledWeights
        >>> path = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
        >>> loader = NodeLoader(
        ...     path, NeighborSampler(path, [1]), torch.tensor([0]), transform=SampledWeights(path)
        ... )
        >>> batch = next(iter(loader))  # one arc from node 1 to node 0, and two self-loops
        >>> batch.edge_weight
        tensor([0.4082, 0.5000, 0.3333])
    """

    def __init__(
        self,
        data: Data,
        normalization: str = "renormalized",
        *,
        fair: bool = True,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        edge_index, weight = edges_of(data, "SampledWeights"), data.get("edge_weight")
        require_floating(dtype, "SampledWeights")
        require_edges(edge_index, weight, "SampledWeights")
        if bool((edge_index[0] == edge_index[1]).any()):
            raise RawlsError(
                "the graph has self-loops: pass the graph as it was before a transform added them"
            )
        adjacency = Adjacency.of(edge_index, weight, int(data.num_nodes))
        matrix, _ = read_matrix(edge_index, weight, adjacency.num_nodes)
        if not inspect_matrix(matrix)[1]:
            raise RawlsError(
                "the graph is not symmetric: make its edges run both ways, with the same weight"
            )
        self._degree = torch.from_numpy(adjacency.degree)
        self._weighted, self._dtype = weight is not None, dtype
        kinds = {"edge_weight": normalization}
        if fair:
            kinds["fair_weight"] = "doubly-stochastic"
        factors = {kind: Factors.of(adjacency, kind) for kind in kinds.values()}
        #: The vectors of each of the weights that a batch gets.
        self._factors = {
            name: (torch.from_numpy(factors[kind].left), torch.from_numpy(factors[kind].right))
            for name, kind in kinds.items()
        }

    def forward(self, batch: Data) -> Data:
        """Add self-loops and weights to a batch.

        Args:
            batch: A batch of a ``NodeLoader``, with ``n_id``.

        Returns:
            The same batch.

        Raises:
            RawlsError: If the batch has no ``n_id`` or is not of the graph of this transform.
        """
        edge_index, node = edges_of(batch, "SampledWeights"), batch.get("n_id")
        if node is None:
            raise RawlsError("the batch has no n_id: SampledWeights is for batches of a NodeLoader")
        require_edges(edge_index, batch.get("edge_weight"), "SampledWeights")
        if self._weighted and batch.get("edge_weight") is None:
            raise RawlsError("the batch has no edge_weight, but its graph has weights")
        target = edge_index[1]
        if len(node) and int(node.max()) >= len(self._degree):
            raise RawlsError("the batch is of another graph than the one of SampledWeights")
        drawn = torch.bincount(target, minlength=len(node))
        share = self._degree[node].double() / drawn.clamp_min(1)
        arcs = share[target]
        if self._weighted:
            arcs = arcs * batch.edge_weight.double()
        loops = torch.arange(len(node))
        batch.edge_index = torch.cat([batch.edge_index, loops.expand(2, -1)], 1)
        weights = torch.cat([arcs, torch.ones(len(node), dtype=torch.float64)])
        ends = node[batch.edge_index]
        for name, (left, right) in self._factors.items():
            batch[name] = (left[ends[1]] * right[ends[0]] * weights).to(self._dtype)
        return batch
