"""The matrix that an external sort appends to its files, range by range of rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._core.errors import RawlsError

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class SortedArcs:
    """A symmetric matrix in CSR form: row starts in memory, columns and weights in plain files.

    Attributes:
        row_start: Where the arcs of each row begin, of the length nodes + 1.
        column: The file of the columns, int32.
        weight: The file of the weights, float32; None if all of them are one.
    """

    row_start: NDArray[np.int64]
    column: Path
    weight: Path | None

    @property
    def num_arcs(self) -> int:
        """The number of arcs, each edge counted twice."""
        return int(self.row_start[-1])


@dataclass
class MergedRows:
    """The merged arcs of some rows."""

    first: int
    last: int
    counts: Array
    column: Array
    values: Array | None
    taken: int
    merged: int
    forward: int
    tiny: int
    unequal: int = 0


class MergedFiles:
    """The files of the merged matrix, while they are written."""

    def __init__(self, folder: Path, nodes: int, weighted: bool) -> None:
        self._column, self._weight = folder / "column", folder / "weight"
        self._row_start = np.zeros(nodes + 1, np.int64)
        self._all_ones = True
        self._weighted = weighted
        self.pairs = self.tiny = self.unequal = 0

    def __enter__(self) -> MergedFiles:
        self._files = [self._column.open("wb")]
        if self._weighted:
            self._files.append(self._weight.open("wb"))
        return self

    def __exit__(self, *error: object) -> None:
        for file in self._files:
            file.close()

    def append(self, part: MergedRows) -> None:
        self._row_start[part.first + 1 : part.last + 1] = part.counts
        part.column.tofile(self._files[0])
        if part.values is not None:
            self._all_ones &= bool((part.values == 1).all())
            with np.errstate(over="ignore"):
                values = part.values.astype(np.float32)
            if not np.isfinite(values).all():
                raise RawlsError("weights over 3e38 do not fit: divide them first")
            values.tofile(self._files[1])
        self.pairs += part.merged
        self.tiny += part.tiny
        self.unequal += part.unequal

    def result(self) -> SortedArcs:
        np.cumsum(self._row_start, out=self._row_start)
        kept = self._weighted and not self._all_ones
        return SortedArcs(self._row_start, self._column, self._weight if kept else None)
