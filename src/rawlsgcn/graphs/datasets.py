"""The paper's seven graphs by name, through torch_geometric's dataset classes.

torch_geometric keeps a processed copy of each graph beside the raw files. Here the raw files are
read each time and nothing is written, so the root may be read-only; and they are read sparsely,
where torch_geometric would make a dense matrix (1.1 GB for Coauthor-Physics).
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any
from urllib.error import URLError

from torch_geometric import datasets as pyg
from torch_geometric.data import Data

from .._core.atomic_files import atomic_directory
from .._core.errors import RawlsError, reading
from .._core.threads import fork_safe_threads
from .catalog import SYNTHETIC, DatasetEntry, catalog_entry, data_root
from .raw_graph import raw_from_data
from .readers.raw_datasets import READERS
from .splits import MASKS, require_split
from .synthetic_graph import synthetic
from .validation import validate


@fork_safe_threads()
def load(name: str, *, root: str | Path | None = None, split: str | None = None) -> Data:
    """One of the paper's graphs, or 'synthetic', with its split.

    ``root`` is the folder of the raw files (default: RAWLSGCN_DATA, else a cache in the user's
    home); what is not there is downloaded into it. ``split`` is 'paper' (20 training nodes per
    class, 500 for validation, 1,000 for the test), 'stored' (the first one that came with the
    graph) or 'random'. The default is the paper's; for Chameleon, as in the paper's table, the
    stored one.
    """
    require_split(split)
    if name.lower() == SYNTHETIC:
        return synthetic(split=split)
    entry = catalog_entry(name)
    folder = data_root(root)
    if folder.exists() and not folder.is_dir():
        raise RawlsError(
            f"{folder} is a file, not a folder: name the folder of the raw files with "
            "--data-root (root=...) or RAWLSGCN_DATA"
        )
    with reading(entry.raw_dir(folder), "a graph", (entry.title, entry.name)):
        data = _read(entry, folder)
        stored_edges = int(data.edge_index.size(1))
        found = raw_from_data(data, entry.title)
        found.name = entry.name
        # Geom-GCN stores ten splits side by side.
        found.masks = {key: mask.reshape(len(mask), -1)[:, 0] for key, mask in found.masks.items()}
        if split == "stored" and not found.masks:
            raise RawlsError(
                f"{entry.title} comes with no split of its own: use 'paper' or 'random'"
            )
        graph = validate(found, split=split or entry.split)
    if graph.edge_index.size(1) != stored_edges:
        graph.stored_edges = stored_edges
    if entry.split == "stored" and split in (None, "stored"):
        sizes = " / ".join(f"{int(graph[key].sum()):,}" for key in MASKS)
        graph.notes.append(
            f"the first stored split of {entry.title} is used ({sizes} nodes), which the paper's "
            "printed accuracies come from; the 20-per-class split of its text is --split paper."
        )
    return graph


class _InMemory:
    """Over a torch_geometric dataset class: process the raw files anew, and write nothing."""

    entry: DatasetEntry
    raw_paths: list[str]
    graph: Data
    #: Where to download to, until all of it is there.
    _to: Path | None = None

    @property
    def raw_dir(self) -> str:
        return str(self._to or super().raw_dir)  # type: ignore[misc]

    def _download(self) -> None:
        if all(Path(path).exists() for path in self.raw_paths):
            return
        raw = Path(self.raw_dir)
        kept = next(folder for folder in (raw, *raw.parents) if folder.exists())
        timeout = socket.getdefaulttimeout()
        socket.setdefaulttimeout(30)
        try:
            # Half of a file would pass for the whole the next time.
            with atomic_directory(raw) as self._to:
                super()._download()  # type: ignore[misc]
        except BaseException as error:
            _remove_empty(raw.parent, kept)
            if not isinstance(error, Exception):
                raise
            # A connection that fails is an OSError too, which the folder takes for its own.
            cause = error.__cause__ if isinstance(error.__cause__, URLError) else error
            reason = " ".join(str(cause).split()) or type(cause).__name__
            raise RawlsError(
                f"{self.entry.name} is not in {raw} and cannot be downloaded into it "
                f"({reason}): name the folder that has it with --data-root or RAWLSGCN_DATA"
            ) from error
        finally:
            self._to = None
            socket.setdefaulttimeout(timeout)

    def _process(self) -> None:
        try:
            self.graph = READERS[self.entry.loader]([Path(path) for path in self.raw_paths])
        except Exception as error:
            raise RawlsError(
                f"{self.entry.name}: the files in {self.raw_dir} cannot be read ({error}): "
                "delete them so that they are downloaded again, or copy them anew"
            ) from error

    def load(self, path: str) -> None:
        """The graph is already in memory."""


def _remove_empty(folder: Path, kept: Path) -> None:
    """Remove a folder and those above it that are empty, up to ``kept``, which was there before."""
    while folder != kept and folder.is_relative_to(kept):
        try:
            folder.rmdir()
        except FileNotFoundError:
            pass
        except OSError:
            return
        folder = folder.parent


def _read(entry: DatasetEntry, root: Path) -> Data:
    base = getattr(pyg, entry.loader)
    kind: Any = type(f"InMemory{entry.loader}", (_InMemory, base), {"entry": entry})
    graph: Data = kind(str(root), entry.loader_name).graph
    return graph
