"""Files that are read in batches into shards: edge lists, and folders of the benchmark OGB."""

from __future__ import annotations

import gzip
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from rawlsgcn.graphs.streaming.file_shards import shard_files
from rawlsgcn.graphs.streaming.ogb_folders import shard_ogb

from ..reader import Files, Reader
from .graphs import NODES, SOURCE, TARGET, X, Y, npz
from .graphs import READERS as GRAPHS

_FORMATS = ("csv", "tsv", "txt", "parquet", "npy")


def _seeds() -> list[Files]:
    """The graphs with files of features and labels, of every format of edge lists."""
    seeds = [files for each in GRAPHS if each.name in _FORMATS for files in each.seeds]
    return [files for files in seeds if {name.split(".")[0] for name in files} == {"g", "x", "y"}]


def _read(folder: Path) -> object:
    files = {path.stem: path for path in folder.iterdir()}
    with TemporaryDirectory() as out:
        shards, _ = shard_files(
            Path(out, "shards"), 2, files["g"], files["x"], files["y"], memory=1
        )
        return [part.node_ids(part.first, part.last) for part in shards.open_all()]


def _ogb_seeds() -> list[Files]:
    edges = np.stack([SOURCE, TARGET])
    arrays = {"edge_index": edges, "node_feat": X.astype(np.float32), "num_nodes_list": [NODES]}
    tables = {"edge": edges.T, "node-feat": X, "node-label": Y[:, None], "num-node-list": [[NODES]]}
    text = {
        f"{name}.csv.gz": gzip.compress(
            "".join(",".join(map(str, row)) + "\n" for row in np.asarray(table).tolist()).encode()
        )
        for name, table in tables.items()
    }
    return [{"data.npz": npz(**arrays), "node-label.npz": npz(node_label=Y[:, None] * 1.0)}, text]


def _read_ogb(folder: Path) -> object:
    with TemporaryDirectory() as out:
        shards, _ = shard_ogb(Path(out, "shards"), 2, folder, memory=1)
        return [part.column.sum() for part in shards.open_all()]


READERS = [
    Reader("batches", _seeds, _read, known_as=("shards",)),
    Reader("ogb", _ogb_seeds, _read_ogb, known_as=("shards", "raw")),
]
