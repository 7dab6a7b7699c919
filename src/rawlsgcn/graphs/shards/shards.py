"""A graph cut into shards, ranges of rows in files that are mapped, not read.

A folder of shards holds ``shards.json`` and, for shard 3, ``00003.json`` and ``00003-NAME.npy``;
:mod:`.shard_files` describes the arrays. Nothing in it is pickled.
"""

from __future__ import annotations

import hashlib
import io
import json
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..._core.atomic_files import atomic_file
from ..._core.atomic_folders import atomic_directory
from ..._core.errors import RawlsError
from ..._core.row_files import write_parts
from ..._core.serialization import is_string
from ..graph_statistics import fingerprint
from ..node_features import dense_rows, has_negative_features
from ..splits import MASKS
from .shard_cuts import require_count, shard_cuts
from .shard_files import ARRAYS, ShardFiles, array_path, save_node_ids
from .shard_files import Shard as Shard
from .shard_folder import ENTRIES, MANIFEST, outdated, read_about, require_own, write_manifest

if TYPE_CHECKING:
    from torch_geometric.data import Data

Array = NDArray[Any]

#: The largest residual of a scaling vector that smoothing, training and predicting use.
_LARGEST_RESIDUAL = 1e-6
#: Rows of sparse features that are made dense at a time.
_ROWS = 1 << 14


def _are_names(value: Any, classes: int) -> bool:
    return isinstance(value, list) and len(value) >= classes and all(map(is_string, value))


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
        about = read_about(self.folder / MANIFEST, ENTRIES)
        self.name, self.fingerprint = about["name"], about["graph"]
        self.num_nodes, self.num_arcs = about["nodes"], about["arcs"]
        self.classes, self.negative_features = about["classes"], about["negative_features"]
        self.cuts: list[int] = about["cuts"]
        self.class_names: list[str] | None = about.get("class_names")
        if self.class_names is not None and not _are_names(self.class_names, self.classes):
            raise RawlsError(
                f"{self.folder / MANIFEST} is damaged: class_names must be a list of "
                f"{self.classes} or more names; write the shards again"
            )
        if self.cuts[-1] != self.num_nodes:
            raise RawlsError(
                f"{self.folder / MANIFEST} is damaged: it cuts {self.cuts[-1]:,} rows of "
                f"{self.num_nodes:,} nodes; write the shards again"
            )

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
        about = read_about(self.folder / f"{shard:05d}.json", {"graph": ENTRIES["graph"]})
        if about["graph"] != self.fingerprint:
            raise RawlsError(
                f"shard {shard} in {self.folder} is of another graph than {MANIFEST}: "
                "write the shards again"
            )
        files = ShardFiles(self.folder, shard, self.num_nodes, self.classes)
        first, last = self.cuts[shard : shard + 2]
        return files.open(first, last, self._arrays, scaled)

    @cached_property
    def _arrays(self) -> list[str]:
        """The arrays that every shard must have: the rows, and those that any of them has.

        A single file that is lost would otherwise be a part of the graph without labels or ids.
        """
        paths = {
            name: [array_path(self.folder, i, name) for i in range(len(self))] for name in ARRAYS
        }
        found = {name for name in paths if any(path.exists() for path in paths[name])}
        found |= {"row_start", "column"} | ({"y"} if self.classes else set())
        if found & {"id_start", "id_text"}:
            found |= {"id_start", "id_text"}
        return [name for name in ARRAYS if name in found - {"scale"}]

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

    def scale_digest(self) -> str | None:
        """A digest of the scaling vector's files; None if a piece is missing."""
        digest = hashlib.blake2b(digest_size=16)
        try:
            for shard in range(len(self)):
                with array_path(self.folder, shard, "scale").open("rb") as file:
                    while part := file.read(1 << 20):
                        digest.update(part)
        except FileNotFoundError:
            return None
        return digest.hexdigest()

    def has_scale(self, shard: int, scale: Array) -> bool:
        """Whether exactly this piece of a scaling vector is kept for a shard."""
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            header, np.lib.format.header_data_from_array_1_0(scale)
        )
        expected = np.ascontiguousarray(scale).data.cast("B")
        try:
            with array_path(self.folder, shard, "scale").open("rb") as file:
                same = file.read(len(header.getbuffer())) == header.getbuffer()
                for first in range(0, len(expected), 1 << 20):
                    part = expected[first : first + (1 << 20)]
                    same = same and file.read(len(part)) == part
                return same and not file.read(1)
        except OSError:
            return False

    def write_residual(self, shard: int, residual: float) -> None:
        """Note the residual of the scaling vector, the largest ``|sum − 1|`` of a row."""
        path = self.folder / f"{shard:05d}.json"
        about = {"graph": self.fingerprint, "scale_residual": residual}
        if read_about(path, {}) != about:
            with atomic_file(path) as temporary:
                temporary.write_text(json.dumps(about) + "\n", encoding="utf-8")

    def require_balanced(self) -> None:
        """Refuse a scaling vector that is known to be a rough one.

        Raises:
            RawlsError: If balancing stopped at a residual above 1e-6.
        """
        for shard in range(len(self)):
            if not array_path(self.folder, shard, "scale").exists():
                continue
            residual = read_about(self.folder / f"{shard:05d}.json", {}).get("scale_residual")
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


