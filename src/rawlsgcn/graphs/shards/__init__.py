"""A graph on disk in shards, ranges of its rows: their files, and what is read from them."""

from .shard_writer import write_shards
from .shards import Shards

__all__ = ["Shards", "write_shards"]
