"""Shards of a graph that comes in batches, stage by stage: arcs, features, and the manifest.

A killed process leaves the finished stages, from which the same command goes on; the folder of the
shards appears whole at the end.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from ..._core.atomic_folders import atomic_directory
from ..._core.errors import RawlsError
from ..._core.memory import memory_limit
from ..._core.progress import ProgressCallback, no_progress
from ..raw_graph import RawGraph, check_count
from ..readers.edge_lists import EdgeBatch
from ..readers.features import FeatureBatch
from ..shards.feature_files import FeatureFiles
from ..shards.shard_writer import ShardWriter, require_count
from ..shards.shards import Shards, outdated
from ..split_choice import choose_split
from ..splits import Ratios
from ..validation import check_labels, settle_labels
from .arc_sorter import SortedArcs, sort_arcs
from .unfinished import UnfinishedFolder, unfinished_folder

Array = NDArray[Any]
#: The files that the stages write.
_STAGES = re.compile(r"\d{5}-(row_start|column|weight|x)\.npy")
NO_ARCS: Array = np.empty(0, np.int64)
"""For the ``raw`` of a :class:`GraphStream`, whose arcs come later."""
#: What the progress says while another process has the unfinished folder.
WAITING = "waiting for another process, which writes these shards"


@dataclass(frozen=True, eq=False)
class GraphStream:
    """A graph whose nodes are in memory, and whose arcs and features come in batches.

    Attributes:
        raw: The name, the labels, the masks, the ids of the nodes and the facts.
        num_nodes: The number of nodes.
        num_features: The number of features.
        arcs: Yields all arcs, between nodes that there are.
        features: Yields all rows of the features, each node's once.
        key: All that the graph depends on, and that JSON can hold.
        weighted: Whether the arcs have weights.
        num_arcs: About how many arcs there are, for the progress.
    """

    raw: RawGraph
    num_nodes: int
    num_features: int
    arcs: Callable[[], Iterator[EdgeBatch]]
    features: Callable[[], Iterator[FeatureBatch]]
    key: dict[str, Any]
    weighted: bool = False
    num_arcs: int = 0


def build_shards(
    folder: str | Path,
    count: int,
    graph: GraphStream,
    split: str | Ratios | None = None,
    memory: int | None = None,
    progress: ProgressCallback = no_progress,
) -> tuple[Shards, Data]:
    """Write the shards of a graph, or go on where a killed process with the same key stopped.

    Args:
        folder: Where to write them.
        count: The number of shards.
        graph: The graph.
        split: The split; by default the stored one.
        memory: The bytes to use for batches, about.
        progress: Called after each batch.

    Returns:
        The shards, and the nodes of the graph (labels, masks and facts).
    """
    raw = graph.raw
    memory = memory_limit(None) if memory is None else memory
    settle_labels(raw, split)
    require_count(count, graph.num_nodes)
    nodes = _checked_nodes(raw, graph.num_nodes, split)
    key = {"count": count, "name": raw.name, "split": str(split), **graph.key}
    with unfinished_folder(folder, key, partial(progress, 0, 1, WAITING)) as unfinished:
        made = unfinished.folder("shards")
        writer = _arcs(unfinished, made, count, graph, memory, progress)
        features = _features(unfinished, writer, graph, progress)
        for entry in made.iterdir():
            if not _STAGES.fullmatch(entry.name):  # after a kill linked into a finished folder
                entry.unlink()
        writer.write_nodes(nodes)
        writer.finish(features, progress=progress)
        with atomic_directory(folder, outdated) as temporary:
            _move_files(unfinished, made, temporary)
    nodes.facts = raw.facts.pairs()
    return Shards(folder), nodes


def _checked_nodes(raw: RawGraph, count: int, split: str | Ratios | None) -> Data:
    """The labels and masks, if there are any, validated as those of a graph in memory."""
    check_count(count, raw.graph_from if raw.y is None else raw.labels_from)
    nodes = Data(num_nodes=count, name=raw.name)
    if raw.y is not None:
        nodes.y = check_labels(raw, count)
        choose_split(nodes, raw, split)
    for name in ("node_ids", "class_names"):
        if getattr(raw, name) is not None:
            nodes[name] = getattr(raw, name)
    return nodes


def _arcs(
    unfinished: UnfinishedFolder,
    made: Path,
    count: int,
    graph: GraphStream,
    memory: int,
    progress: ProgressCallback,
) -> ShardWriter:
    facts, noted = vars(graph.raw.facts), unfinished.finished("arcs")
    if noted is not None:
        facts |= noted["facts"]
        return ShardWriter.reopen(made, count, weighted=noted["weighted"])
    before, work = dict(facts), unfinished.folder("work", empty=True)
    arcs = _sorted_arcs(graph, work, memory, progress)
    writer = ShardWriter(made, arcs.row_start, count, weighted=arcs.weight is not None)
    writer.write_arcs(arcs.column, arcs.weight)
    shutil.rmtree(work)
    found = {name: value for name, value in facts.items() if value != before[name]}
    unfinished.finish("arcs", weighted=arcs.weight is not None, facts=found)
    return writer


def _sorted_arcs(
    graph: GraphStream, work: Path, memory: int, progress: ProgressCallback
) -> SortedArcs:
    raw, rows = graph.raw, 0
    what = "drawing the edges" if raw.synthetic else f"reading {raw.graph_from}"

    def counted() -> Iterator[EdgeBatch]:
        nonlocal rows
        for batch in graph.arcs():
            yield batch
            rows += len(batch.source)
            progress(rows, max(rows, graph.num_arcs), what)
        if not rows:
            raise RawlsError(f"{raw.graph_from} has no edges")

    arcs = sort_arcs(
        counted(),
        graph.num_nodes,
        weighted=graph.weighted,
        folder=work,
        memory=memory,
        facts=raw.facts,
        where=raw.graph_from,
        progress=progress,
    )
    if not arcs.row_start[-1] and raw.y is not None:
        raise RawlsError(
            f"{raw.graph_from} has no edges but self-loops or edges of weight zero: nothing to "
            "learn from"
        )
    return arcs


def _features(
    unfinished: UnfinishedFolder,
    writer: ShardWriter,
    graph: GraphStream,
    progress: ProgressCallback,
) -> FeatureFiles:
    noted, counted = unfinished.finished("features"), unfinished.path / "nonzero.npy"
    files = writer.features(graph.num_features)
    if noted is not None:
        files.nonzero = np.load(counted, allow_pickle=False)
        files.negative = noted["negative"]
        return files
    files.create()
    done = 0
    for batch in graph.features():
        files.add(batch.nodes, batch.values)
        done += len(batch.nodes)
        progress(done, graph.num_nodes, "writing the features")
    np.save(counted, files.nonzero)
    unfinished.finish("features", negative=files.negative)
    return files


def _move_files(unfinished: UnfinishedFolder, made: Path, temporary: Path) -> None:
    """Link the files into another folder, so that a kill leaves them; else move them."""
    for entry in sorted(made.iterdir()):
        try:
            os.link(entry, temporary / entry.name)
        except OSError:  # a disk without links
            unfinished.forget("arcs", "features")
            shutil.move(entry, temporary / entry.name)
