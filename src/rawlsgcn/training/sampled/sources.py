"""What sampled training reads: a graph in memory, or shards on disk of which pages are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..._core.errors import RawlsError
from ..._core.sparse import aligned
from ...graphs.features import has_negative_features
from ...graphs.fingerprint import fingerprint
from ...graphs.splits import MASKS
from ...methods._ops.receptive_field import select_rows
from ...methods.inputs import row_normalized
from ...sampling import Adjacency
from ...sampling.adjacency import take_concatenated

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from ...graphs.shards import Shards

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Source:
    """A graph to train on. ``mark`` tells its like apart; ``scale`` is x where it is known.

    With ``normalize`` the rows of X are divided by their sums as they are read; features in memory
    are divided once.
    """

    name: str
    mark: str
    adjacency: Adjacency
    x: Tensor | Sequence[Array]
    normalize: bool
    y: Tensor
    masks: dict[str, Tensor]
    num_classes: int
    scale: Array | None = None

    @property
    def num_features(self) -> int:
        return int((self.x if isinstance(self.x, Tensor) else self.x[0]).shape[1])

    def features(self, nodes: Array) -> Tensor:
        """The rows of X of these nodes."""
        if not isinstance(self.x, Tensor):
            x = aligned(torch.from_numpy(take_concatenated(self.x, nodes)))
            return row_normalized(x) if self.normalize else x
        places = torch.from_numpy(nodes).long()
        sparse = self.x.layout == torch.sparse_csr
        return select_rows(self.x, places) if sparse else self.x[places]

    @classmethod
    def of(cls, graph: Data, *, normalize: bool = True) -> Source:
        """A checked graph, symmetric and without self-loops."""
        weight = graph.get("edge_weight")
        adjacency = Adjacency.of_symmetric(graph.edge_index, weight, int(graph.num_nodes))
        normalize = normalize and not has_negative_features(graph.x)
        return cls(
            name=graph.get("name") or "graph",
            mark=fingerprint(graph),
            adjacency=adjacency,
            x=row_normalized(graph.x) if normalize else graph.x,
            normalize=normalize,
            y=graph.y,
            masks={name: graph[name] for name in MASKS},
            num_classes=int(graph.y.max()) + 1,
        )

    @classmethod
    def of_shards(cls, shards: Shards, *, normalize: bool = True) -> Source:
        """Shards with features and labels; arcs and features stay on disk."""
        parts = shards.open_all()
        x, y, split, scale = (
            [piece for part in parts if (piece := getattr(part, name)) is not None]
            for name in ("x", "y", "split", "scale")
        )
        for name, pieces in (("features", x), ("labels", y), ("split", split)):
            if len(pieces) < len(parts):
                raise RawlsError(
                    f"the shards in {shards.folder} have no {name}: only balancing can use them; "
                    "write them from a graph with features, labels and a split"
                )
        which = torch.from_numpy(np.concatenate(split))
        masks = {name: which == number for number, name in enumerate(MASKS, start=1)}
        for name, mask in masks.items():
            if not bool(mask.any()):
                raise RawlsError(f"the shards in {shards.folder} have no node in their {name}")
        return cls(
            name=shards.name,
            mark=shards.graph,
            adjacency=Adjacency.of_shards(parts),
            x=x,
            normalize=normalize and not shards.negative,
            y=torch.from_numpy(np.concatenate(y)),
            masks=masks,
            num_classes=shards.classes,
            scale=np.concatenate(scale) if len(scale) == len(parts) else None,
        )
