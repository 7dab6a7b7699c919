"""What a graph shows before anything is trained on it: who has few neighbours, and what they say.

Two figures bear on degree bias. By Theorem 1 a node weighs in the gradient of a GCN by its degree
in Â, the sum of its row: the ratio of these weights between well and badly connected nodes is the
unevenness that the RawlsGCN methods remove. And neighbours only help where they are alike:
homophily, by degree where labels are known.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

if TYPE_CHECKING:
    from torch_geometric.data import Data

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: 'Few neighbours' in the share of low-degree nodes.
FEW = 3


@dataclass(frozen=True)
class Band:
    """The nodes of degrees ``low`` to ``high``.

    ``weight`` is their mean degree in Â; ``homophily`` the mean share of a node's labelled
    neighbours that have its label, NaN where nothing is known.
    """

    low: int
    high: int
    nodes: int
    weight: float
    homophily: float


@dataclass(frozen=True)
class Portrait:
    """The figures of a graph that bear on degree bias. What is not known is NaN.

    Attributes:
        edges: Pairs of neighbours.
        few: Share of the nodes with at most three neighbours.
        low: The quarter of lowest degrees (at or under the 25th percentile).
        high: The quarter of highest degrees (at or over the 75th).
        weight_ratio: Mean degree in Â of the high quarter over that of the low quarter.
        homophily: Share of the edges between labelled nodes that join two of one class.
        adjusted_homophily: The same, less what shuffled labels would give and scaled so that 1 is
            the most there can be: (h - Σ q_c²) / (1 - Σ q_c²), q_c the share of edge ends in
            class c (Platonov et al., 2023).
        bands: Degrees 0, 1, 2-3, 4-7, 8-15 and so on, those that are there.
    """

    nodes: int
    edges: int
    features: int
    classes: int
    isolated: int
    components: int
    largest_component: float
    mean_degree: float
    median_degree: float
    max_degree: int
    distinct_degrees: int
    few: float
    low: Band
    high: Band
    weight_ratio: float
    homophily: float
    adjusted_homophily: float
    bands: tuple[Band, ...]

    @classmethod
    def of(cls, graph: Data) -> Portrait:
        """The portrait of a graph that came from ``load``, ``read``, ``synthetic`` or ``check``."""
        degree, weight = degrees_in_laplacian(graph)
        source, target = graph.edge_index.cpu().numpy()
        labels = graph.get("y")
        y = None if labels is None else labels.cpu().numpy()
        alike = _alike(source, target, y, len(degree))
        adjacency = coo_array(
            (np.ones(len(source), dtype=np.int8), (source, target)), shape=(len(degree),) * 2
        )
        components, member = connected_components(adjacency, directed=False)
        quarters = np.percentile(degree, [25, 75])
        low = _band(degree, weight, alike, degree <= quarters[0])
        high = _band(degree, weight, alike, degree >= quarters[1])
        homophily, adjusted = _homophily(source, target, y)
        x = graph.get("x")
        powers = np.where(degree > 0, np.frexp(degree)[1], 0)
        return cls(
            nodes=len(degree),
            edges=len(source) // 2,
            features=0 if x is None else int(x.shape[1]),
            classes=0 if y is None or not (y >= 0).any() else int(y.max()) + 1,
            isolated=int((degree == 0).sum()),
            components=int(components),
            largest_component=float(np.bincount(member).max() / len(degree)),
            mean_degree=float(degree.mean()),
            median_degree=float(np.median(degree)),
            max_degree=int(degree.max()),
            distinct_degrees=len(np.unique(degree)),
            few=float((degree <= FEW).mean()),
            low=low,
            high=high,
            weight_ratio=high.weight / low.weight,
            homophily=homophily,
            adjusted_homophily=adjusted,
            bands=tuple(_band(degree, weight, alike, powers == p) for p in np.unique(powers)),
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"bands": [asdict(band) for band in self.bands]}


def degrees_in_laplacian(graph: Data) -> tuple[Ints, Floats]:
    """Number of neighbours of every node, and its row sum in Â = D̃^(-1/2) (A+I) D̃^(-1/2)."""
    size = int(graph.num_nodes or 0)
    source, target = graph.edge_index.cpu().numpy()
    weight = graph.get("edge_weight")
    entries = np.ones(source.size) if weight is None else weight.cpu().numpy().astype(float)
    adjacency = coo_array((entries, (source, target)), shape=(size, size)).tocsr()
    scale = 1 / np.sqrt(adjacency.sum(1) + 1)
    # Row sums of diag(s) (A+I) diag(s), without building it.
    return np.bincount(source, minlength=size), scale * (adjacency @ scale + scale)


def _band(degree: Ints, weight: Floats, alike: Floats, nodes: NDArray[np.bool_]) -> Band:
    known = alike[nodes & ~np.isnan(alike)]
    return Band(
        low=int(degree[nodes].min()),
        high=int(degree[nodes].max()),
        nodes=int(nodes.sum()),
        weight=float(weight[nodes].mean()),
        homophily=float(known.mean()) if len(known) else math.nan,
    )


def _alike(source: Ints, target: Ints, y: Ints | None, size: int) -> Floats:
    """Of every labelled node's labelled neighbours the share with its label; else NaN."""
    if y is None:
        return np.full(size, math.nan)
    known = (y[source] >= 0) & (y[target] >= 0)
    source, target = source[known], target[known]
    count = np.bincount(source, minlength=size)
    same = np.bincount(source, weights=y[source] == y[target], minlength=size)
    shares: Floats = np.divide(same, count, out=np.full(size, math.nan), where=count > 0)
    return shares


def _homophily(source: Ints, target: Ints, y: Ints | None) -> tuple[float, float]:
    """Edge homophily, and adjusted for what the classes' sizes give by themselves."""
    if y is None:
        return math.nan, math.nan
    known = (y[source] >= 0) & (y[target] >= 0)
    if not known.any():
        return math.nan, math.nan
    ends, others = y[source[known]], y[target[known]]
    share = float((ends == others).mean())
    by_chance = float(np.square(np.bincount(ends) / len(ends)).sum())
    return share, (share - by_chance) / (1 - by_chance) if by_chance < 1 else math.nan
