"""The graphs of the catalog by name, downloaded by torch_geometric's dataset classes and read here.

torch_geometric keeps a processed copy of each graph beside the raw files. Here the raw files are
read each time and nothing is written, so the root may be read-only; and they are read sparsely,
where torch_geometric would make a dense matrix (1.1 GB for Coauthor-Physics).
"""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.error import URLError

from torch_geometric import datasets as pyg
from torch_geometric.data import Data

from .._core.atomic_folders import atomic_directory
from .._core.errors import RawlsError, reading
from .._core.threads import fork_safe_threads
from .catalog import SYNTHETIC, DatasetEntry, catalog_entry, data_root
from .raw_graph import RawGraph
from .readers.published_files import READERS
from .readers.read_graph import read_raw_graph
from .splits import SplitChoice, parse_split
from .synthetic_graph import synthetic
from .validation import validate


@fork_safe_threads()
def load(
    name: str,
    *,
    root: str | Path | None = None,
    split: SplitChoice = None,
    sparse: bool = False,
) -> Data:
    """Load one of the named graphs, or the synthetic one, with its split.

    Args:
        name: One of :func:`rawlsgcn.graphs.catalog.datasets`, in upper or lower case.
        root: The folder of the raw files (default: RAWLSGCN_DATA, else a cache in the user's
            home). Files that are missing there are downloaded into it.
        split: 'paper' (20 training nodes per class, 500 for validation, 1,000 for the test),
            'stored' (the first one that came with the graph), 'random', or the shares of training,
            validation and test nodes, as '0.6,0.2,0.2'. The default is the paper's; for Chameleon,
            as in the paper's table, the stored one.
        sparse: Return ``x`` as ``torch.sparse_csr`` if under 10 % of it is non-zero. By default
            ``x`` is dense, as torch_geometric's layers expect it, unless that would fill more than
            a quarter of this machine's memory (a warning says so).

    Returns:
        A validated graph; docs/graphs.md lists its attributes.

    Raises:
        RawlsError: If there is no such graph, or its files are damaged or cannot be downloaded.

    Example:
        >>> import rawlsgcn as rg
        >>> graph = rg.load("synthetic")  # or "amazon-photo", which is downloaded
        >>> graph.x.shape
        torch.Size([3000, 600])
        >>> int(graph.train_mask.sum())
        120
    """
    split = parse_split(split)
    if str(name).lower() == SYNTHETIC:
        return synthetic(split=split, sparse=sparse)
    entry = catalog_entry(name)
    folder = data_root(root)
    if folder.exists() and not folder.is_dir():
        raise RawlsError(
            f"{folder} is a file, not a folder: name the folder of the raw files with "
            "--data-root (root=...) or RAWLSGCN_DATA"
        )
    with reading(entry.raw_dir(folder), "a graph", (entry.title, entry.name)):
        raw = _read(entry, folder)
        raw.name = entry.name
        raw.graph_from = raw.features_from = raw.labels_from = entry.title
        # Geom-GCN stores ten splits side by side.
        raw.masks = {key: mask.reshape(len(mask), -1)[:, 0] for key, mask in raw.masks.items()}
        raw.facts.published_split = entry.split == "stored" and split in (None, "stored")
        graph = validate(raw, split=split or entry.split, sparse=sparse)
    if split in (None, "paper"):  # the one that everybody uses for these graphs: no note
        raw.facts.split_drawn = ""
        graph.facts = raw.facts.pairs()
    if not raw.undirected and graph.edge_index.size(1) != len(raw.source):
        graph.stored_edges = len(raw.source)
    return graph


def _read(entry: DatasetEntry, root: Path) -> RawGraph:
    paths = entry.raw_paths(root)
    if entry.loader is None:
        files = {path.name: path for path in paths}
        beside = {"labels": entry.labels, "features": entry.features}
        given = {what: files.get(name, name) for what, name in beside.items() if name}
        return read_raw_graph(paths[0], **given)
    if not all(path.exists() for path in paths):
        _download(entry, root)
    try:
        return READERS[entry.loader](paths)
    except Exception as error:
        raise RawlsError(
            f"{entry.name}: the files in {entry.raw_dir(root)} cannot be read ({error}): "
            "delete them so that they are downloaded again, or copy them again"
        ) from error


def _download(entry: DatasetEntry, root: Path) -> None:
    """Let the class of torch_geometric download the raw files, and do nothing else."""
    raw = entry.raw_dir(root)
    absent = [folder for folder in raw.parents if not folder.exists()]
    timeout = socket.getdefaulttimeout()
    socket.setdefaulttimeout(30)
    try:
        # Half of a file would pass for the whole the next time.
        with atomic_directory(raw) as folder:
            instead = {"raw_dir": str(folder), "_process": _nothing, "load": _nothing}
            kind: Any = type(str(entry.loader), (getattr(pyg, str(entry.loader)),), instead)
            kind(str(root), entry.loader_name)
    except BaseException as error:
        for made in absent:
            with suppress(OSError):
                made.rmdir()
        if not isinstance(error, Exception):
            raise
        # A connection that fails is an OSError too, which the folder takes for its own.
        cause = error.__cause__ if isinstance(error.__cause__, URLError) else error
        reason = " ".join(str(cause).split()) or type(cause).__name__
        raise RawlsError(
            f"{entry.name} is not in {raw} and cannot be downloaded into it "
            f"({reason}): name the folder that has it with --data-root or RAWLSGCN_DATA"
        ) from error
    finally:
        socket.setdefaulttimeout(timeout)


def _nothing(*_: Any) -> None:
    """Stand in for the methods that process and load the files."""
