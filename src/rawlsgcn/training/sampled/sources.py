"""The graph of sampled training: in memory, or in shards on disk, of which pages are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from ..._core.errors import RawlsError
from ..._core.progress import ProgressCallback, no_progress
from ..._core.sparse import aligned
from ...balancing.distributed import balance_and_save
from ...graphs.graph_fingerprint import fingerprint
from ...graphs.node_features import has_negative_features, row_normalized
from ...graphs.shards.shard_graph import ShardNodes
from ...graphs.splits import MASKS, SPLIT_WORDS, evaluate_on
from ...methods._ops.receptive_field import select_rows
from ...sampling import Adjacency
from ...sampling.adjacency import take_concatenated

if TYPE_CHECKING:
    from ..._core.distributed_context import DistributedContext
    from ...graphs.shards.shards import Shards

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Source:
    """A graph to train on, in memory or in shards.

    Attributes:
        fingerprint: Distinguishes it from other graphs, splits, features and labels.
        x: The features, or a mapped array of them for each shard.
        normalize: Whether rows of X are divided by their sums: features in memory once, those of
            shards as they are read.
        masks: ``train_mask``, ``val_mask`` and ``test_mask``.
        scale: The vector of the doubly stochastic form, if it is known.
    """

    name: str
    fingerprint: str
    adjacency: Adjacency
    x: Tensor | Sequence[Array]
    normalize: bool
    y: Tensor
    masks: dict[str, Tensor]
    num_classes: int
    scale: Array | None = None
    class_names: list[str] | None = None

    @property
    def num_features(self) -> int:
        return int((self.x if isinstance(self.x, Tensor) else self.x[0]).shape[1])

    def evaluated_on(self, which: str) -> Source:
        """Return the graph with the nodes to evaluate as its test nodes; see ``--evaluate``."""
        chosen = evaluate_on(Data(y=self.y, **self.masks), which)
        return replace(self, masks={name: chosen[name] for name in MASKS})

    def balanced(
        self,
        shards: Shards,
        context: DistributedContext,
        memory: int,
        progress: ProgressCallback = no_progress,
    ) -> Source:
        """Return the graph with the scaling of its shards, which are balanced first if need be.

        Raises:
            RawlsError: If the scaling that is there is a rough one, or balancing fails.
        """
        shards.require_balanced()
        if self.scale is not None:
            return self
        balance_and_save(shards, context, memory=memory, progress=progress)
        scale = [part.scale for part in shards.open_all() if part.scale is not None]
        return replace(self, scale=np.concatenate(scale))

    def features(self, nodes: Array) -> Tensor:
        """Return the rows of X of some nodes, given by their numbers."""
        if not isinstance(self.x, Tensor):
            x = aligned(torch.from_numpy(take_concatenated(self.x, nodes)))
            return row_normalized(x) if self.normalize else x
        places = torch.from_numpy(nodes).long()
        sparse = self.x.layout == torch.sparse_csr
        return select_rows(self.x, places) if sparse else self.x[places]

    @classmethod
    def of(cls, graph: Data, *, normalize: bool = True) -> Source:
        """Use a validated graph; rows of X are only divided by their sums if none is negative."""
        weight = graph.get("edge_weight")
        normalize = normalize and not has_negative_features(graph.x)
        return cls(
            name=graph.get("name") or "graph",
            fingerprint=fingerprint(graph),
            adjacency=Adjacency.of_symmetric(graph.edge_index, weight, int(graph.num_nodes)),
            x=row_normalized(graph.x) if normalize else graph.x,
            normalize=normalize,
            y=graph.y,
            masks={name: graph[name] for name in MASKS},
            num_classes=int(graph.y.max()) + 1,
            class_names=graph.get("class_names"),
        )

    @classmethod
    def of_shards(cls, shards: Shards, *, normalize: bool = True, labeled: bool = True) -> Source:
        """Use shards with features, labels and a split; edges and features stay on disk.

        Labels and a split are needed if ``labeled``, as they are for training.

        Raises:
            RawlsError: If features, labels or a split are missing.
        """
        if labeled:
            shards.require_labels()
        parts = shards.open_all()
        x, scale = (
            [piece for part in parts if (piece := getattr(part, name)) is not None]
            for name in ("x", "scale")
        )
        if len(x) < len(parts):
            raise RawlsError(
                f"the shards in {shards.folder} have no features: only balancing can use them; "
                "write them from a graph with features, labels and a split"
            )
        y, masks = torch.empty(0), {}
        if labeled:
            nodes = ShardNodes.of(shards, parts)
            y = torch.from_numpy(nodes.y)
            for name, word in zip(MASKS, SPLIT_WORDS, strict=True):
                masks[name] = torch.zeros(shards.num_nodes, dtype=torch.bool)
                masks[name][nodes.nodes(word)] = True
        return cls(
            name=shards.name,
            fingerprint=shards.fingerprint,
            adjacency=Adjacency.of_shards(parts),
            x=x,
            normalize=normalize and not shards.negative_features,
            y=y,
            masks=masks,
            num_classes=shards.classes,
            scale=np.concatenate(scale) if len(scale) == len(parts) else None,
            class_names=shards.class_names,
        )
