"""Folders of shards."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from rawlsgcn.balancing.distributed import balance_shards
from rawlsgcn.graphs.shards import Shards, write_shards
from rawlsgcn.training.sources import Source

from ..reader import Files, Reader
from . import graphs as tiny
from .models import _graph


def _read(folder: Path) -> object:
    shards = Shards(folder)
    if len(shards) == 1:
        balance_shards(shards, max_iterations=20)
    source = Source.of_shards(shards)
    nodes = np.arange(tiny.NODES)
    return source.features(nodes), source.adjacency.degree


def _seeds() -> list[Files]:
    seeds = []
    for count in (1, 2):
        with TemporaryDirectory() as folder:
            write_shards(_graph(), count, folder)
            seeds.append({path.name: path.read_bytes() for path in Path(folder).iterdir()})
    return seeds


READERS = [Reader("shards", _seeds, _read)]
