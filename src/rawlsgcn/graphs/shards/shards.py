"""A graph cut into shards, ranges of rows in files that are mapped, not read.

A folder of shards holds ``shards.json`` and, for shard 3, ``00003.json`` and ``00003-NAME.npy``;
:mod:`.shard_files` describes the arrays. Nothing in it is pickled.
"""

from __future__ import annotations

import hashlib
import json
import re
from functools import cached_property
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._core.atomic_files import atomic_file
from ..._core.errors import RawlsError
from ..._core.row_files import npy_blocks
from ..._core.serialization import (
    JsonFields,
    is_bool,
    is_nonnegative_int,
    is_positive_int,
    is_string,
    read_json,
)
from .shard_files import ARRAYS, array_path, open_shard
from .shard_files import Shard as Shard

Array = NDArray[Any]

MANIFEST = "shards.json"
_FORMAT = 1
#: Numbers of a scaling vector that are compared at a time.
_BLOCK = 1 << 17
#: The names of the files of a folder of shards, whatever it was cut into.
_OURS = re.compile(
    rf"shards\.json|\d{{5}}\.json|\d{{5}}-({'|'.join(ARRAYS)})\.npy|\.?smoothed-[0-9a-f]{{10}}"
)
#: The largest residual of a scaling vector that smoothing, training and predicting use.
_LARGEST_RESIDUAL = 1e-6


def _are_names(value: Any, classes: int) -> bool:
    return isinstance(value, list) and len(value) >= classes and all(map(is_string, value))


def _are_cuts(value: Any) -> bool:
    if not isinstance(value, list) or len(value) < 2 or not all(map(is_nonnegative_int, value)):
        return False
    return value[0] == 0 and all(a < b for a, b in pairwise(value))


#: What the manifest has.
_ENTRIES: JsonFields = {
    "format": (f"{_FORMAT}, which this version reads", lambda value: value == _FORMAT),
    "name": ("a name", is_string),
    "graph": ("the graph's fingerprint", is_string),
    "nodes": ("a whole number of at least 1", is_positive_int),
    "arcs": ("a whole number", is_nonnegative_int),
    "classes": ("a whole number", is_nonnegative_int),
    "negative_features": ("true or false", is_bool),
    "cuts": ("a list of rows from 0 that rise", _are_cuts),
}


