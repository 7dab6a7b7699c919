"""A graph cut into ranges of rows, each in plain .npy files that are mapped, not read.

A folder of shards holds ``shards.json`` and, for shard 3, ``00003.json`` and ``00003-NAME.npy``:
``row_start`` (int64, from 0) and ``column`` in CSR form, ``weight`` for a weighted graph, and for
training ``x`` (float32), ``y`` (int64, −1 unlabelled) and ``split`` (1 training, 2 validation,
3 test). Balancing adds ``scale`` (float64). Nothing in it is pickled.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..errors import RawlsError
from ..files import atomic_directory, atomic_file
from .features import has_negative_features
from .found import MASKS
from .mark import mark_of

if TYPE_CHECKING:
    from torch_geometric.data import Data

Array = NDArray[Any]

MANIFEST = "shards.json"
_FORMAT = 1
#: The names of the files of a folder of shards, whatever it was cut into.
_OURS = re.compile(r"shards\.json|\d{5}\.json|\d{5}-(row_start|column|weight|x|y|split|scale)\.npy")
#: Rows of sparse features that are made dense at a time.
_ROWS = 1 << 14


@dataclass(frozen=True, eq=False)
class Shard:
    """Rows ``first`` to ``last`` of the graph; arrays that are not there are None."""

    first: int
    last: int
    row_start: Array
    column: Array
    weight: Array | None
    x: Array | None
    y: Array | None
    split: Array | None
    scale: Array | None

    @property
    def graph_bytes(self) -> int:
        """What the rows of the matrix take."""
        parts = (self.row_start, self.column, self.weight)
        return sum(part.nbytes for part in parts if part is not None)


class Shards:
    """A folder of shards; opening one maps its files and reads nothing yet."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        about = _read_json(self.folder / MANIFEST)
        try:
            if about["format"] != _FORMAT:
                raise RawlsError(
                    f"{self.folder / MANIFEST} is of format {about['format']}, this version reads "
                    f"{_FORMAT}: write the shards anew"
                )
            self.name = str(about["name"])
            self.graph = str(about["graph"])
            self.num_nodes, self.num_arcs = int(about["nodes"]), int(about["arcs"])
            self.classes, self.negative = int(about["classes"]), bool(about["negative_features"])
            self.cuts = [int(cut) for cut in about["cuts"]]
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, RawlsError):
                raise
            raise RawlsError(
                f"{self.folder / MANIFEST} does not describe shards: {error!r}; write them anew"
            ) from error
        rising = all(a < b for a, b in zip(self.cuts, self.cuts[1:], strict=False))
        if len(self.cuts) < 2 or self.cuts[0] != 0 or self.cuts[-1] != self.num_nodes or not rising:
            raise RawlsError(
                f"{self.folder / MANIFEST} is damaged: its cuts are {self.cuts[:5]}; "
                "write the shards anew"
            )

    def __len__(self) -> int:
        return len(self.cuts) - 1

    def path(self, place: int, what: str) -> Path:
        return self.folder / f"{place:05d}-{what}.npy"

    def open(self, place: int) -> Shard:
        """Map one shard; the files must be there, be of this graph and fit each other."""
        about = _read_json(self.folder / f"{place:05d}.json")
        if about.get("graph") != self.graph:
            raise RawlsError(
                f"shard {place} in {self.folder} is of another graph than {MANIFEST}: "
                "write the shards anew"
            )
        first, last = self.cuts[place : place + 2]
        row_start = self._map(place, "row_start")
        column = self._map(place, "column")
        if row_start is None or column is None:
            what = "row_start" if row_start is None else "column"
            raise RawlsError(
                f"{self.path(place, what)} is missing: copy it there or write the shards anew"
            )
        shard = Shard(
            first,
            last,
            row_start,
            column,
            *(self._map(place, what) for what in ("weight", "x", "y", "split", "scale")),
        )
        for what in ("x", "y", "split", "scale"):
            array = getattr(shard, what)
            if array is not None and len(array) != last - first:
                raise self._damaged(place, what)
        if len(row_start) != last - first + 1 or row_start[0] != 0 or row_start[-1] != len(column):
            raise self._damaged(place, "row_start")
        if shard.weight is not None and len(shard.weight) != len(column):
            raise self._damaged(place, "weight")
        return shard

    def remove_scale(self, place: int) -> None:
        """Remove the piece of the scaling vector, so that pieces of two are never together."""
        self.path(place, "scale").unlink(missing_ok=True)

    def write_scale(self, place: int, scale: Array) -> None:
        """Keep the piece of the scaling vector that belongs to a shard's rows."""
        path = self.path(place, "scale")
        with atomic_file(path) as temporary, temporary.open("wb") as file:
            np.save(file, scale, allow_pickle=False)

    def _map(self, place: int, what: str) -> Array | None:
        path = self.path(place, what)
        if not path.exists():
            return None
        try:
            mapped: Array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, OSError, EOFError) as error:
            raise self._damaged(place, what) from error
        return mapped

    def _damaged(self, place: int, what: str) -> RawlsError:
        return RawlsError(
            f"{self.path(place, what)} is damaged or cut short: write the shards anew"
        )


