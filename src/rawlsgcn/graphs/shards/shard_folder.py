"""The folder of a set of shards: the names of its files, its manifest, and where it is cut."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._core.errors import RawlsError
from ..._core.serialization import (
    JsonFields,
    is_bool,
    is_nonnegative_int,
    is_positive_int,
    is_string,
    read_json,
)
from ..._core.text import plural
from .shard_files import ARRAYS

Array = NDArray[Any]

MANIFEST = "shards.json"
FORMAT = 1
#: The names of the files of a folder of shards, whatever it was cut into.
_OURS = re.compile(
    rf"shards\.json|\d{{5}}\.json|\d{{5}}-({'|'.join(ARRAYS)})\.npy|\.?smoothed-[0-9a-f]{{10}}"
)


def _are_cuts(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) > 1
        and all(map(is_nonnegative_int, value))
        and value[0] == 0
        and all(a < b for a, b in pairwise(value))
    )


#: What the manifest has.
ENTRIES: JsonFields = {
    "format": (f"{FORMAT}, which this version reads", lambda value: value == FORMAT),
    "name": ("a name", is_string),
    "graph": ("the graph's fingerprint", is_string),
    "nodes": ("a whole number of at least 1", is_positive_int),
    "arcs": ("a whole number", is_nonnegative_int),
    "classes": ("a whole number", is_nonnegative_int),
    "negative_features": ("true or false", is_bool),
    "cuts": ("a list of rows from 0 that rise", _are_cuts),
}


def read_about(path: Path, entries: JsonFields) -> dict[str, Any]:
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


def require_count(count: int, nodes: int) -> None:
    """Raise an error if a graph of so many nodes cannot be cut into ``count`` shards."""
    if not 1 <= count <= nodes:
        raise RawlsError(
            f"a graph of {plural(nodes, 'node')} cannot be cut into {plural(count, 'shard')}, of "
            f"which each has a node or more: give a --count of 1 to {nodes:,}"
        )


def write_manifest(folder: Path, **about: Any) -> None:
    """Write the JSON files that make the arrays in a folder a set of shards.

    Names of classes that are None are left out.
    """
    if about.get("class_names") is None:
        about.pop("class_names", None)
    text = json.dumps({"format": FORMAT, **about}, indent=1) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8")
    for shard in range(len(about["cuts"]) - 1):
        text = json.dumps({"graph": about["graph"]}) + "\n"
        (folder / f"{shard:05d}.json").write_text(text, encoding="utf-8")


def shard_cuts(row_start: Array, count: int) -> list[int]:
    """Rows at which to cut so that rows and arcs together, the bytes, are shared evenly."""
    nodes = len(row_start) - 1
    load = row_start + np.arange(nodes + 1)
    inner = np.searchsorted(load, load[-1] * np.arange(1, count) / count)
    # Every shard has a row of its own, however much one hub weighs.
    inner = np.maximum(inner, np.arange(1, count))
    inner = np.maximum.accumulate(inner - np.arange(1, count)) + np.arange(1, count)
    inner = np.minimum(inner, nodes - count + np.arange(1, count))
    return [0, *inner.tolist(), nodes]
