"""The files of one shard, rows of a graph in plain .npy files: named, mapped and checked.

``row_start`` (int64, from 0) and ``column`` are the rows in CSR form, ``weight`` their weights in
a weighted graph. For training there are ``x`` (float32), ``y`` (int64, -1 where unlabeled) and
``split`` (1 training, 2 validation, 3 test). Balancing adds ``scale`` (float64). Node ids that are
not the numbers of the rows are ``node_id`` (int64) or, for texts, ``id_text`` (all of them, in
UTF-8) and ``id_start`` (where each begins, and the end).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._core.errors import RawlsError
from ..._core.row_files import npy_blocks
from ..catalog import MASKS
from ..readers.arrays import read_header

Array = NDArray[Any]

#: Entries of a file that are checked at a time.
_BLOCK = 1 << 20
#: The types that each array may have, and its dimensions.
ARRAYS: dict[str, tuple[int, tuple[type[np.generic], ...]]] = {
    "row_start": (1, (np.int64,)),
    "column": (1, (np.int32, np.int64)),
    "weight": (1, (np.float32, np.float64)),
    "x": (2, (np.float32,)),
    "y": (1, (np.int64,)),
    "split": (1, (np.uint8, np.int8, np.int32, np.int64)),
    "scale": (1, (np.float64,)),
    "node_id": (1, (np.int64,)),
    "id_start": (1, (np.int64,)),
    "id_text": (1, (np.uint8,)),
}


@dataclass(frozen=True, eq=False)
class Shard:
    """Rows ``first`` to ``last`` of the graph; arrays that are not there are None."""

    first: int
    last: int
    row_start: Array
    column: Array
    weight: Array | None = None
    x: Array | None = None
    y: Array | None = None
    split: Array | None = None
    scale: Array | None = None
    node_id: Array | None = None
    id_start: Array | None = None
    id_text: Array | None = None

    def node_ids(self, first: int, last: int) -> list[Any]:
        """The ids of the nodes ``first`` to ``last``, numbers of the whole graph's rows."""
        rows = slice(first - self.first, last - self.first)
        if self.node_id is not None:
            ids: list[Any] = self.node_id[rows].tolist()
            return ids
        if self.id_start is None or self.id_text is None:
            return list(range(first, last))
        start = self.id_start[rows.start : rows.stop + 1]
        text = self.id_text[start[0] : start[-1]].tobytes()
        places = (start - start[0]).tolist()
        return [text[a:b].decode("utf-8", "replace") for a, b in pairwise(places)]

    @property
    def graph_bytes(self) -> int:
        """What the rows of the matrix take."""
        parts = (self.row_start, self.column, self.weight)
        return sum(part.nbytes for part in parts if part is not None)


def array_path(folder: Path, shard: int, name: str) -> Path:
    """The file of one array of a shard."""
    return folder / f"{shard:05d}-{name}.npy"


def whole_row_start(parts: Iterable[Array]) -> Array:
    """Where the rows of all shards begin, from where those of each begin in it."""
    return np.cumsum(np.concatenate([[0], *(np.diff(part) for part in parts)]))


def save_node_ids(folder: Path, shard: int, ids: Array) -> None:
    """Write the ids of a shard's nodes, whole numbers or texts."""
    arrays: dict[str, Array] = {"node_id": ids}
    if ids.dtype.kind in "iu":
        arrays["node_id"] = ids.astype(np.int64)
    else:
        texts = [str(each).encode("utf-8", "replace") for each in ids]
        start = np.zeros(len(texts) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=start[1:])
        arrays = {"id_start": start, "id_text": np.frombuffer(b"".join(texts), np.uint8)}
    for name, array in arrays.items():
        np.save(array_path(folder, shard, name), array, allow_pickle=False)


