r"""The weights of sampled arcs: the whole graph's entries, corrected for the fan-out.

Of the d_v arcs into v the sampler keeps c_v = min(k, d_v), each with the chance c_v / d_v. Weighed

.. math:: ŵ_{vu} = (d_v / c_v)\, l_v a_{vu} r_u, \qquad ŵ_{vv} = l_v r_v \text{ (always kept)},

a sampled row has the whole row as its expectation. With the doubly stochastic factors this holds
for the matrix of the fair gradient too, ∂J/∂W = Hᵀ F̂ᵀ ∂J/∂E.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch_geometric.transforms import BaseTransform

from .._core.argument_checks import require_edges, require_floating
from .._core.errors import RawlsError
from ..balancing.matrix_input import read_matrix
from ..balancing.symmetry import inspect_matrix
from .adjacency import Adjacency
from .normalization_factors import Factors
from .sampler import edges_of

if TYPE_CHECKING:
    from torch_geometric.data import Data


class SampledWeights(BaseTransform):  # type: ignore[misc]
    """For ``NodeLoader(transform=…)``: loops, ``edge_weight`` and ``fair_weight`` for a batch.

    Works on what any loader draws without replacement along the arcs' direction, ours as well as
    ``NeighborLoader``. Use layers that do not normalise (``normalize=False``) and give the fair
    ones ``fair_weight``::

        with fair_weights(model, batch.fair_weight):
            out = model(batch.x, batch.edge_index, batch.edge_weight)[: batch.batch_size]

    Args:
        data: The whole graph, symmetric and without self-loops.
        form: The matrix of the forward pass, ``"renormalised"`` (Â) or one of the normalisations;
            ``"doubly-stochastic"`` is RawlsGCN-Graph.
        fair: Give ``fair_weight`` too, the weights of Â_DS.
        dtype: The type of the weights.
    """

    def __init__(
        self,
        data: Data,
        form: str = "renormalised",
        *,
        fair: bool = True,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        edge_index, weight = edges_of(data, "SampledWeights"), data.get("edge_weight")
        require_floating(dtype, "SampledWeights")
        require_edges(edge_index, weight, "SampledWeights")
        if bool((edge_index[0] == edge_index[1]).any()):
            raise RawlsError(
                "the graph has self-loops: give the graph as it was before a transform added them"
            )
        if weight is not None and not bool((weight >= 0).logical_and(weight.isfinite()).all()):
            raise RawlsError("the graph has edge weights that are negative or not finite numbers")
        if not fair and form != "doubly-stochastic":  # balancing looks for itself
            matrix, _ = read_matrix(edge_index, weight, int(data.num_nodes))
            if not inspect_matrix(matrix)[1]:
                raise RawlsError(
                    "the graph is not symmetric: make its edges run both ways, with the same weight"
                )
        adjacency = Adjacency.of(edge_index, weight, int(data.num_nodes))
        self._degree = torch.from_numpy(adjacency.degree)
        self._weighted, self._dtype = weight is not None, dtype
        self._forward = _tensors(Factors.of(adjacency, form))
        self._fair: tuple[Tensor, Tensor] | None = None
        if fair and form == "doubly-stochastic":
            self._fair = self._forward
        elif fair:
            self._fair = _tensors(Factors.of(adjacency, "doubly-stochastic"))

    def forward(self, batch: Data) -> Data:
        edge_index, node = edges_of(batch, "SampledWeights"), batch.get("n_id")
        if node is None:
            raise RawlsError("the batch has no n_id: SampledWeights is for what a NodeLoader gives")
        require_edges(edge_index, batch.get("edge_weight"), "SampledWeights")
        if self._weighted and batch.get("edge_weight") is None:
            raise RawlsError("the batch has no edge_weight, but its graph had when it was given")
        target = edge_index[1]
        if len(node) and int(node.max()) >= len(self._degree):
            raise RawlsError("the batch is of another graph than SampledWeights was made for")
        drawn = torch.bincount(target, minlength=len(node))
        share = self._degree[node].double() / drawn.clamp_min(1)
        arcs = share[target]
        if self._weighted:
            arcs = arcs * batch.edge_weight.double()
        loops = torch.arange(len(node))
        batch.edge_index = torch.cat([batch.edge_index, loops.expand(2, -1)], 1)
        weights = torch.cat([arcs, torch.ones(len(node), dtype=torch.float64)])
        ends = node[batch.edge_index]
        batch.edge_weight = self._entries(self._forward, ends, weights)
        if self._fair is not None:
            batch.fair_weight = self._entries(self._fair, ends, weights)
        return batch

    def _entries(self, factors: tuple[Tensor, Tensor], ends: Tensor, weights: Tensor) -> Tensor:
        left, right = factors
        return (left[ends[1]] * right[ends[0]] * weights).to(self._dtype)


def _tensors(factors: Factors) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(factors.left), torch.from_numpy(factors.right)
