"""The embedded graph: a degree-corrected stochastic block model with bag-of-words features."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from .._core.errors import RawlsError
from .._core.threads import fork_safe_threads
from .catalog import SYNTHETIC
from .edges import clean_edges
from .node_features import compact, dense
from .notes import GraphFacts
from .splits import MASKS, Ratios, Split, SplitChoice, draw_split, paper_split, parse_split

Array = NDArray[Any]

# Chosen in the likeness of the co-purchase graphs: long texts with few telling words, so that a
# node needs its neighbors, and hubs that are linked from everywhere, so that a node with few
# neighbors is easily misled. A GCN then serves low degrees clearly worse.
_EXPONENT = 2.2  # of the power law of expected degrees
_WITHIN = 0.6  # share of the edges that stay within a class
_POPULAR = 1.6  # the others favor high degrees: their ends are drawn by degree to this power
_TOPICAL = 0.11  # share of a node's words that come from its class's topic


@fork_safe_threads()
def synthetic(
    num_nodes: int = 3000,
    *,
    classes: int = 6,
    average_degree: float = 14.0,
    features: int = 600,
    words: float = 80.0,
    isolated: float = 0.01,
    seed: int = 0,
    split: SplitChoice = None,
    sparse: bool = False,
) -> Data:
    """Make a synthetic graph on which low-degree nodes are worse off.

    Expected degrees follow a power law. Six edges in ten stay within a class; the others lead
    mostly to hubs, which are linked from everywhere. One word in nine of a node is from the topic
    of its class, the rest from a background that all classes share. It is a degree-corrected
    stochastic block model (Karrer and Newman, Physical Review E 83, 2011), and the same for the
    same arguments.

    Args:
        num_nodes: The number of nodes, at least 20 for each class.
        classes: The number of classes.
        average_degree: The mean of the expected degrees.
        features: The number of words in the vocabulary.
        words: The mean number of words of a node; for millions of nodes, ask for fewer.
        isolated: The share of nodes without any edge (some others have none by chance).
        seed: The seed of everything that is drawn.
        split: 'paper' (the default; with fewer nodes where the graph is small), 'random', or
            ratios such as '0.6,0.2,0.2'.
        sparse: Return ``x`` as ``torch.sparse_csr`` if under 10 % of it is non-zero.

    Returns:
        A validated graph whose attribute ``synthetic`` is True.

    Raises:
        RawlsError: If an argument is out of range.

    Example:
        >>> import rawlsgcn as rg
        >>> graph = rg.synthetic(300, classes=3, seed=1)
        >>> graph.num_nodes, int(graph.y.max()) + 1
        (300, 3)
    """
    check_arguments(num_nodes, classes, average_degree, features, words, isolated)
    random = np.random.default_rng(seed)
    label = np.sort(random.integers(classes, size=num_nodes))
    model = BlockModel(random, label, classes, average_degree, isolated)
    source, target = model.draw_edges(random, model.num_edges)
    node, word = draw_words(random, label, classes, features, words)
    ones = np.ones(len(node), dtype=np.float32)
    x = sp.csr_matrix((ones, (node, word)), shape=(num_nodes, features))
    x.data[:] = 1  # however often a node has a word
    # Numbers that do not give the class away: the blocks above are contiguous.
    shuffled = random.permutation(num_nodes)
    edge_index, _ = clean_edges(shuffled[source], shuffled[target], None, num_nodes, GraphFacts())
    del source, target
    place = np.argsort(shuffled)
    y = torch.from_numpy(label[place])
    made = compact(x[place]) if sparse else dense(x[place])
    graph = Data(made, edge_index, y=y, num_nodes=num_nodes, name=SYNTHETIC, synthetic=True)
    chosen = parse_split(split)
    drawn = "" if chosen in (None, "paper") else str(chosen)
    graph.facts = GraphFacts(split_drawn=drawn).pairs()
    for key, mask in zip(MASKS, synthetic_split(y, classes, chosen), strict=True):
        graph[key] = mask
    return graph


class BlockModel:
    """A degree-corrected stochastic block model of nodes whose classes, ``label``, ascend."""

    def __init__(
        self, random: Generator, label: Array, classes: int, average: float, isolated: float
    ) -> None:
        nodes = len(label)
        # Above the square root of all edges two nodes would expect more than one edge between them.
        ceiling = np.sqrt(nodes * average)
        pull = (1 - random.random(nodes)) ** (-1 / (_EXPONENT - 1)) * average / 3
        pull = np.minimum(pull, ceiling)
        pull[random.random(nodes) < isolated] = 0
        self.num_edges = round(nodes * average / 2)
        self._label, self._classes = label, classes
        self._near = _reach(pull, label, classes)
        self._far = _reach(pull**_POPULAR, label, classes)

    def draw_edges(self, random: Generator, count: int) -> tuple[Array, Array]:
        """Draw both ends of ``count`` edges in proportion to the expected degrees.

        Some may be loops, or the same edge twice.
        """
        source = _draw(random, *self._near, np.full(count, -1))
        block = self._label[source]
        stays = random.random(count) < _WITHIN
        shift = random.integers(1, self._classes, size=count)
        target = np.empty_like(source)
        target[stays] = _draw(random, *self._near, block[stays])
        target[~stays] = _draw(random, *self._far, ((block + shift) % self._classes)[~stays])
        return source, target


def _reach(pull: Array, label: Array, classes: int) -> tuple[Array, Array]:
    """The running sum of ``pull``, and its value where each class begins and the last ends."""
    reach = np.concatenate([[0.0], np.cumsum(pull)])
    return reach, reach[np.searchsorted(label, np.arange(classes + 1))]


def _draw(random: Generator, reach: Array, borders: Array, block: Array) -> Array:
    """Nodes drawn in proportion to their pull: one of each ``block``, or of all for -1."""
    low = np.where(block < 0, 0.0, borders[block])
    high = np.where(block < 0, reach[-1], borders[block + 1])
    drawn = low + random.random(len(low)) * (high - low)
    # In ascending order the search stays in the cache, which matters for millions of nodes.
    order = np.argsort(drawn)
    nodes = np.empty(len(drawn), np.int64)
    nodes[order] = np.searchsorted(reach, drawn[order], side="right") - 1
    return nodes.clip(max=len(reach) - 2)


def draw_words(
    random: Generator,
    label: Array,
    classes: int,
    vocabulary: int,
    words: float,
    background: Array | None = None,
) -> tuple[Array, Array]:
    """Draw pairs of node and word, of which some may be equal; ``words`` of a node on average.

    They come from the topic of the node's class and from a common ``background``: all words, the
    most frequent first; by default drawn here.
    """
    count = 1 + random.poisson(words - 1, size=len(label))
    node = np.repeat(np.arange(len(label)), count)
    topic = vocabulary // classes
    own = label[node] * topic + random.integers(topic, size=len(node))
    # Background words are frequent or rare as in a text: rank r with a chance of about 1 / r.
    rank = (vocabulary + 1) ** random.random(len(node)) - 1
    background = random.permutation(vocabulary) if background is None else background
    common = background[np.minimum(rank.astype(np.int64), vocabulary - 1)]
    return node, np.where(random.random(len(node)) < _TOPICAL, own, common)


def synthetic_split(y: Tensor, classes: int, split: str | Ratios | None) -> Split:
    """Draw a split; the default is the paper's, with fewer nodes where the graph is small."""
    if split == "stored":
        raise RawlsError("the synthetic graph has no stored split: use 'paper' or 'random'")
    if split not in (None, "paper"):
        return draw_split(y, split)
    per_class = min(20, int(torch.bincount(y).min()) // 3)
    rest = len(y) - per_class * classes
    val = min(500, rest // 3)
    return paper_split(y, per_class, val, min(1000, rest - val))


def check_arguments(
    nodes: int, classes: int, average: float, features: int, words: float, isolated: float
) -> None:
    """Raise an error for an argument of :func:`synthetic` that is out of range."""
    of = f"a synthetic graph of {classes} classes needs"
    most = f"{nodes / 4:g}, a quarter of the nodes"
    for holds, rule in (
        (classes >= 2, f"a synthetic graph needs at least 2 classes, not {classes}"),
        (nodes >= 20 * classes, f"{of} {20 * classes} nodes or more"),
        (0 < average <= nodes / 4, f"the average degree must be over 0 and at most {most}"),
        (features >= classes, f"{of} at least as many features"),
        (1 <= words < float("inf"), f"a node needs one word or more on average, not {words:g}"),
        (0 <= isolated < 1, "the share of isolated nodes must be at least 0 and under 1"),
    ):
        if not holds:
            raise RawlsError(rule)