def open_shard(
    folder: Path, shard: int, cuts: Sequence[int], classes: int, names: Iterable[str], scaled: bool
) -> Shard:
    """Map the files of a shard, which must fit each other and the graph.

    Every entry but those of ``x`` is checked once, by reading and not through the mapping, so that
    no index outside the graph is ever followed and nothing stays in memory.

    Args:
        folder: The folder of the shards.
        shard: The number of the shard.
        cuts: The first row of each shard, and the number of nodes.
        classes: The number of classes.
        names: The arrays that must be there.
        scaled: Whether to open the scaling vector, if it is there.
    """
    (first, last), nodes = cuts[shard : shard + 2], cuts[-1]
    paths = {name: array_path(folder, shard, name) for name in ARRAYS if scaled or name != "scale"}
    for name in names:
        if not paths[name].is_file():
            raise RawlsError(f"{paths[name]} is missing: copy it there or write the shards again")
    arrays = {name: _mapped(path, name) for name, path in paths.items() if path.is_file()}
    arcs, letters = (len(arrays.get(name, ())) for name in ("column", "id_text"))
    lengths = {"row_start": last - first + 1, "column": arcs, "weight": arcs}
    lengths |= {"id_start": last - first + 1, "id_text": letters}
    for name, array in arrays.items():
        wanted = lengths.get(name, last - first)
        if len(array) != wanted:
            raise _damaged(paths[name], f"has {len(array):,} entries, not {wanted:,}")
    for name, length, what in (("row_start", arcs, "arcs"), ("id_start", letters, "letters")):
        if name in arrays:
            _check_starts(paths[name], length, what)
    largest = np.finfo(np.float64).max
    ranges: dict[str, tuple[float, float, str]] = {
        "column": (0, nodes - 1, f"names nodes outside 0 to {nodes - 1}"),
        "weight": (0, largest, "has weights that are negative, NaN or infinite"),
        "y": (-1, classes - 1, f"has labels outside -1 to {classes - 1}"),
        "split": (0, len(MASKS), f"has numbers outside 0 to {len(MASKS)}"),
        "scale": (np.finfo(np.float64).tiny, largest, "has entries that are not positive"),
    }
    for name, (low, high, wrong) in ranges.items():
        for block in npy_blocks(paths[name], _BLOCK) if name in arrays else ():
            if not (low <= block.min() and block.max() <= high):  # also of NaN
                raise _damaged(paths[name], wrong)
    if "y" in arrays and "split" in arrays:
        both = (npy_blocks(paths[name], _BLOCK) for name in ("y", "split"))
        if any(((y < 0) & (split > 0)).any() for y, split in zip(*both, strict=True)):
            raise _damaged(paths["split"], "names nodes without a label")
    return Shard(first, last, **arrays)


def _check_starts(path: Path, length: int, what: str) -> None:
    first, before = None, 0
    for block in npy_blocks(path, _BLOCK):
        first = block[0] if first is None else first
        if block[0] < before or (np.diff(block) < 0).any():
            raise _damaged(path, "has a row that ends before it begins")
        before = block[-1]
    if first != 0 or before != length:
        raise _damaged(path, f"does not run from 0 to the {length:,} {what} of the shard")


def _mapped(path: Path, name: str) -> Array:
    try:
        with path.open("rb") as file:
            shape, dtype = read_header(file, path.stat().st_size)
    except Exception as error:  # a header is parsed as Python, which may fail in any way
        raise _damaged(path) from error
    # Before numpy maps the file: it divides by the size of an entry, which may be 0.
    dimensions, kinds = ARRAYS[name]
    if len(shape) != dimensions or not all(type(size) is int and size >= 0 for size in shape):
        raise _damaged(path)
    if dtype not in kinds:
        names = " or ".join(kind.__name__ for kind in kinds)
        raise _damaged(path, f"holds {dtype}, not {names}")
    try:
        mapped: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:
        raise _damaged(path) from error
    return mapped


def _damaged(path: Path, why: str = "") -> RawlsError:
    said = f"is damaged, it {why}" if why else "is damaged or cut short"
    repair = "write the shards again"
    if path.name.endswith("-scale.npy"):
        repair = f"balance again: rawlsgcn balance --shards {path.parent}"
    return RawlsError(f"{path} {said}: {repair}")