def require_own(folder: str | Path) -> None:
    """Refuse a folder with files that are not shards: shards written anew replace the old ones."""
    folder = Path(folder)
    found = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    found = {name for name in found if not name.startswith(".")}
    strange = sorted(name for name in found if not _OURS.fullmatch(name))
    if not strange and found and MANIFEST not in found:
        strange = sorted(found)  # names like ours, but not of ours
    if strange:
        raise RawlsError(
            f"{folder} holds '{strange[0]}', which is no part of a set of shards: give a folder "
            "that is new, empty or holds shards alone"
        )


def write_shards(graph: Data, count: int, folder: str | Path) -> Shards:
    """Cut a checked graph into ``count`` ranges of rows of about equal size on disk.

    Shards that the folder holds already are replaced; anything else in it is refused.
    """
    require_own(folder)
    nodes = int(graph.num_nodes)
    if not 1 <= count <= nodes:
        raise RawlsError(f"a graph of {nodes} nodes can be cut into 1 to {nodes} shards: {count}?")
    row, column = graph.edge_index.numpy()
    row_start = np.zeros(nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(row, minlength=nodes), out=row_start[1:])
    cuts = _cuts(row_start, count)
    small = np.int32 if nodes < 2**31 else np.int64
    weight = graph.get("edge_weight")
    split = np.zeros(nodes, dtype=np.uint8)
    for number, name in enumerate(MASKS, start=1):
        if graph.get(name) is not None:
            split[graph[name].numpy()] = number

    def outdated(name: str) -> bool:
        """What is left of other shards there (a scaling vector, weights) is none of this graph."""
        return _OURS.fullmatch(name) is not None

    with atomic_directory(folder, outdated) as temporary:

        def save(place: int, what: str, array: Array) -> None:
            np.save(temporary / f"{place:05d}-{what}.npy", array, allow_pickle=False)

        for place in range(count):
            rows = slice(cuts[place], cuts[place + 1])
            arcs = slice(int(row_start[rows.start]), int(row_start[rows.stop]))
            save(place, "row_start", row_start[rows.start : rows.stop + 1] - arcs.start)
            save(place, "column", column[arcs].astype(small))
            if weight is not None:
                save(place, "weight", weight[arcs].numpy())
            if graph.get("x") is not None:
                _save_features(temporary / f"{place:05d}-x.npy", graph.x, rows)
            if graph.get("y") is not None:
                save(place, "y", graph.y[rows].numpy())
            save(place, "split", split[rows])
        about = {
            "format": _FORMAT,
            "name": str(graph.get("name") or "graph"),
            "graph": mark_of(graph),
            "nodes": nodes,
            "arcs": len(column),
            "classes": 0 if graph.get("y") is None else int(graph.y.max()) + 1,
            "negative_features": graph.get("x") is not None and has_negative_features(graph.x),
            "cuts": cuts,
        }
        (temporary / MANIFEST).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
        for place in range(count):
            text = json.dumps({"graph": about["graph"]}) + "\n"
            (temporary / f"{place:05d}.json").write_text(text, encoding="utf-8")
    return Shards(folder)


def _cuts(row_start: Array, count: int) -> list[int]:
    """Rows at which to cut so that rows and arcs together, the bytes, are shared evenly."""
    nodes = len(row_start) - 1
    load = row_start + np.arange(nodes + 1)
    inner = np.searchsorted(load, load[-1] * np.arange(1, count) / count)
    # Every shard has a row of its own, however much one hub weighs.
    inner = np.maximum(inner, np.arange(1, count))
    inner = np.maximum.accumulate(inner - np.arange(1, count)) + np.arange(1, count)
    inner = np.minimum(inner, nodes - count + np.arange(1, count))
    return [0, *inner.tolist(), nodes]


def _save_features(path: Path, x: torch.Tensor, rows: slice) -> None:
    shape = (rows.stop - rows.start, x.shape[1])
    mapped = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    for first in range(rows.start, rows.stop, _ROWS):
        last = min(first + _ROWS, rows.stop)
        if x.layout == torch.sparse_csr:
            start, stop = x.crow_indices()[[first, last]].tolist()
            part = mapped[first - rows.start : last - rows.start]
            counts = x.crow_indices()[first : last + 1].diff()
            row = np.repeat(np.arange(last - first), counts.numpy())
            part[row, x.col_indices()[start:stop].numpy()] = x.values()[start:stop].numpy()
        else:
            mapped[first - rows.start : last - rows.start] = x[first:last].numpy()
    mapped.flush()


def _read_json(path: Path) -> dict[str, Any]:
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RawlsError(
            f"{path.parent} holds no whole set of shards: cannot read {path.name} "
            f"({error.strerror}); write them with 'python -m rawlsgcn.launch shard'"
        ) from error
    except ValueError as error:
        raise RawlsError(f"{path} is damaged: {error}; write the shards anew") from error
    if not isinstance(about, dict):
        raise RawlsError(f"{path} is damaged: it is no table of entries; write the shards anew")
    return about
