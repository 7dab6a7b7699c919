"""Whether files are read at once or in batches: what reading them at once would take."""

from __future__ import annotations

from pathlib import Path

from ..readers.table_formats import TABLES, is_parquet

#: What reading in memory takes at its peak for each byte of a file: of text, .parquet, or arrays.
_TEXT, _PARQUET, _ARRAYS = 12, 40, 3


def memory_in_memory(*paths: Path | None) -> int:
    """Estimate the bytes that reading these files at once takes.

    Args:
        *paths: An edge list, and features and labels where they are files of their own.
    """

    def factor(path: Path) -> int:
        if is_parquet(path):
            return _PARQUET
        return _TEXT if path.suffix.lower() in TABLES else _ARRAYS

    files = [path.expanduser() for path in paths if path is not None]
    return sum(factor(path) * path.stat().st_size for path in files if path.is_file())


def can_stream(graph: Path) -> bool:
    """Whether a graph can be read in batches: an edge list, features and labels beside it."""
    return graph.suffix.lower() in TABLES
