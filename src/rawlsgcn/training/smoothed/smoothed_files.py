"""The files of smoothed features: one folder beside the shards for each choice of settings.

``SHARDS/smoothed-KEY`` has ``smoothed.json``, which says what was computed of which graph, and for
shard 3 the file ``00003.npy``: the rows of Π F of its nodes, float32 in row-major order. The folder
appears whole or not at all. KEY is a digest of the settings, so that several can lie side by side;
a folder of another graph, which was cut into the same shards before, or of files that have changed
since, such as a scaling vector that balancing again has replaced, counts as missing.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._core.errors import RawlsError
from ..._core.row_files import read_rows
from ..._core.serialization import JsonFields, is_positive_int, read_json
from ...graphs.readers.arrays import read_header
from ...graphs.shards.shards import Shards
from ...methods import Settings
from ...methods.smoothed_mlp_inputs import SmoothedMLPSettings

Ints = NDArray[np.int64]
Rows = NDArray[np.float32]
MANIFEST = "smoothed.json"
#: Bytes of rows that are read at once.
READ_BYTES = 8 << 20
_FORMAT = 1
_ENTRIES: JsonFields = {
    "format": (f"{_FORMAT}, which this version reads", lambda value: value == _FORMAT),
    "features": ("a whole number of at least 1", is_positive_int),
}
#: The settings that smoothed rows depend on; and the values of those that need a graph in memory
#: with any other.
SMOOTHING_SETTINGS = ("normalization", "teleport", "steps", "normalize_features")
ON_DISK = {"features": "raw", "inputs": "smoothed", "min_degree": 0}


def why_not_rows(settings: Settings, method: str = "the method") -> str | None:
    """Say why a method cannot be trained on smoothed rows on disk; None if it can."""
    if not isinstance(settings, SmoothedMLPSettings):
        return f"{method} needs the edges while it trains: use smoothed-mlp"
    for name, only in ON_DISK.items():
        value = getattr(settings, name)
        if value != only:
            return f"{name}={value} needs the whole graph in memory: use {name}={only}"
    return None


@dataclass(frozen=True)
class SmoothedForm:
    """What the smoothed features of shards are made of, and so the name of their folder.

    Attributes:
        normalization: ``"doubly-stochastic"`` or ``"renormalized"``.
        teleport: α, the share of the own features in each step.
        steps: K, the number of steps.
        row_normalized: Whether each row of F was divided by its sum first.
        dtype: The type of the numbers, ``"float32"``.
    """

    normalization: str
    teleport: float
    steps: int
    row_normalized: bool
    dtype: str = "float32"

    @classmethod
    def of(cls, shards: Shards, settings: Settings) -> SmoothedForm:
        """Take what matters from the settings of a smoothed MLP.

        Raises:
            RawlsError: If the features of these settings can only be made in memory.
        """
        why_not = why_not_rows(settings)
        if why_not is not None:
            raise RawlsError(f"the features of shards cannot be smoothed so: {why_not}")
        assert isinstance(settings, SmoothedMLPSettings)
        return cls(
            normalization=settings.normalization,
            teleport=float(settings.teleport),
            steps=int(settings.steps),
            row_normalized=settings.normalize_features and not shards.negative_features,
        )

    @property
    def name(self) -> str:
        """The name of the folder."""
        text = json.dumps([_FORMAT, *asdict(self).values()])
        return f"smoothed-{hashlib.blake2b(text.encode(), digest_size=5).hexdigest()}"

    def manifest(self, shards: Shards, features: int) -> dict[str, Any]:
        """The content of ``smoothed.json`` for so many features of these shards."""
        read = ["row_start", "column", "weight", "x"]
        if self.normalization == "doubly-stochastic":
            read.append("scale")
        return {
            "format": _FORMAT,
            "graph": shards.fingerprint,
            **asdict(self),
            "features": features,
            "files": shards.files_digest(*read),
            "cuts": shards.cuts,
        }


class SmoothedRows:
    """The rows of Π F of all nodes, in the mapped files of a folder, one for each shard."""

    def __init__(self, folder: Path, parts: Sequence[np.memmap[Any, Any]]) -> None:
        self.folder, self.parts = folder, list(parts)
        self.cuts = [0, *np.cumsum([len(part) for part in parts]).tolist()]
        self.num_features = int(parts[0].shape[1])

    def __len__(self) -> int:
        return int(self.cuts[-1])

    def read(self, first: int, last: int) -> Rows:
        """Read rows into memory; no page of the files becomes part of this process.

        Raises:
            RawlsError: If a file was cut short, or has numbers that are not finite.
        """
        out = np.empty((last - first, self.num_features), dtype=self.parts[0].dtype)
        row, shard = first, bisect_right(self.cuts, first) - 1
        while row < last:
            end = min(last, self.cuts[shard + 1])
            part = out[row - first : end - first]
            read_rows(self.parts[shard], row - self.cuts[shard], part)
            with np.errstate(all="ignore"):
                # One number tells, unless it overflows itself.
                if not np.isfinite(part.sum()) and not np.isfinite(part).all():
                    raise _damaged(self.folder / f"{shard:05d}.npy", "has NaN or infinite numbers")
            row, shard = end, shard + 1
        return out


def read_blocks(
    file: SmoothedRows, nodes: Ints, block_bytes: int = READ_BYTES
) -> Iterator[tuple[slice, Rows]]:
    """Read the rows of some nodes, in rising order, about so many bytes at a time.

    Yields:
        Which of the nodes a block holds, and their rows.
    """
    block = max(1, block_bytes // (4 * file.num_features))
    at = 0
    while at < len(nodes):
        first = int(nodes[at])
        stop = int(np.searchsorted(nodes, first + block))
        rows, part = file.read(first, int(nodes[stop - 1]) + 1), slice(at, stop)
        yield part, rows if len(rows) == stop - at else rows[nodes[part] - first]
        at = stop


def take_rows(file: SmoothedRows, nodes: Ints, out: Rows | None = None) -> Rows:
    """Read the rows of some nodes, in rising order, into ``out`` or a new array."""
    rows = np.empty((len(nodes), file.num_features), dtype=np.float32) if out is None else out
    for part, block in read_blocks(file, nodes):
        rows[part] = block
    return rows


def open_smoothed(shards: Shards, form: SmoothedForm) -> SmoothedRows | None:
    """Open the smoothed features of that form; None if there are none of this graph and scaling."""
    folder = shards.folder / form.name
    try:
        about = read_json(folder / MANIFEST, _ENTRIES)
    except OSError:
        return None
    except RawlsError as error:
        raise RawlsError(f"{error}; remove {folder} and smooth again") from error
    features = about["features"]
    if any(about.get(name) != value for name, value in form.manifest(shards, features).items()):
        return None
    parts = [
        map_rows(folder / f"{shard:05d}.npy", (last - first, features), form.dtype)
        for shard, (first, last) in enumerate(pairwise(shards.cuts))
    ]
    return SmoothedRows(folder, parts)


def map_rows(path: Path, shape: tuple[int, int], dtype: str) -> np.memmap[Any, Any]:
    """Map a file of rows, which must have that shape and type."""
    try:
        with path.open("rb") as file:
            found = read_header(file, path.stat().st_size)
        mapped = np.load(path, mmap_mode="r", allow_pickle=False) if found[0] == shape else None
    except (OSError, EOFError, ValueError) as error:
        raise _damaged(path) from error
    if mapped is None or mapped.dtype != dtype or not mapped.flags.c_contiguous:
        raise _damaged(path)
    return mapped  # type: ignore[no-any-return]


def _damaged(path: Path, why: str = "is missing, damaged or cut short") -> RawlsError:
    return RawlsError(f"{path} {why}: remove {path.parent} and run 'rawlsgcn smooth'")
