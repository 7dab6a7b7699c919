"""The synthetic graph at any size: drawn in blocks of edges and nodes, straight into shards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..._core.progress import ProgressCallback, no_progress
from ..._core.threads import ordered_map
from ..catalog import SYNTHETIC
from ..raw_graph import RawGraph
from ..readers.edge_lists import EdgeBatch
from ..readers.features import FeatureBatch
from ..shards.shard_writer import require_count
from ..shards.shards import Shards, require_own
from ..splits import MASKS, SplitChoice, parse_split
from ..synthetic_graph import BlockModel, check_arguments, draw_words, synthetic_split
from .build_shards import NO_ARCS, GraphStream, build_shards

Array = NDArray[Any]
#: Words of a node for each word of the vocabulary, as in ``synthetic()``.
_WORDS_A_FEATURE = 80 / 600
#: Edges and nodes that are drawn at a time, each block by a generator of its own.
_EDGES, _CELLS = 1 << 20, 1 << 22


def synthetic_shards(
    folder: str | Path,
    count: int,
    *,
    num_nodes: int,
    classes: int = 6,
    average_degree: float = 14.0,
    features: int = 600,
    words: float | None = None,
    isolated: float = 0.01,
    seed: int = 0,
    split: SplitChoice = None,
    memory: int | None = None,
    progress: ProgressCallback = no_progress,
) -> Shards:
    """Draw the synthetic graph of any size into shards on disk.

    The model is that of :func:`rawlsgcn.synthetic`; the graph is another one for the same seed,
    since every block of edges and nodes is drawn by a generator of its own. The same arguments
    give the same files, whatever the memory.

    Args:
        folder: Where to write the shards, as for :func:`..shards.write_shards`.
        count: The number of shards.
        num_nodes: The number of nodes.
        classes: The number of classes.
        average_degree: The mean of the expected degrees.
        features: The number of words in the vocabulary.
        words: The mean number of words of a node (default: 80 for each 600 of the vocabulary).
        isolated: The share of nodes without any edge.
        seed: The seed of everything that is drawn.
        split: As for :func:`rawlsgcn.synthetic`.
        memory: The bytes to use, about; a few numbers for each node are always in memory.
        progress: Called after each block.

    Returns:
        The shards.

    Raises:
        RawlsError: If an argument is out of range, or the folder holds anything else.
    """
    words = max(1.0, _WORDS_A_FEATURE * features) if words is None else words
    check_arguments(num_nodes, classes, average_degree, features, words, isolated)
    require_count(count, num_nodes)
    require_own(folder)
    chosen = parse_split(split)
    label = np.sort(_generator(seed, 0).integers(classes, size=num_nodes))
    # Numbers that do not give the class away: the blocks of the model are contiguous.
    number = _generator(seed, 1).permutation(num_nodes)
    y = np.empty(num_nodes, np.int64)
    y[number] = label
    raw = RawGraph(SYNTHETIC, NO_ARCS, NO_ARCS, y=y, synthetic=True)
    masks = synthetic_split(torch.from_numpy(y), classes, chosen)
    raw.masks = {name: mask.numpy() for name, mask in zip(MASKS, masks, strict=True)}
    how = [num_nodes, classes, average_degree, features, words, isolated, seed, str(chosen)]
    stream = GraphStream(
        raw,
        num_nodes,
        features,
        lambda: _arcs(
            BlockModel(_generator(seed, 2), label, classes, average_degree, isolated), number, seed
        ),
        lambda: _features(y, classes, features, words, seed),
        {"synthetic": how},
        num_arcs=round(num_nodes * average_degree / 2),
    )
    return build_shards(folder, count, stream, None, memory, progress)[0]


def _generator(seed: int, *place: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=place))


def _arcs(model: BlockModel, number: Array, seed: int) -> Iterator[EdgeBatch]:
    def draw(first: int) -> EdgeBatch:
        random = _generator(seed, 3, first // _EDGES)
        source, target = model.draw_edges(random, min(_EDGES, model.num_edges - first))
        return EdgeBatch(number[source], number[target], None)

    return ordered_map(draw, range(0, model.num_edges, _EDGES))


def _features(
    y: Array, classes: int, features: int, words: float, seed: int
) -> Iterator[FeatureBatch]:
    background = _generator(seed, 4).permutation(features)
    rows = max(1, _CELLS // features)

    def draw(first: int) -> FeatureBatch:
        label, random = y[first : first + rows], _generator(seed, 5, first // rows)
        block = np.zeros((len(label), features), np.float32)
        block[draw_words(random, label, classes, features, words, background)] = 1
        return FeatureBatch(np.arange(first, first + len(label)), block)

    return ordered_map(draw, range(0, len(y), rows))
