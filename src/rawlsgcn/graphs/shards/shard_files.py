"""The files of one shard, rows of a graph in plain .npy files: named, mapped and checked.

``row_start`` (int64, from 0) and ``column`` are the rows in CSR form, ``weight`` their weights in
a weighted graph. For training there are ``x`` (float32), ``y`` (int64, -1 where unlabeled) and
``split`` (1 training, 2 validation, 3 test). Balancing adds ``scale`` (float64). Node ids that are
not the numbers of the rows are ``node_id`` (int64) or, for texts, ``id_text`` (all of them, in
UTF-8) and ``id_start`` (where each begins, and the end).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._core.errors import RawlsError
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
    weight: Array | None
    x: Array | None
    y: Array | None
    split: Array | None
    scale: Array | None
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


def save_node_ids(folder: Path, shard: int, ids: Array | None) -> None:
    """Write the ids of a shard's nodes, whole numbers or texts; None for the numbers of rows."""
    if ids is None:
        return
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


class ShardFiles:
    """The files of shard ``shard`` in ``folder``, for a graph of so many nodes and classes."""

    def __init__(self, folder: Path, shard: int, num_nodes: int, classes: int) -> None:
        self.folder, self.shard = folder, shard
        self.num_nodes, self.classes = num_nodes, classes

    def open(self, first: int, last: int, needed: Iterable[str], scaled: bool = True) -> Shard:
        """Map the files of rows ``first`` to ``last``; they must fit each other and the graph.

        Every entry but those of ``x`` is checked once, by reading and not through the mapping,
        so that no index outside the graph is ever followed and nothing stays in memory. Those of
        ``needed`` must be there. Without ``scaled`` the scaling vector is left alone, even if it is
        damaged.
        """
        arrays = {name: self._map(name) if scaled or name != "scale" else None for name in ARRAYS}
        for name in needed:
            if arrays[name] is None:
                raise RawlsError(
                    f"{self._path(name)} is missing: copy it there or write the shards again"
                )
        row_start, column = arrays["row_start"], arrays["column"]
        assert row_start is not None
        assert column is not None
        lengths = {"row_start": last - first + 1, "column": len(column), "weight": len(column)}
        text = arrays["id_text"]
        if text is not None:
            lengths |= {"id_start": last - first + 1, "id_text": len(text)}
        for name, array in arrays.items():
            wanted = lengths.get(name, last - first)
            if array is not None and len(array) != wanted:
                raise self._damaged(name, f"has {len(array):,} entries, not {wanted:,}")
        self._check_starts("row_start", row_start, len(column), "arcs")
        if text is not None and arrays["id_start"] is not None:
            self._check_starts("id_start", arrays["id_start"], len(text), "letters")
        self._check_values(arrays)
        return Shard(first, last, row_start, column, *(arrays[name] for name in list(ARRAYS)[2:]))

    def _path(self, name: str) -> Path:
        return array_path(self.folder, self.shard, name)

    def _check_starts(self, name: str, start: Array, length: int, what: str) -> None:
        before = 0
        for block in self._blocks(name, start):
            if block[0] < before or (np.diff(block) < 0).any():
                raise self._damaged(name, "has a row that ends before it begins")
            before = block[-1]
        if start[0] != 0 or before != length:
            raise self._damaged(name, f"does not run from 0 to the {length:,} {what} of the shard")

    def _check_values(self, arrays: dict[str, Array | None]) -> None:
        """Refuse values out of range; a comparison with NaN is false."""
        last, largest = self.num_nodes - 1, np.finfo(np.float64).max
        ranges: dict[str, tuple[float, float, str]] = {
            "column": (0, last, f"names nodes outside 0 to {last}"),
            "weight": (0, largest, "has weights that are negative, NaN or infinite"),
            "y": (-1, self.classes - 1, f"has labels outside -1 to {self.classes - 1}"),
            "split": (0, len(MASKS), f"has numbers outside 0 to {len(MASKS)}"),
            "scale": (np.finfo(np.float64).tiny, largest, "has entries that are not positive"),
        }
        for name, (low, high, wrong) in ranges.items():
            array = arrays[name]
            for block in () if array is None else self._blocks(name, array):
                if not low <= block.min() or not block.max() <= high:
                    raise self._damaged(name, wrong)
        y, split = arrays["y"], arrays["split"]
        if y is not None and split is not None:
            both = (self._blocks("y", y), self._blocks("split", split))
            if any(((y < 0) & (split > 0)).any() for y, split in zip(*both, strict=True)):
                raise self._damaged("split", "names nodes without a label")

    def _blocks(self, name: str, mapped: Array) -> Iterator[Array]:
        """What a mapped file holds, a part at a time, without a page of it becoming resident."""
        with self._path(name).open("rb") as file:
            file.seek(mapped.offset)  # type: ignore[attr-defined]
            for first in range(0, len(mapped), _BLOCK):
                yield np.fromfile(file, mapped.dtype, min(_BLOCK, len(mapped) - first))

    def _map(self, name: str) -> Array | None:
        path = self._path(name)
        if not path.is_file():
            return None
        try:
            with path.open("rb") as file:
                shape, dtype = read_header(file, path.stat().st_size)
        except Exception as error:  # a header is parsed as Python, which may fail in any way
            raise self._damaged(name) from error
        # Before numpy maps the file: it divides by the size of an entry, which may be 0.
        dimensions, kinds = ARRAYS[name]
        if len(shape) != dimensions or not all(type(size) is int and size >= 0 for size in shape):
            raise self._damaged(name)
        if dtype not in kinds:
            names = " or ".join(kind.__name__ for kind in kinds)
            raise self._damaged(name, f"holds {dtype}, not {names}")
        try:
            mapped: Array = np.load(path, mmap_mode="r", allow_pickle=False)
        except Exception as error:
            raise self._damaged(name) from error
        return mapped

    def _damaged(self, name: str, why: str = "") -> RawlsError:
        said = f"is damaged, it {why}" if why else "is damaged or cut short"
        repair = "write the shards again"
        if name == "scale":
            repair = f"balance again: rawlsgcn balance --shards {self.folder}"
        return RawlsError(f"{self._path(name)} {said}: {repair}")