class Shards:
    """A folder of shards; opening one maps its files, after one pass over their contents.

    Args:
        folder: A folder that :func:`write_shards` or another program wrote.

    Attributes:
        name: The name of the graph.
        fingerprint: The sizes and hashes of the whole graph.
        num_nodes: The number of nodes.
        num_arcs: The number of arcs, each edge counted twice.
        classes: The number of classes, 0 without labels.
        negative_features: Whether a feature is negative.
        cuts: The first row of each shard, and the number of nodes.
        class_names: The names of the classes; None if they are numbers.

    Raises:
        RawlsError: If the folder is not a complete set of shards.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        manifest = self.folder / MANIFEST
        about = _read_about(manifest, _ENTRIES)
        self.name, self.fingerprint = about["name"], about["graph"]
        self.num_nodes, self.num_arcs = about["nodes"], about["arcs"]
        self.classes, self.negative_features = about["classes"], about["negative_features"]
        self.cuts: list[int] = about["cuts"]
        self.class_names: list[str] | None = about.get("class_names")
        named = self.class_names is None or _are_names(self.class_names, self.classes)
        for holds, wrong in (
            (named, f"class_names must be a list of {self.classes} or more names"),
            (
                self.cuts[-1] == self.num_nodes,
                f"it cuts {self.cuts[-1]:,} rows of {self.num_nodes:,} nodes",
            ),
        ):
            if not holds:
                raise RawlsError(f"{manifest} is damaged: {wrong}; write the shards again")

    def __len__(self) -> int:
        return len(self.cuts) - 1

    def open(self, shard: int, *, scaled: bool = True) -> Shard:
        """Map one shard; its files must be there, be of this graph and fit each other.

        Args:
            shard: The number of the shard, from 0.
            scaled: Whether to open the piece of the scaling vector too.

        Returns:
            Its rows; the arrays are mapped, not read.

        Raises:
            RawlsError: If a file is missing, damaged or of another graph.
        """
        about = _read_about(self._about(shard), {"graph": _ENTRIES["graph"]})
        if about["graph"] != self.fingerprint:
            raise RawlsError(
                f"shard {shard} in {self.folder} is of another graph than {MANIFEST}: "
                "write the shards again"
            )
        return open_shard(self.folder, shard, self.cuts, self.classes, self._arrays, scaled)

    @cached_property
    def _arrays(self) -> list[str]:
        """The arrays that every shard must have: the rows, and those that any of them has.

        A single file that is lost would otherwise be a part of the graph without labels or ids.
        """
        found = {name for name in ARRAYS if any(path.exists() for path in self._paths(name))}
        found |= {"row_start", "column"} | ({"y"} if self.classes else set())
        if found & {"id_start", "id_text"}:
            found |= {"id_start", "id_text"}
        return [name for name in ARRAYS if name in found - {"scale"}]

    def _about(self, shard: int) -> Path:
        return self.folder / f"{shard:05d}.json"

    def _paths(self, name: str) -> list[Path]:
        return [array_path(self.folder, shard, name) for shard in range(len(self))]

    def open_all(self) -> list[Shard]:
        """Map every shard; together they must be the graph that the manifest describes."""
        opened = [self.open(shard) for shard in range(len(self))]
        arcs = sum(len(shard.column) for shard in opened)
        highest = max((int(shard.y.max()) for shard in opened if shard.y is not None), default=-1)
        widths = {shard.x.shape[1] for shard in opened if shard.x is not None}
        for differ, what in (
            (arcs != self.num_arcs, f"{arcs:,} arcs, not {self.num_arcs:,}"),
            (highest + 1 != self.classes, f"{highest + 1} classes, not {self.classes}"),
            (len(widths) > 1 or widths == {0}, f"features of {sorted(widths)} columns"),
        ):
            if differ:
                raise RawlsError(
                    f"the shards in {self.folder} do not fit together, they have {what}: "
                    "write the shards again"
                )
        return opened

    def require_labels(self) -> None:
        """Refuse shards without a label, which can only be balanced, smoothed and predicted on.

        Raises:
            RawlsError: If no node has a label.
        """
        if not self.classes:
            raise RawlsError(
                f"the shards in {self.folder} have no labels, so that there is nothing to learn "
                "from or to judge by: write them again with --labels, or 'predict' on them with a "
                "saved model"
            )

    def remove_scale(self, shard: int) -> None:
        """Remove the piece of the scaling vector, so that pieces of two are never together."""
        array_path(self.folder, shard, "scale").unlink(missing_ok=True)

    def files_digest(self, *names: str) -> str:
        """A digest of the sizes and the times of change of the files of these arrays."""
        found: list[tuple[int, int] | None] = []
        for paths in zip(*(self._paths(name) for name in names), strict=True):
            for path in paths:
                try:
                    about = path.stat()
                    found.append((about.st_size, about.st_mtime_ns))
                except FileNotFoundError:
                    found.append(None)
        return hashlib.blake2b(repr(found).encode(), digest_size=16).hexdigest()

    def has_scale(self, shard: int, scale: Array) -> bool:
        """Whether exactly this piece of a scaling vector is kept for a shard."""
        parts = (scale[first : first + _BLOCK] for first in range(0, len(scale), _BLOCK))
        try:
            kept = npy_blocks(array_path(self.folder, shard, "scale"), _BLOCK)
            pairs = zip_longest(kept, parts, fillvalue=())
            return all(np.array_equal(one, other) for one, other in pairs)
        except Exception:  # a header is parsed as Python, which may fail in any way
            return False

    def write_residual(self, shard: int, residual: float) -> None:
        """Note the residual of the scaling vector, the largest ``|sum − 1|`` of a row."""
        path = self._about(shard)
        about = {"graph": self.fingerprint, "scale_residual": residual}
        if _read_about(path, {}) != about:
            with atomic_file(path) as temporary:
                temporary.write_text(json.dumps(about) + "\n", encoding="utf-8")

    def require_balanced(self) -> None:
        """Refuse a scaling vector that is known to be a rough one.

        Raises:
            RawlsError: If balancing stopped at a residual above 1e-6.
        """
        for shard, path in enumerate(self._paths("scale")):
            about = _read_about(self._about(shard), {}) if path.exists() else {}
            residual = about.get("scale_residual")
            if isinstance(residual, float) and not residual <= _LARGEST_RESIDUAL:
                raise RawlsError(
                    f"the shards in {self.folder} are balanced to a residual of {residual:.1e} "
                    f"only, not {_LARGEST_RESIDUAL:.0e}: balance again: rawlsgcn balance --shards "
                    f"{self.folder}"
                )

    def write_scale(self, shard: int, scale: Array) -> None:
        """Keep the piece of the scaling vector that belongs to a shard's rows."""
        path = array_path(self.folder, shard, "scale")
        with atomic_file(path) as temporary, temporary.open("wb") as file:
            np.save(file, scale, allow_pickle=False)


def _read_about(path: Path, entries: JsonFields) -> dict[str, Any]:
    """Read a JSON file of the folder, which must have these entries."""
    try:
        return read_json(path, entries)
    except OSError as error:
        raise RawlsError(
            f"{path.parent} holds no whole set of shards: cannot read {path.name} "
            f"({error.strerror}); write them with 'rawlsgcn shard'"
        ) from error
    except RawlsError as error:
        raise RawlsError(f"{error}; write the shards again") from error


def require_own(folder: str | Path) -> None:
    """Refuse a folder with files that are not shards: shards written again replace the old ones."""
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


def outdated(name: str) -> bool:
    """Whether a file of this name in a folder of shards belongs to them, and goes with them.

    A scaling vector, weights or smoothed features of other shards are none of a new graph.
    """
    return _OURS.fullmatch(name) is not None


def write_manifest(folder: Path, **about: Any) -> None:
    """Write the JSON files that make the arrays in a folder a set of shards.

    Names of classes that are None are left out.
    """
    if about.get("class_names") is None:
        about.pop("class_names", None)
    text = json.dumps({"format": _FORMAT, **about}, indent=1) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8")
    for shard in range(len(about["cuts"]) - 1):
        text = json.dumps({"graph": about["graph"]}) + "\n"
        (folder / f"{shard:05d}.json").write_text(text, encoding="utf-8")
