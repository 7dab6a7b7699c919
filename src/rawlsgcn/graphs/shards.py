"""A graph cut into ranges of rows, each in plain .npy files that are mapped, not read.

A folder of shards holds ``shards.json`` and, for shard 3, ``00003.json`` and ``00003-NAME.npy``:
``row_start`` (int64, from 0) and ``column`` in CSR form, ``weight`` for a weighted graph, and for
training ``x`` (float32), ``y`` (int64, −1 unlabelled) and ``split`` (1 training, 2 validation,
3 test). Balancing adds ``scale`` (float64). Nothing in it is pickled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._core.atomic_files import atomic_directory, atomic_file
from .._core.errors import RawlsError
from .._core.serialization import (
    JsonFields,
    is_bool,
    is_nonnegative_int,
    is_positive_int,
    is_string,
    read_json,
)
from .features import has_negative_features
from .fingerprint import fingerprint
from .readers.arrays import read_header
from .splits import MASKS

if TYPE_CHECKING:
    from torch_geometric.data import Data

Array = NDArray[Any]

MANIFEST = "shards.json"
_FORMAT = 1
#: The names of the files of a folder of shards, whatever it was cut into.
_OURS = re.compile(r"shards\.json|\d{5}\.json|\d{5}-(row_start|column|weight|x|y|split|scale)\.npy")
#: Rows of sparse features that are made dense at a time.
_ROWS = 1 << 14
#: JsonFields of a file that are checked at a time.
_BLOCK = 1 << 20
#: The types that each array may have, and its dimensions.
_FORMS: dict[str, tuple[int, tuple[type[np.generic], ...]]] = {
    "row_start": (1, (np.int64,)),
    "column": (1, (np.int32, np.int64)),
    "weight": (1, (np.float32, np.float64)),
    "x": (2, (np.float32,)),
    "y": (1, (np.int64,)),
    "split": (1, (np.uint8, np.int8, np.int32, np.int64)),
    "scale": (1, (np.float64,)),
}


def _are_cuts(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) > 1
        and all(map(is_nonnegative_int, value))
        and value[0] == 0
        and all(a < b for a, b in pairwise(value))
    )


_ENTRIES: JsonFields = {
    "format": (f"{_FORMAT}, which this version reads", lambda value: value == _FORMAT),
    "name": ("a name", is_string),
    "graph": ("the graph's mark", is_string),
    "nodes": ("a whole number of at least 1", is_positive_int),
    "arcs": ("a whole number", is_nonnegative_int),
    "classes": ("a whole number", is_nonnegative_int),
    "negative_features": ("true or false", is_bool),
    "cuts": ("a list of rows from 0 that rise", _are_cuts),
}


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
    """A folder of shards; opening one maps its files, after one pass over what they hold."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        about = _read_json(self.folder / MANIFEST, _ENTRIES)
        self.name, self.graph = about["name"], about["graph"]
        self.num_nodes, self.num_arcs = about["nodes"], about["arcs"]
        self.classes, self.negative = about["classes"], about["negative_features"]
        self.cuts: list[int] = about["cuts"]
        if self.cuts[-1] != self.num_nodes:
            raise RawlsError(
                f"{self.folder / MANIFEST} is damaged: it cuts {self.cuts[-1]:,} rows of "
                f"{self.num_nodes:,} nodes; write the shards anew"
            )

    def __len__(self) -> int:
        return len(self.cuts) - 1

    def path(self, place: int, what: str) -> Path:
        return self.folder / f"{place:05d}-{what}.npy"

    def open(self, place: int) -> Shard:
        """Map one shard; the files must be there, be of this graph and fit each other.

        Every entry but those of ``x`` is looked at once, by reading and not by way of the mapping,
        so that no row start or node outside the graph is ever followed and nothing stays in memory.
        """
        about = _read_json(self.folder / f"{place:05d}.json", {"graph": _ENTRIES["graph"]})
        if about["graph"] != self.graph:
            raise RawlsError(
                f"shard {place} in {self.folder} is of another graph than {MANIFEST}: "
                "write the shards anew"
            )
        first, last = self.cuts[place : place + 2]
        found = {what: self._map(place, what) for what in _FORMS}
        row_start, column = found["row_start"], found["column"]
        if row_start is None or column is None:
            what = "row_start" if row_start is None else "column"
            raise RawlsError(
                f"{self.path(place, what)} is missing: copy it there or write the shards anew"
            )
        lengths = {"row_start": last - first + 1, "column": len(column), "weight": len(column)}
        for what, array in found.items():
            wanted = lengths.get(what, last - first)
            if array is not None and len(array) != wanted:
                raise self._damaged(place, what, f"has {len(array):,} entries, not {wanted:,}")
        self._check_rows(place, row_start, len(column))
        self._check_values(place, found)
        return Shard(first, last, row_start, column, *(found[what] for what in list(_FORMS)[2:]))

    def open_all(self) -> list[Shard]:
        """Map every shard; together they must be the graph that the manifest describes."""
        parts = [self.open(place) for place in range(len(self))]
        arcs = sum(len(part.column) for part in parts)
        highest = max((int(part.y.max()) for part in parts if part.y is not None), default=-1)
        widths = {part.x.shape[1] for part in parts if part.x is not None}
        for differ, what in (
            (arcs != self.num_arcs, f"{arcs:,} arcs, not {self.num_arcs:,}"),
            (highest + 1 != self.classes, f"{highest + 1} classes, not {self.classes}"),
            (len(widths) > 1 or widths == {0}, f"features of {sorted(widths)} columns"),
            (len({part.weight is None for part in parts}) > 1, "weights of some shards only"),
        ):
            if differ:
                raise RawlsError(
                    f"the shards in {self.folder} do not fit together, they have {what}: "
                    "write the shards anew"
                )
        return parts

    def _check_rows(self, place: int, row_start: Array, arcs: int) -> None:
        before = 0
        for block in self._blocks(place, "row_start", row_start):
            if block[0] < before or (np.diff(block) < 0).any():
                raise self._damaged(place, "row_start", "has a row that ends before it begins")
            before = block[-1]
        if row_start[0] != 0 or before != arcs:
            raise self._damaged(
                place, "row_start", f"does not run from 0 to the {arcs:,} arcs of the shard"
            )

    def _check_values(self, place: int, found: dict[str, Array | None]) -> None:
        """Refuse values out of range; a comparison with NaN is false."""
        last, largest = self.num_nodes - 1, np.finfo(np.float64).max
        ranges: dict[str, tuple[float, float, str]] = {
            "column": (0, last, f"names nodes outside 0 to {last}"),
            "weight": (0, largest, "has weights that are negative, NaN or infinite"),
            "y": (-1, self.classes - 1, f"has labels outside -1 to {self.classes - 1}"),
            "split": (0, len(MASKS), f"has numbers outside 0 to {len(MASKS)}"),
            "scale": (np.finfo(np.float64).tiny, largest, "has entries that are not positive"),
        }
        for what, (low, high, wrong) in ranges.items():
            array = found[what]
            for block in () if array is None else self._blocks(place, what, array):
                if not low <= block.min() or not block.max() <= high:
                    raise self._damaged(place, what, wrong)
        y, split = found["y"], found["split"]
        if y is not None and split is not None:
            both = (self._blocks(place, "y", y), self._blocks(place, "split", split))
            if any(((y < 0) & (split > 0)).any() for y, split in zip(*both, strict=True)):
                raise self._damaged(place, "split", "names nodes without a label")

    def _blocks(self, place: int, what: str, mapped: Array) -> Iterator[Array]:
        """What a mapped file holds, a part at a time, without a page of it becoming resident."""
        with self.path(place, what).open("rb") as file:
            file.seek(mapped.offset)  # type: ignore[attr-defined]
            for first in range(0, len(mapped), _BLOCK):
                yield np.fromfile(file, mapped.dtype, min(_BLOCK, len(mapped) - first))

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
        if not path.is_file():
            return None
        try:
            with path.open("rb") as file:
                read_header(file, path.stat().st_size)
            mapped = np.load(path, mmap_mode="r", allow_pickle=False)
        except Exception as error:  # a header is parsed as Python, which may fail in any way
            raise self._damaged(place, what) from error
        dimensions, kinds = _FORMS[what]
        if not isinstance(mapped, np.memmap) or mapped.ndim != dimensions:
            raise self._damaged(place, what)
        if mapped.dtype not in kinds:
            names = " or ".join(kind.__name__ for kind in kinds)
            raise self._damaged(place, what, f"holds {mapped.dtype}, not {names}")
        return mapped

    def _damaged(self, place: int, what: str, why: str = "") -> RawlsError:
        said = f"is damaged, it {why}" if why else "is damaged or cut short"
        return RawlsError(f"{self.path(place, what)} {said}: write the shards anew")


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
            "graph": fingerprint(graph),
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


def _read_json(path: Path, entries: JsonFields) -> dict[str, Any]:
    try:
        return read_json(path, entries)
    except OSError as error:
        raise RawlsError(
            f"{path.parent} holds no whole set of shards: cannot read {path.name} "
            f"({error.strerror}); write them with 'rawlsgcn shard'"
        ) from error
    except RawlsError as error:
        raise RawlsError(f"{error}; write the shards anew") from error
