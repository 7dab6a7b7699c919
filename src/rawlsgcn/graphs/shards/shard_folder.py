"""The folder of a set of shards: the names of its files, and its manifest."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..._core.errors import RawlsError
from ..._core.serialization import (
    JsonFields,
    is_bool,
    is_nonnegative_int,
    is_positive_int,
    is_string,
    read_json,
)
from .shard_files import ARRAYS

MANIFEST = "shards.json"
FORMAT = 1
#: The names of the files of a folder of shards, whatever it was cut into.
_OURS = re.compile(
    rf"shards\.json|\d{{5}}\.json|\d{{5}}-({'|'.join(ARRAYS)})\.npy|\.?smoothed-[0-9a-f]{{10}}"
)


def _are_cuts(value: Any) -> bool:
    """Whether a value of the manifest can be where a graph was cut."""
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
