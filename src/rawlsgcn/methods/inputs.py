"""What a method learns from: a graph's tensors on one device, features divided by row sums.

The paper's authors divide features by the sums of their rows, unless some are negative.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .._core.sparse import aligned, csr_tensor
from ..graphs.node_features import has_negative_features, prefer_sparse, row_normalized
from ..graphs.splits import MASKS

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass(frozen=True)
class Inputs:
    """A graph for a method, on one device.

    Attributes:
        x: The features, of shape (nodes, features), dense or CSR.
        y: The labels, of shape (nodes,); -1 for a node without one.
        edge_index: The edges of shape (2, edges), in both directions, without self-loops.
        edge_weight: Their weights, or None.
        train: The numbers of the training nodes.
        val: The numbers of the validation nodes.
        test: The numbers of the test nodes.
        num_classes: The number of classes.
        train_weight: The weights of the training nodes in the loss, which sum to one; None for the
            mean.
        shared: What methods have computed from the graph for runs with other settings to use.
    """

    x: Tensor
    y: Tensor
    edge_index: Tensor
    edge_weight: Tensor | None
    train: Tensor
    val: Tensor
    test: Tensor
    num_classes: int
    train_weight: Tensor | None = None
    shared: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        graph: Data,
        *,
        normalize_features: bool = True,
        even_negative: bool = False,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        num_classes: int | None = None,
    ) -> Inputs:
        """Move a validated graph to a device.

        Args:
            graph: A graph from :func:`rawlsgcn.load` or :func:`rawlsgcn.read`.
            normalize_features: Whether to divide each row of X by its sum.
            even_negative: Divide the rows even where a feature is negative: a model that was
                trained on divided rows needs divided rows.
            device: The device.
            dtype: The type of the features and of everything that is computed from them.
            num_classes: The number of classes, for a graph without labels.

        Returns:
            The graph's tensors.
        """
        nodes = int(graph.num_nodes)
        y = graph.get("y")
        y = torch.full((nodes,), -1) if y is None else y
        train, val, test = (
            torch.zeros(nodes, dtype=torch.bool) if (mask := graph.get(name)) is None else mask
            for name in MASKS
        )
        x = prefer_sparse(graph.x).to(dtype)
        if normalize_features and (even_negative or not has_negative_features(x)):
            x = row_normalized(x)
        weight = graph.get("edge_weight")
        return cls(
            x=_aligned(x.to(device)),
            y=y.to(device),
            edge_index=graph.edge_index.to(device),
            edge_weight=None if weight is None else weight.to(device),
            train=train.nonzero().view(-1).to(device),
            val=val.nonzero().view(-1).to(device),
            test=test.nonzero().view(-1).to(device),
            num_classes=int(y.max()) + 1 if num_classes is None else num_classes,
        )

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return int(self.x.shape[0])

    @property
    def num_features(self) -> int:
        """The number of features of a node."""
        return int(self.x.shape[1])

    @property
    def device(self) -> torch.device:
        """The device of all tensors."""
        return self.x.device

    @property
    def dtype(self) -> torch.dtype:
        """The type of the features."""
        return self.x.dtype

    @cached_property
    def degree(self) -> Tensor:
        """deg(i) = ``|N(i)|``, without self-loops."""
        return torch.bincount(self.edge_index[0], minlength=self.num_nodes)


def _aligned(x: Tensor) -> Tensor:
    if x.layout != torch.sparse_csr:
        return aligned(x)
    return csr_tensor(x.crow_indices(), x.col_indices(), x.values(), x.shape)
