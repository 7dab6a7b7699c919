"""The user's own graphs, whatever file they come in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from torch_geometric.data import Data

from ..._core.errors import RawlsError, reading
from ..._core.threads import fork_safe_threads
from ..from_data import check_count, clean_ids, found_in, highest, stored_in
from ..raw_graph import Found
from ..splits import require_split
from ..validation import assemble
from .edge_lists import attach, read_edge_list
from .node_tables import Side, read_features, read_labels
from .npz_graphs import read_archive
from .tables import TABLES
from .torch_files import read_saved

FORMATS = (*TABLES, ".npz", ".pt")


@fork_safe_threads()
def read(
    path: str | Path,
    *,
    features: str | Path | None = None,
    labels: str | Path | None = None,
    split: str | None = None,
    need_features: bool = True,
    need_labels: bool = True,
) -> Data:
    """A graph from a file: .npz, an edge list (.csv, .tsv, .parquet), or a saved ``Data`` (.pt).

    ``features`` and ``labels`` are files of their own (.csv, .tsv, .parquet with the node id
    first; .npy or .npz in the order of the nodes); they take the place of what ``path`` holds.
    ``split`` is 'stored', 'paper' or 'random'; see :func:`.checks.assemble`. Who only balances
    or predicts sets ``need_labels`` (and ``need_features``) to ``False``. The formats are in
    docs/graphs.md.
    """
    require_split(split)
    beside = [Path(side).name for side in (features, labels) if side is not None]
    with reading(path, "a graph", beside):
        found = find(path, features=features, labels=labels)
        return assemble(found, split=split, need_features=need_features, need_labels=need_labels)


def find(
    path: str | Path, *, features: str | Path | None = None, labels: str | Path | None = None
) -> Found:
    """What the files hold, before any check: the edges still have their directions."""
    path = Path(path).expanduser()
    for file in (path, features, labels):
        if file is not None and not Path(file).expanduser().is_file():
            what = "is a folder, not a file" if Path(file).is_dir() else "does not exist"
            raise RawlsError(f"{file} {what}")
    label_side = None if labels is None else read_labels(Path(labels).expanduser())
    feature_side = None if features is None else read_features(Path(features).expanduser())
    sides = [side for side in (label_side, feature_side) if side is not None]

    suffix = path.suffix.lower()
    if suffix in TABLES:
        found = read_edge_list(path, sides)
    elif suffix == ".npz":
        found = _with_sides(read_archive(path), sides)
    elif suffix in (".pt", ".pth"):
        found = _with_sides(found_in(read_saved(path), path.name), sides)
    else:
        raise RawlsError(f"{path}: graphs are read from {', '.join(FORMATS)} files")
    if label_side is not None:
        found.y, found.labels_from = label_side.values, label_side.path.name
        # Masks beside new labels are the user's; those stored with the old ones still hold.
        found.masks = label_side.masks or found.masks
    if feature_side is not None:
        found.x, found.features_from = feature_side.values, feature_side.path.name
    found.notes += [note for side in sides for note in side.notes]
    return found


def _with_sides(found: Found, sides: list[Side]) -> Found:
    """Put keyed tables into the order of the graph's own nodes."""
    if any(side.table is not None for side in sides):
        attach(found, sides, _order(found))
    return found


def _order(found: Found) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    if found.node_ids is not None:
        return clean_ids(found.node_ids, found.graph_from)
    nodes = highest(found) + 1 if found.num_nodes is None else found.num_nodes
    if found.num_nodes is None and found.x is not None and found.x.ndim == 2:
        nodes = int(found.x.shape[0])
    return np.arange(check_count(nodes, found.graph_from, stored_in(found)))
