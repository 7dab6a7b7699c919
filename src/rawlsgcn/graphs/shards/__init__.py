"""A graph on disk in shards, ranges of its rows: their files, and what is read from them."""

from .shards import Shards, write_shards

__all__ = ["Shards", "write_shards"]
