"""Graphs that do not fit in memory: read or drawn in batches, sorted on disk, cut into shards."""
