"""Rows of smoothed features as training and prediction need them: some of many, read in order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Rows = NDArray[np.float32]
#: Bytes of rows that are read at once.
READ_BYTES = 8 << 20


class RowFile(Protocol):
    """Rows on disk, such as :class:`.smoothed_files.SmoothedRows`.

    Attributes:
        num_features: The number of columns.
    """

    num_features: int

    def read(self, first: int, last: int) -> Rows: ...


def read_blocks(
    file: RowFile, nodes: Ints, block_bytes: int = READ_BYTES
) -> Iterator[tuple[slice, Rows]]:
    """Read the rows of some nodes, a block at a time.

    Args:
        file: The rows of all nodes.
        nodes: The numbers of the nodes, in rising order.
        block_bytes: Bytes of rows that are read at once.

    Yields:
        Which of the nodes a block holds, and their rows.
    """
    block = max(1, block_bytes // (4 * file.num_features))
    at = 0
    while at < len(nodes):
        first = int(nodes[at])
        stop = int(np.searchsorted(nodes, first + block))
        last = int(nodes[stop - 1]) + 1
        rows = file.read(first, last)
        part = slice(at, stop)
        yield part, rows if len(rows) == stop - at else rows[nodes[part] - first]
        at = stop


def read_rows(file: RowFile, nodes: Ints, out: Rows | None = None) -> Rows:
    """Read the rows of some nodes.

    Args:
        file: The rows of all nodes.
        nodes: The numbers of the nodes, in rising order.
        out: Where to write them; by default a new array.

    Returns:
        Their rows, of shape (number of nodes, features).
    """
    rows = np.empty((len(nodes), file.num_features), dtype=np.float32) if out is None else out
    for part, block in read_blocks(file, nodes):
        rows[part] = block
    return rows
