"""The graphs of the catalog by name, downloaded by torch_geometric's dataset classes and read here.

torch_geometric keeps a processed copy of each graph beside the raw files. Here the raw files are
read each time and nothing is written, so the root may be read-only; and they are read sparsely,
where torch_geometric would make a dense matrix (1.1 GB for Coauthor-Physics). The readers of these
files are equal to torch_geometric's ``process`` but for that; each takes the raw paths in the order
of the dataset class and returns a :class:`RawGraph`.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from torch_geometric import datasets as pyg
from torch_geometric.data import Data

from .._core.atomic_folders import atomic_directory
from .._core.errors import RawlsError, reading
from .._core.threads import fork_safe_threads
from .catalog import MASKS, SYNTHETIC, DatasetEntry, catalog_entry, data_root
from .raw_graph import RawGraph, endpoints
from .readers.arrays import Archive, coo_matrix, csr_matrix, plausible, shape_of
from .readers.read_graph import read_raw_graph
from .readers.safe_pickles import NUMPY, Call, array_of, load_inert
from .splits import SplitChoice, parse_split
from .synthetic_graph import synthetic
from .validation import validate

Array = NDArray[Any]
_MATRICES = {f"scipy.sparse.{module}.csr_matrix" for module in ("csr", "_csr")}
#: What the pickles of Planetoid may name.
_KNOWN = (NUMPY | _MATRICES | {"builtins.list"}).__contains__


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
        if split == "stored" and not raw.masks:
            raise RawlsError(
                f"{entry.title} comes with no split of its own: use 'paper' or 'random'"
            )
        raw.facts.published_split = entry.split == "stored" and split in (None, "stored")
        graph = validate(raw, split=split or entry.split, sparse=sparse)
    if split in (None, "paper"):  # the one that everybody uses for these graphs: no note
        raw.facts.split_drawn = ""
        graph.facts = raw.facts.pairs()
    if not raw.undirected and graph.edge_index.size(1) != len(raw.source):
        graph.stored_edges = len(raw.source)
    return graph


class _InMemory:
    """Over a torch_geometric dataset class: read the raw files each time, and write nothing."""

    entry: DatasetEntry
    raw_paths: list[str]
    graph: RawGraph
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
            self.graph = READERS[str(self.entry.loader)]([Path(path) for path in self.raw_paths])
        except Exception as error:
            raise RawlsError(
                f"{self.entry.name}: the files in {self.raw_dir} cannot be read ({error}): "
                "delete them so that they are downloaded again, or copy them again"
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


def _read(entry: DatasetEntry, root: Path) -> RawGraph:
    if entry.loader is None:
        return read_raw_graph(entry.raw_paths(root)[0])
    base = getattr(pyg, entry.loader)
    kind: Any = type(f"InMemory{entry.loader}", (_InMemory, base), {"entry": entry})
    graph: RawGraph = kind(str(root), entry.loader_name).graph
    return graph


def read_npz(paths: list[Path]) -> RawGraph:
    """The archives of CitationFull, Coauthor and Amazon: binarised features, symmetric edges."""
    archive = Archive(paths[0])
    attr, adj, y = archive.csr("attr"), archive.csr("adj"), archive.first(("labels",))
    if attr is None or adj is None or y is None or adj.shape[0] != adj.shape[1]:
        raise RawlsError(f"{paths[0]} has no attr, no labels, or no square adj")
    adj = adj.tocoo()
    attr.data = np.where(attr.data > 0, 1, attr.data).astype(np.float32)
    y = _labels(y, paths[0])
    name, nodes = paths[0].stem, adj.shape[0]
    return RawGraph(name, adj.row, adj.col, num_nodes=nodes, x=attr, y=y, undirected=True)


def read_planetoid(paths: list[Path]) -> RawGraph:
    """The eight files of a Planetoid graph.

    Seven of them are pickles, which can run code: they are read as data
    (:mod:`.readers.safe_pickles`). Nodes that the test index leaves out (there are some in
    Citeseer) have no features and class 0.
    """
    tx, allx = (_features(paths[place]) for place in (1, 2))
    y, ty, ally = (_one_hot(paths[place]) for place in (3, 4, 5))
    with reading(paths[7], "the test nodes"):
        test = np.array(paths[7].read_text("utf-8").split(), dtype=np.int64)
        if len(test) != len(np.unique(test)) or not len(test):
            raise RawlsError(f"{paths[7]} must name every test node once")
        first, last = int(test.min()), int(test.max())
        if first != len(ally) or not plausible(last, len(test)) or len(test) != len(ty):
            raise RawlsError(
                f"{paths[7]} does not fit the {len(ally)} other nodes or {paths[4].name}"
            )
    if tx.shape != (len(ty), allx.shape[1]) or allx.shape[0] != len(ally):
        raise RawlsError(f"{paths[1]} and {paths[2].name} do not fit each other and the labels")
    if ty.shape[1] != ally.shape[1] or len(y) > len(ally):
        raise RawlsError(f"{paths[4]} and {paths[5].name} have different classes")
    nodes = last + 1
    # Row i of tx is the i-th test node as the index lists them.
    rows = np.concatenate([np.arange(len(ally)), test])
    stacked = sp.vstack([allx, tx]).tocoo()
    x = coo_matrix(stacked.data, rows[stacked.row], stacked.col, (nodes, allx.shape[1]))
    labels = np.zeros(nodes, dtype=np.int64)
    labels[rows] = np.concatenate([ally, ty]).argmax(1)
    masks = {name: np.zeros(nodes, dtype=bool) for name in MASKS}
    masks["train_mask"][: len(y)] = True
    masks["val_mask"][len(y) : len(y) + 500] = True
    masks["test_mask"][test] = True
    source, target = _neighbors(paths[6], nodes)
    return RawGraph(paths[6].name, source, target, num_nodes=nodes, x=x, y=labels, masks=masks)


def read_geom_gcn(paths: list[Path]) -> RawGraph:
    """The text files of Geom-GCN and its ten splits: directed arcs, as they are stored."""
    with reading(paths[0], "a table of nodes"):
        rows = [line.split("\t") for line in paths[0].read_text("utf-8").splitlines()[1:]]
        if not rows:
            raise RawlsError(f"{paths[0]} has no nodes in it")
        x = np.array([np.array(row[1].split(","), dtype=np.float32) for row in rows])
        y = np.array([int(row[2]) for row in rows])
    with reading(paths[1], "a table of arcs"):
        arcs = np.loadtxt(paths[1], dtype=np.int64, skiprows=1, ndmin=2)
        arcs = np.unique(arcs, axis=0).T.copy()
    splits: dict[str, list[Any]] = {key: [] for key in MASKS}
    for path in paths[2:]:
        masks = Archive(path).masks()
        for key in MASKS:
            if (
                key not in masks
                or masks[key].shape != y.shape
                or masks[key].dtype.kind not in "biuf"
            ):
                raise RawlsError(f"{path} has no {key} of {len(y)} nodes")
            splits[key].append(masks[key].astype(bool))
    return RawGraph(
        paths[1].stem,
        *endpoints(arcs, paths[1].name),
        num_nodes=len(y),
        x=x,
        y=_labels(y, paths[0]),
        masks={key: np.stack(masks, 1) for key, masks in splits.items()},
    )


READERS: dict[str, Callable[[list[Path]], RawGraph]] = {
    "CitationFull": read_npz,
    "Coauthor": read_npz,
    "Amazon": read_npz,
    "Planetoid": read_planetoid,
    "WikipediaNetwork": read_geom_gcn,
}


def _labels(y: Any, path: Path) -> Array:
    if y.ndim != 1 or y.dtype.kind not in "iu":
        raise RawlsError(
            f"{path} has labels of {y.dtype} {y.shape}: one integer a node is expected"
        )
    return np.asarray(y, dtype=np.int64)


def _features(path: Path) -> Any:
    """A pickled CSR matrix."""
    with reading(path, "a sparse matrix"):
        found = load_inert(path.read_bytes(), _KNOWN)
        state = found.state if isinstance(found, Call) and found.name in _MATRICES else None
        if not isinstance(state, dict):
            raise RawlsError(f"{path} holds no sparse matrix")
        data, indices, indptr = (
            array_of(state.get(name)) for name in ("data", "indices", "indptr")
        )
        shape = np.array(state.get("_shape", state.get("shape")))
        return csr_matrix(data, indices, indptr, shape_of(shape))


def _one_hot(path: Path) -> Any:
    """A pickled matrix with a row a node and a column a class."""
    with reading(path, "a matrix"):
        matrix = array_of(load_inert(path.read_bytes(), _KNOWN))
        if matrix.ndim != 2 or not matrix.shape[1] or matrix.dtype.kind not in "biuf":
            raise RawlsError(f"{path} must hold a row for each node and a column for each class")
        return matrix


def _neighbors(path: Path, nodes: int) -> tuple[Array, Array]:
    """The arcs of a pickled table of each node's neighbors, each once and without self-loops."""
    with reading(path, "a table of neighbors"):
        table = load_inert(path.read_bytes(), _KNOWN)
        if not isinstance(table, dict) or not all(
            isinstance(each, list) for each in table.values()
        ):
            raise RawlsError(f"{path} holds no table of neighbors")
        rows = list(table.values())
        numbers = [*table, *(each for row in rows for each in row)]
        if not all(type(each) is int and 0 <= each < nodes for each in numbers):
            raise RawlsError(f"{path} names nodes outside of 0 to {nodes - 1}")
        source = np.repeat(np.array([*table], np.int64), [len(row) for row in rows])
        target = np.array(numbers[len(table) :], dtype=np.int64)
        arcs = np.unique(source[source != target] * nodes + target[source != target])
        return np.divmod(arcs, nodes)