def write_shards(graph: Data, count: int, folder: str | Path) -> Shards:
    """Cut a validated graph into ranges of rows of about equal size on disk.

    Args:
        graph: A graph from ``load``, ``read``, ``synthetic`` or ``check``.
        count: The number of shards.
        folder: Where to write them. Shards that are there already are replaced.

    Returns:
        The shards.

    Raises:
        RawlsError: If the folder holds anything else, or there are more shards than nodes.
    """
    require_own(folder)
    nodes = int(graph.num_nodes)
    require_count(count, nodes)
    row, column = graph.edge_index.numpy()
    row_start = np.zeros(nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(row, minlength=nodes), out=row_start[1:])
    cuts = shard_cuts(row_start, count)
    ids = graph.get("node_ids")
    # Texts stay objects: numpy's own would all be as long as the longest of them.
    ids = np.array(ids, dtype=object) if isinstance(ids, list) else ids
    small = np.int32 if nodes < 2**31 else np.int64
    weight = graph.get("edge_weight")
    split = np.zeros(nodes, dtype=np.uint8)
    for number, name in enumerate(MASKS, start=1):
        if graph.get(name) is not None:
            split[graph[name].numpy()] = number

    with atomic_directory(folder, outdated) as temporary:

        def save(shard: int, name: str, array: Array) -> None:
            np.save(array_path(temporary, shard, name), array, allow_pickle=False)

        for shard in range(count):
            rows = slice(cuts[shard], cuts[shard + 1])
            arcs = slice(int(row_start[rows.start]), int(row_start[rows.stop]))
            save(shard, "row_start", row_start[rows.start : rows.stop + 1] - arcs.start)
            save(shard, "column", column[arcs].astype(small))
            if weight is not None:
                save(shard, "weight", weight[arcs].numpy())
            if graph.get("x") is not None:
                _save_features(array_path(temporary, shard, "x"), graph.x, rows)
            if graph.get("y") is not None:
                save(shard, "y", graph.y[rows].numpy())
            save(shard, "split", split[rows])
            save_node_ids(temporary, shard, None if ids is None else ids[rows])
        write_manifest(
            temporary,
            name=str(graph.get("name") or "graph"),
            graph=fingerprint(graph),
            nodes=nodes,
            arcs=len(column),
            classes=0 if graph.get("y") is None else int(graph.y.max()) + 1,
            negative_features=graph.get("x") is not None and has_negative_features(graph.x),
            cuts=cuts,
            class_names=graph.get("class_names"),
        )
    return Shards(folder)


def _save_features(path: Path, x: torch.Tensor, rows: slice) -> None:
    parts = (
        dense_rows(x, first, min(first + _ROWS, rows.stop))
        for first in range(rows.start, rows.stop, _ROWS)
    )
    with path.open("wb") as file:
        write_parts(file, (rows.stop - rows.start, x.shape[1]), np.float32, parts)
