"""The synthetic graph at any size: drawn in blocks of edges and nodes, straight into shards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..._core.atomic_folders import atomic_directory
from ..._core.memory import memory_limit
from ..._core.progress import ProgressCallback, no_progress
from ..catalog import SYNTHETIC
from ..notes import GraphFacts
from ..shards import Shards, outdated, require_count, require_own
from ..splits import SplitChoice, parse_split
from ..synthetic_graph import BlockModel, check_arguments, draw_words, synthetic_split
from .arc_sorter import ArcSorter, SortedArcs
from .ordered_threads import ordered_map
from .shard_writer import ShardWriter
from .work_folder import work_folder

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
    memory = memory_limit(None) if memory is None else memory
    with atomic_directory(folder, outdated) as temporary:
        with work_folder(temporary) as work:
            random = _generator(seed, 0)
            label = np.sort(random.integers(classes, size=num_nodes))
            model = BlockModel(random, label, classes, average_degree, isolated)
            # Numbers that do not give the class away: the blocks of the model are contiguous.
            shuffled = random.permutation(num_nodes)
            arcs = _arcs(model, shuffled, seed, work, memory, progress)
            del model
            y = np.empty(num_nodes, np.int64)
            y[shuffled] = label
            del shuffled, label
            writer = ShardWriter(temporary, arcs, count)
            writer.write_arcs()
        masks = synthetic_split(torch.from_numpy(y), classes, chosen)
        marks = np.zeros(num_nodes, np.uint8)
        for number, mask in enumerate(masks, start=1):
            marks[mask.numpy()] = number
        writer.write_nodes(y, marks)
        files = writer.features(features)
        for first, block in _features(y, classes, features, words, seed):
            files.write(first, block)
            progress(first + len(block), num_nodes, "drawing the features")
        writer.finish(SYNTHETIC, progress)
    return Shards(folder)


def _generator(seed: int, *place: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=place))


def _arcs(
    model: BlockModel, number: Array, seed: int, work: Path, memory: int, progress: ProgressCallback
) -> SortedArcs:
    edges = model.num_edges
    sorter = ArcSorter(len(number), weighted=False, folder=work, memory=memory, facts=GraphFacts())

    def draw(first: int) -> tuple[Array, Array]:
        random = _generator(seed, 1, first // _EDGES)
        source, target = model.draw_edges(random, min(_EDGES, edges - first))
        return number[source], number[target]

    with sorter:
        done = 0
        for source, target in ordered_map(draw, range(0, edges, _EDGES)):
            sorter.add(source, target)
            done += len(source)
            progress(done, edges, "drawing the edges")
        return sorter.finish(progress)


def _features(
    y: Array, classes: int, features: int, words: float, seed: int
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Blocks of rows, and the first node of each."""
    background = _generator(seed, 2).permutation(features)
    rows = max(1, _CELLS // features)

    def draw(first: int) -> tuple[int, NDArray[np.float32]]:
        label, random = y[first : first + rows], _generator(seed, 3, first // rows)
        block = np.zeros((len(label), features), np.float32)
        block[draw_words(random, label, classes, features, words, background)] = 1
        return first, block

    return ordered_map(draw, range(0, len(y), rows))
