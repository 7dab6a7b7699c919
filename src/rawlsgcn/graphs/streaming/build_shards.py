"""Shards of a graph that comes in batches, stage by stage: arcs, features, and the manifest.

A killed process leaves the finished stages, from which the same command goes on; the folder of the
shards appears whole at the end.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._core import __version__
from ..._core.atomic_files import atomic_file, cannot_write, own_folder, resolved, sync_tree
from ..._core.atomic_folders import atomic_directory
from ..._core.progress import ProgressCallback, no_progress
from ..notes import GraphFacts
from ..shards.feature_files import FeatureFiles
from ..shards.shard_writer import ShardWriter
from ..shards.shards import Shards, outdated
from .arc_sorter import SortedArcs
from .feature_batches import FeatureBatch

Array = NDArray[Any]
#: The facts that the sort finds out.
_EDGE_FACTS = (
    *("self_loops", "zero_weights", "repeated_edges", "weights_summed", "unequal_weights"),
    *("tiny_weights", "arcs", "one_way_arcs"),
)
#: The files that the stages write.
_STAGES = re.compile(r"\d{5}-(row_start|column|weight|x)\.npy")
#: What the progress says while another process has the unfinished folder.
WAITING = "waiting for another process, which writes these shards"


@dataclass(frozen=True, eq=False)
class GraphParts:
    """What a graph is made of: its nodes in memory, its arcs and features when they are asked for.

    Attributes:
        name: The name of the graph.
        num_nodes: The number of nodes.
        y: The labels, int64; None if there are none.
        split: 1, 2 and 3 for training, validation and test nodes, uint8.
        num_features: The number of features.
        sort_arcs: Sorts the arcs in an empty folder.
        feature_batches: Yields all rows of the features.
        facts: Where the sort counts what it drops and merges.
        node_ids: The ids of the nodes; None for the numbers of the rows.
        class_names: The names of the classes, if they have any.
    """

    name: str
    num_nodes: int
    y: Array | None
    split: Array
    num_features: int
    sort_arcs: Callable[[Path], SortedArcs]
    feature_batches: Callable[[], Iterator[FeatureBatch]]
    facts: GraphFacts
    node_ids: Array | None = None
    class_names: list[str] | None = None


def build_shards(
    folder: str | Path,
    count: int,
    graph: GraphParts,
    key: Mapping[str, Any],
    progress: ProgressCallback = no_progress,
) -> Shards:
    """Write the shards of a graph, or go on where a killed process with the same key stopped.

    Args:
        folder: Where to write them.
        count: The number of shards.
        graph: The graph.
        key: All that the graph depends on, and that JSON can hold.
        progress: Called after each batch.
    """
    waiting = partial(progress, 0, 1, WAITING)
    with unfinished_folder(folder, {"count": count, **key}, waiting) as unfinished:
        made = unfinished.folder("shards")
        writer = _arcs(unfinished, made, count, graph)
        features = _features(unfinished, writer, graph, progress)
        _remove_rest(made)
        writer.write_nodes(graph.y, graph.split, graph.node_ids)
        writer.finish(graph.name, features, class_names=graph.class_names, progress=progress)
        with atomic_directory(folder, outdated) as temporary:
            _move_files(unfinished, made, temporary)
    return Shards(folder)


def _arcs(unfinished: UnfinishedFolder, made: Path, count: int, graph: GraphParts) -> ShardWriter:
    noted = unfinished.finished("arcs")
    if noted is not None:
        for name in _EDGE_FACTS:
            setattr(graph.facts, name, noted["facts"][name])
        return ShardWriter.reopen(made, count, weighted=noted["weighted"])
    work = unfinished.folder("work", empty=True)
    arcs = graph.sort_arcs(work)
    writer = ShardWriter(made, arcs.row_start, count, weighted=arcs.weight is not None)
    writer.write_arcs(arcs.read_column, arcs.read_weight if arcs.weight is not None else None)
    shutil.rmtree(work)
    facts = {name: getattr(graph.facts, name) for name in _EDGE_FACTS}
    unfinished.finish("arcs", weighted=arcs.weight is not None, facts=facts)
    return writer


def _features(
    unfinished: UnfinishedFolder, writer: ShardWriter, graph: GraphParts, progress: ProgressCallback
) -> FeatureFiles:
    noted, counted = unfinished.finished("features"), unfinished.path / "nonzero.npy"
    files = writer.features(graph.num_features)
    if noted is not None:
        files.nonzero = np.load(counted, allow_pickle=False)
        files.negative = noted["negative"]
        return files
    files.create()
    done = 0
    for batch in graph.feature_batches():
        files.add(batch.nodes, batch.values)
        done += len(batch.nodes)
        progress(done, graph.num_nodes, "writing the features")
    np.save(counted, files.nonzero)
    unfinished.finish("features", negative=files.negative)
    return files


def _remove_rest(made: Path) -> None:
    """Remove the files of no stage: after a kill they may be linked into a finished folder."""
    for entry in made.iterdir():
        if not _STAGES.fullmatch(entry.name):
            entry.unlink()


def _move_files(unfinished: UnfinishedFolder, made: Path, temporary: Path) -> None:
    """Link the files into another folder, so that a kill leaves them; else move them."""
    for entry in sorted(made.iterdir()):
        try:
            os.link(entry, temporary / entry.name)
        except OSError:  # a disk without links
            unfinished.forget("arcs", "features")
            shutil.move(entry, temporary / entry.name)


class UnfinishedFolder:
    """A folder with stages, each finished or not begun."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def finished(self, stage: str) -> dict[str, Any] | None:
        """Return what was noted at the end of a stage; None if it is not finished."""
        try:
            noted = json.loads((self.path / f"{stage}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return noted if isinstance(noted, dict) else None

    def finish(self, stage: str, **noted: Any) -> None:
        """Note that a stage is finished, when its files are on the disk."""
        sync_tree(self.path)
        self._write(stage, noted)

    def forget(self, *stages: str) -> None:
        """Count stages as not begun."""
        for stage in stages:
            (self.path / f"{stage}.json").unlink(missing_ok=True)

    def begin(self, key: Mapping[str, Any]) -> None:
        """Remove what another command left here."""
        wanted = json.loads(json.dumps({"version": __version__, **key}))
        if self.finished("command") == wanted:
            return
        for entry in self.path.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
        self._write("command", wanted)

    def folder(self, name: str, *, empty: bool = False) -> Path:
        """Return a folder in this one; what an interrupted stage left in it can be removed."""
        path = self.path / name
        if empty:
            shutil.rmtree(path, ignore_errors=True)
        path.mkdir(exist_ok=True)
        return path

    def _write(self, stage: str, content: Any) -> None:
        with atomic_file(self.path / f"{stage}.json") as temporary:
            temporary.write_text(json.dumps(content), encoding="utf-8")


@contextmanager
def unfinished_folder(
    out: str | Path, key: Mapping[str, Any], waiting: Callable[[], None]
) -> Iterator[UnfinishedFolder]:
    """Open the hidden folder beside ``out`` in which its content is made; removed at the end.

    A killed or interrupted process leaves it, and the next one with the same ``key`` goes on from
    the last finished stage; one with another key begins again. An error removes it.

    Args:
        out: The folder that is made.
        key: All that the content depends on.
        waiting: Called while another process has the folder.
    """
    out = Path(out)
    final = resolved(out, into=True)
    # Beside a folder without the right to write, its content is made in it.
    home = final if final.is_dir() and not os.access(final.parent, os.W_OK) else final.parent
    path = home / f".{final.name}-unfinished"
    try:
        with own_folder(path, waiting):
            folder = UnfinishedFolder(path)
            try:
                folder.begin(key)
                yield folder
            except Exception:
                shutil.rmtree(path, ignore_errors=True)
                raise
            shutil.rmtree(path, ignore_errors=True)
    except OSError as error:
        raise cannot_write(out, error, into=True) from error
