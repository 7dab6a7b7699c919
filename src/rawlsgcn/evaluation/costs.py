"""What training on a graph will cost on two CPU cores, estimated before it is done.

The work of an epoch is counted (rows that reach the loss, nonzeros of Â X in them) and divided by
rates fitted to the committed measurements: the training and scaling parts of
benchmarks/results-cpu.json, peak memories of results/defaults and results/advise. On the four
graphs of the one and the small rows of the other it lies within a factor of two; where half of
50,000 nodes or more are trained on, seconds are up to four times what it says. On other machines,
and where nothing was compiled, it is an order of magnitude.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from torch_geometric.data import Data

#: Fitted rates: floating-point operations a second of the dense and of the sparse product, seconds
#: an element of the hidden layer (ReLU, dropout, Adam), and seconds an epoch however small.
DENSE, SPARSE, ELEMENT, EPOCH = 180e9, 120e9, 4e-9, 0.3e-3
#: Seconds an edge to prepare (both forms of Â, Â X), and a node and run to judge.
PREPARE, JUDGE = 0.3e-6, 1e-6
#: Megabytes of Python and its packages; bytes an edge, a stored feature (dense, and sparse with
#: its place beside it; both kept twice), a hidden unit of a node and a class score.
BASE, EDGE_BYTES, HIDDEN_BYTES, SCORE_BYTES = 450.0, 40, 16, 8
DENSE_BYTES, SPARSE_BYTES = 8, 24
#: What features are counted as where the graph has none yet.
SUPPOSED_FEATURES = 100


@dataclass(frozen=True)
class Costs:
    """Seconds and megabytes of ``runs`` runs of one method of the GCN family.

    ``supposed`` says what was not known and is counted at its worst or by a guess.
    """

    seconds: float
    memory_mb: float
    runs: int
    epochs: int
    supposed: tuple[str, ...] = ()

    @classmethod
    def of(cls, graph: Data, *, runs: int = 5, epochs: int = 100, hidden: int = 64) -> Costs:
        nodes, arcs = int(graph.num_nodes or 0), int(graph.edge_index.shape[1])
        reached, supposed = _reached(graph, nodes), []
        if graph.get("train_mask") is None:
            supposed.append("every node counted as labelled for training")
        stored, width = _stored_features(graph, nodes)
        if graph.get("x") is None:
            supposed.append(f"{SUPPOSED_FEATURES} features a node")
        source, target = graph.edge_index.cpu().numpy()
        # A row of Â X has the features of a node and its neighbours; overlaps as if at random.
        gathered = stored + np.bincount(source, weights=stored[target], minlength=nodes)
        filled = width * -np.expm1(-gathered[reached] / max(width, 1))
        rows = int(reached.sum())
        product = min(rows * width / DENSE, float(filled.sum()) / SPARSE)
        epoch = EPOCH + 4 * hidden * product + ELEMENT * hidden * rows
        labels = graph.get("y")
        classes = 0 if labels is None else max(0, int(labels.max()) + 1)
        size = (
            EDGE_BYTES * arcs
            + (DENSE_BYTES if stored.sum() == nodes * width else SPARSE_BYTES) * float(stored.sum())
            + nodes * (HIDDEN_BYTES * hidden + SCORE_BYTES * classes * runs)
        )
        return cls(
            seconds=runs * epochs * epoch + PREPARE * arcs + JUDGE * nodes * runs,
            memory_mb=BASE + size / 2**20,
            runs=runs,
            epochs=epochs,
            supposed=tuple(supposed),
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"supposed": list(self.supposed)}


def _reached(graph: Data, nodes: int) -> np.ndarray:
    """The nodes whose first layer a training node's second depends on: it and its neighbours."""
    mask = graph.get("train_mask")
    if mask is None:
        return np.ones(nodes, dtype=bool)
    source, target = graph.edge_index.cpu().numpy()
    train = mask.cpu().numpy()
    reached: np.ndarray = train.copy()
    reached[target[train[source]]] = True
    return reached


def _stored_features(graph: Data, nodes: int) -> tuple[np.ndarray, int]:
    """Stored features of every node, and how many there could be."""
    x = graph.get("x")
    if x is None:
        return np.full(nodes, SUPPOSED_FEATURES), SUPPOSED_FEATURES
    if x.layout == torch.strided:
        return np.full(nodes, x.shape[1]), int(x.shape[1])
    return np.diff(x.crow_indices().cpu().numpy()), int(x.shape[1])
