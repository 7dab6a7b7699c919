"""The splits of the evaluation: the graph's own, further ones drawn alike, or stored ones."""

from __future__ import annotations

import copy
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.graphs import load
from rawlsgcn.graphs.catalog import CATALOG, MASKS, data_root
from rawlsgcn.graphs.split_choice import default_split
from rawlsgcn.graphs.splits import Split, evaluate_on, paper_split, random_split

if TYPE_CHECKING:
    from torch_geometric.data import Data

#: Split k > 0 is drawn with the seed FIRST_SEED + k.
FIRST_SEED = 1000


def load_split(name: str, split: int, root: Path | None = None) -> Data:
    """Load a graph with one of its splits.

    Args:
        name: A name of the catalog, or 'synthetic'.
        split: 0 is the graph's own split: the paper's. Others are drawn like it, or, where the
            graph comes with several splits (Chameleon), are the stored ones.
        root: The folder of the datasets.

    Returns:
        The graph; its test nodes are all labeled nodes outside training and validation.

    Raises:
        RawlsError: If the graph stores fewer splits.
    """
    graph = copy.copy(_graph(name, root))
    if split:
        if name in CATALOG and CATALOG[name].split == "stored":
            masks = stored_split(name, split, root)
        elif default_split(graph.y) == "paper":
            masks = paper_split(graph.y, seed=FIRST_SEED + split)
        else:
            masks = random_split(graph.y, seed=FIRST_SEED + split)
        for key, mask in zip(MASKS, masks, strict=True):
            graph[key] = mask & (graph.y >= 0)
    return evaluate_on(graph, "all")


def stored_split(name: str, split: int, root: Path | None = None) -> Split:
    """Read one of the splits that are stored beside a graph of the catalog."""
    entry = CATALOG[name]
    files = [path for path in entry.raw_paths(data_root(root)) if path.suffix == ".npz"]
    if split >= len(files):
        raise RawlsError(
            f"{entry.title} stores {len(files)} splits, there is no split {split}: "
            f"use --splits {len(files)} at most"
        )
    with np.load(files[split]) as stored:
        return Split(*(torch.from_numpy(stored[key].astype(bool)) for key in MASKS))


@lru_cache(maxsize=1)
def _graph(name: str, root: Path | None) -> Data:
    """The graph of the last call is kept: its splits are evaluated one after another."""
    return load(name, root=root, sparse=True)
