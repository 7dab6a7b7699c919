"""The raw files of the paper's graphs, as they were published.

The readers are equal to the ``process`` of torch_geometric's dataset classes, but they never make a
sparse matrix dense. Each takes the raw paths in the order of the class.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..._core.errors import RawlsError, reading
from ..catalog import MASKS
from ..graph_objects import raw_from_parts
from ..raw_graph import RawGraph, endpoints
from .arrays import Archive, graph_parts, plausible, shape_of, sparse_matrix
from .safe_pickles import NUMPY, Call, array_of, load_inert

Array = NDArray[Any]
_MATRICES = {f"scipy.sparse.{module}.csr_matrix" for module in ("csr", "_csr")}
#: What the pickles of Planetoid may name.
_KNOWN = (NUMPY | _MATRICES | {"builtins.list"}).__contains__


def read_npz(paths: list[Path]) -> RawGraph:
    """The archives of CitationFull, Coauthor and Amazon: binarised features, symmetric edges."""
    raw = raw_from_parts(graph_parts(paths[0]), paths[0].name, paths[0].stem)
    if raw.weight is None or raw.y is None or not sp.issparse(raw.x):
        raise RawlsError(f"{paths[0]} has no attr, no labels, or no adj")
    raw.x.data = np.where(raw.x.data > 0, 1, raw.x.data).astype(np.float32)
    raw.weight, raw.undirected = None, True
    return raw


def read_planetoid(paths: list[Path]) -> RawGraph:
    """The eight files of a Planetoid graph.

    Seven of them are pickles, which can run code: they are read as data
    (:mod:`.safe_pickles`). Nodes that the test index leaves out (there are some in
    Citeseer) have no features and class 0.
    """
    tx, allx = (_unpickled(path, _matrix) for path in paths[1:3])
    y, ty, ally = (_unpickled(path, _one_hot) for path in paths[3:6])
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
    x = sparse_matrix("coo", stacked.data, rows[stacked.row], stacked.col, (nodes, allx.shape[1]))
    labels = np.zeros(nodes, dtype=np.int64)
    labels[rows] = np.concatenate([ally, ty]).argmax(1)
    masks = {name: np.zeros(nodes, dtype=bool) for name in MASKS}
    masks["train_mask"][: len(y)] = True
    masks["val_mask"][len(y) : len(y) + 500] = True
    masks["test_mask"][test] = True
    source, target = _unpickled(paths[6], lambda found: _neighbors(found, nodes))
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
    source, target = endpoints(arcs, paths[1].name)
    splits: dict[str, list[Any]] = {key: [] for key in MASKS}
    for path in paths[2:]:
        stored = Archive(path).masks()
        for key, drawn in splits.items():
            mask = stored.get(key, np.empty(0))
            if mask.shape != y.shape or mask.dtype.kind not in "biuf":
                raise RawlsError(f"{path} has no {key} of {len(y)} nodes")
            drawn.append(mask.astype(bool))
    masks = {key: np.stack(drawn, 1) for key, drawn in splits.items()}
    return RawGraph(paths[1].stem, source, target, num_nodes=len(y), x=x, y=y, masks=masks)


READERS: dict[str, Callable[[list[Path]], RawGraph]] = {
    "CitationFull": read_npz,
    "Coauthor": read_npz,
    "Amazon": read_npz,
    "Planetoid": read_planetoid,
    "WikipediaNetwork": read_geom_gcn,
}


def _unpickled(path: Path, convert: Callable[[Any], Any]) -> Any:
    """What ``convert`` makes of the content of a pickle, which is read as data."""
    with reading(path, "a pickle of arrays"):
        return convert(load_inert(path.read_bytes(), _KNOWN))


def _matrix(found: Any) -> Any:
    """A CSR matrix."""
    state = found.state if isinstance(found, Call) and found.name in _MATRICES else None
    if not isinstance(state, dict):
        raise RawlsError("holds no sparse matrix")
    data, indices, indptr = (array_of(state.get(name)) for name in ("data", "indices", "indptr"))
    shape = np.array(state.get("_shape", state.get("shape")))
    return sparse_matrix("csr", data, indices, indptr, shape_of(shape))


def _one_hot(found: Any) -> Any:
    """A matrix with a row a node and a column a class."""
    matrix = array_of(found)
    if matrix.ndim != 2 or not matrix.shape[1] or matrix.dtype.kind not in "biuf":
        raise RawlsError("must hold a row for each node and a column for each class")
    return matrix


def _neighbors(table: Any, nodes: int) -> tuple[Array, Array]:
    """The arcs of a table of each node's neighbors, each once and without self-loops."""
    if not isinstance(table, dict) or not all(isinstance(each, list) for each in table.values()):
        raise RawlsError("holds no table of neighbors")
    rows = list(table.values())
    numbers = [*table, *(each for row in rows for each in row)]
    if not all(type(each) is int and 0 <= each < nodes for each in numbers):
        raise RawlsError(f"names nodes outside of 0 to {nodes - 1}")
    source = np.repeat(np.array([*table], np.int64), [len(row) for row in rows])
    target = np.array(numbers[len(table) :], dtype=np.int64)
    arcs = np.unique(source[source != target] * nodes + target[source != target])
    return np.divmod(arcs, nodes)
