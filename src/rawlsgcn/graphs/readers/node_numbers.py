"""The numbers of nodes that have ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..._core.errors import RawlsError

Array = NDArray[Any]
#: A table of all ids from the lowest to the highest has at most so many entries for each node.
_GAPS = 4


class TextIdsError(RawlsError):
    """Ids that are texts in one file, where those of the files before it are whole numbers."""


class NodeNumbers:
    """Find the places of ids in the order of the nodes.

    Args:
        order: The ids of the nodes, whole numbers or (as objects) texts, each once.
    """

    def __init__(self, order: Array) -> None:
        self.order = order
        self.is_text = order.dtype == object
        self.is_range = not self.is_text and bool(np.array_equal(order, np.arange(len(order))))
        self._table: Array | None = None
        self._index: Any = None
        if self.is_range:
            return
        if not self.is_text and len(order):
            self._low, high = int(order.min()), int(order.max())
            if high - self._low <= _GAPS * len(order):
                self._table = np.full(high - self._low + 1, -1, np.int64)
                self._table[order - self._low] = np.arange(len(order))
                return
        self._index = pd.Index(order, dtype=order.dtype)

    def __len__(self) -> int:
        return len(self.order)

    def find(self, ids: Array) -> NDArray[np.int64]:
        """Return the number of each node, -1 for those that there are not."""
        if self.is_range:
            return np.where((ids >= 0) & (ids < len(self.order)), ids, -1)
        if self._table is None:
            found = self._index.get_indexer(pd.Index(ids, dtype=self.order.dtype))
            return np.asarray(found, np.int64)
        inside = (ids >= self._low) & (ids < self._low + len(self._table))
        if inside.all():
            return np.asarray(self._table[ids - self._low])
        return np.where(inside, self._table[np.where(inside, ids - self._low, 0)], -1)

    def unknown(self, where: str) -> str:
        """Say that an id is none of them, for an error message."""
        if self.is_range:
            return f"out of range: {where} numbers its nodes from 0 to {len(self) - 1}"
        return f"not in {where}"


def no_row(path: Path, order: Array, missing: Array) -> RawlsError:
    """The error for a file without rows for the nodes ``missing``, numbers of ``order``."""
    named = ", ".join(str(order[node]) for node in missing[:3])
    more = f" and {len(missing) - 3:,} more" if len(missing) > 3 else ""
    return RawlsError(f"{path.name} has no row for node {named}{more}: every node needs one")
