"""An external sort: arcs that come in batches, as a symmetric CSR matrix in files.

The arcs of the batches are packed into 64-bit keys (row, column, direction), both directions of
each. As many as the memory allows are sorted at a time and written to a file, a sorted run. Then
ranges of rows are taken from all runs at once, sorted, merged and appended to the matrix. Ranges
are chosen by the keys themselves, so that a few rows with most of the arcs do no harm.

The result is that of :func:`rawlsgcn.graphs.edges.clean_edges`, whatever the batches and the
memory: weights of repeated arcs are added up from the smallest to the largest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._core.errors import RawlsError
from ..._core.progress import ProgressCallback, no_progress
from ..._core.threads import num_threads, ordered_map
from ..notes import GraphFacts

Array = NDArray[Any]

#: The memory for each arc of a run: two runs at a time, one filled and one sorted, with weights.
_BYTES_AN_ARC = 128
_FEWEST, _MOST = 1 << 12, 1 << 25
#: One key in so many of a run is remembered, to choose ranges of rows by.
_SAMPLED = 1 << 8
_TINY = float(np.finfo(np.float32).tiny)


#: Reads the columns or weights of the arcs from a first one up to a last one.
ArcReader = Callable[[int, int], Array]


class SortedArcs(NamedTuple):
    """A symmetric matrix in CSR form: row starts in memory, columns and weights in files.

    Attributes:
        row_start: Where the arcs of each row begin, of the length nodes + 1.
        column: Reads the columns, int32.
        weight: Reads the weights, float32; None if all of them are one.
    """

    row_start: NDArray[np.int64]
    column: ArcReader
    weight: ArcReader | None


class _Merged(NamedTuple):
    """The merged arcs of some rows.

    ``tally`` counts the entries that were merged, the arcs, those of them that were given in this
    direction, those that are too light to keep, and those that have another weight in the other
    direction.
    """

    rows: slice
    counts: Array
    column: NDArray[np.int32]
    weight: NDArray[np.float32]
    all_ones: bool
    tally: Array


class ArcSorter:
    """Sort arcs that come in batches, in bounded memory.

    Args:
        num_nodes: The number of nodes, below 2³¹.
        weighted: Whether the arcs have weights.
        folder: An empty folder for the files; the caller removes it.
        memory: The bytes to use, about.
        facts: What is dropped and merged is counted here.
    """

    def __init__(
        self, num_nodes: int, *, weighted: bool, folder: Path, memory: int, facts: GraphFacts
    ) -> None:
        if num_nodes >= 2**31:
            raise RawlsError(
                f"a graph of {num_nodes:,} nodes is too large: at most 2,147,483,647 can be sorted"
            )
        self._nodes, self._weighted = num_nodes, weighted
        self._folder, self._facts = folder, facts
        self._bits = max(1, (num_nodes - 1).bit_length())
        self._size = min(max(memory // _BYTES_AN_ARC, _FEWEST), _MOST)
        self._runs: list[tuple[Path, int]] = []  # sorted files of keys, and their lengths
        self._samples: list[Array] = []
        self._writer = ThreadPoolExecutor(1, "rawlsgcn-sort")
        self._writing: Future[None] | None = None
        self._kept = 0
        self._begin_run()

    def add(self, source: Array, target: Array, weight: Array | None = None) -> None:
        """Add arcs between nodes that are numbered from 0, whose range the caller has checked."""
        keep = source != target
        self._facts.self_loops += len(source) - int(np.count_nonzero(keep))
        if weight is not None:
            empty = keep & (weight == 0)
            self._facts.zero_weights += int(np.count_nonzero(empty))
            keep &= ~empty
        if not keep.all():
            source, target = source[keep], target[keep]
            weight = None if weight is None else weight[keep]
        self._kept += len(source)
        for row, column, direction in ((source, target, 0), (target, source, 1)):
            keys = row.astype(np.int64)
            keys <<= self._bits
            keys |= column
            keys <<= 1
            keys |= direction
            self._append(keys, weight)

    def finish(self, progress: ProgressCallback = no_progress) -> SortedArcs:
        """Merge the runs into one matrix, and remove them."""
        self._end_run()
        self._wait()
        del self._keys, self._weights
        row_start = np.zeros(self._nodes + 1, np.int64)
        column, weight = self._folder / "column", self._folder / "weight"
        tally, all_ones = np.zeros(5, np.int64), True
        with column.open("wb") as columns, weight.open("wb") as weights:
            for part in ordered_map(self._merge, self._ranges()):
                row_start[1:][part.rows] = part.counts
                part.column.tofile(columns)
                part.weight.tofile(weights)
                all_ones &= part.all_ones
                tally += part.tally
                progress(int(tally[0]), 2 * self._kept, "merging the arcs")
        for run, _ in self._runs:
            for path in (run, _weights_of(run)):
                path.unlink(missing_ok=True)
        self._count_facts(*tally[1:].tolist())
        np.cumsum(row_start, out=row_start)
        reader = None if all_ones else partial(_read, weight, np.float32)
        return SortedArcs(row_start, partial(_read, column, np.int32), reader)

    def __enter__(self) -> ArcSorter:
        return self

    def __exit__(self, *error: object) -> None:
        """Stop the thread that writes, also after an error."""
        self._writer.shutdown(cancel_futures=True)

    def _count_facts(self, pairs: int, forward: int, tiny: int, unequal: int) -> None:
        facts = self._facts
        if self._kept > forward:
            facts.repeated_edges += self._kept - forward
            facts.weights_summed = self._weighted
        if pairs > forward:
            facts.one_way_arcs, facts.arcs = pairs - forward, forward
        else:
            facts.unequal_weights += unequal // 2
        facts.tiny_weights += tiny // 2

    # ---- runs ------------------------------------------------------------------------------------

    def _begin_run(self) -> None:
        self._keys = np.empty(self._size, np.int64)
        self._weights = np.empty(self._size) if self._weighted else None
        self._used = 0

    def _append(self, keys: Array, weight: Array | None) -> None:
        first = 0
        while first < len(keys):
            count = min(len(keys) - first, self._size - self._used)
            into = slice(self._used, self._used + count)
            self._keys[into] = keys[first : first + count]
            if self._weights is not None:
                assert weight is not None
                self._weights[into] = weight[first : first + count]
            self._used += count
            first += count
            if self._used == self._size:
                self._end_run()
                self._begin_run()

    def _end_run(self) -> None:
        self._wait()
        if self._used:
            keys = self._keys[: self._used]
            weights = None if self._weights is None else self._weights[: self._used]
            self._writing = self._writer.submit(self._write_run, keys, weights)

    def _wait(self) -> None:
        if self._writing is not None:
            self._writing.result()
            self._writing = None

    def _write_run(self, keys: Array, weights: Array | None) -> None:
        path = self._folder / f"run-{len(self._runs):05d}"
        if weights is None:
            keys.sort()
            keys = keys[_first_of_equal(keys)]
        else:
            order = np.argsort(keys)
            keys = keys[order]
            weights[order].tofile(_weights_of(path))
        keys.tofile(path)
        self._samples.append(keys[::_SAMPLED] >> (self._bits + 1))
        self._runs.append((path, len(keys)))

    # ---- ranges of rows --------------------------------------------------------------------------

    def _ranges(self) -> Iterator[tuple[slice, list[tuple[Path, int, int]]]]:
        """Ranges of rows with the entries of each run in them, about evenly many in each."""
        samples = np.sort(np.concatenate([*self._samples, np.empty(0, np.int64)]))
        # As many ranges are in memory at a time as there are threads, and one more that waits.
        each = max(1, self._size // (2 * (num_threads() + 1)) // _SAMPLED)
        inner = np.unique(samples[each::each])
        rows = np.array([0, *inner[inner > 0], self._nodes])
        paths, begins = [path for path, _ in self._runs], []
        for path, length in self._runs:
            keys = np.memmap(path, np.int64, "r", shape=(length,))
            begins.append(np.searchsorted(keys, rows << (self._bits + 1)).tolist())
        for place, (first, last) in enumerate(pairwise(rows.tolist())):
            ends = ((begin[place], begin[place + 1]) for begin in begins)
            parts = [(path, *both) for path, both in zip(paths, ends, strict=True)]
            yield slice(first, last), parts

    def _merge(self, range_: tuple[slice, list[tuple[Path, int, int]]]) -> _Merged:
        rows, parts = range_
        none = np.empty(0, np.int64)
        keys = np.concatenate([none, *(_read(path, np.int64, a, b) for path, a, b in parts)])
        values = np.empty(0)
        if self._weighted:
            read = [_read(_weights_of(path), np.float64, a, b) for path, a, b in parts]
            pairs, values, tally = _add_up(keys, np.concatenate([values, *read]))
        else:
            taken = len(keys)
            keys.sort()
            keys = keys[_first_of_equal(keys)]
            forward = np.count_nonzero(keys & 1 == 0)
            keys >>= 1
            pairs = keys[_first_of_equal(keys)]
            tally = np.array([taken, len(pairs), forward, 0, 0])
        with np.errstate(over="ignore"):
            weight = values.astype(np.float32)
        if not np.isfinite(weight).all():
            raise RawlsError("weights over 3e38 do not fit: divide them first")
        column = (pairs & ((1 << self._bits) - 1)).astype(np.int32)
        counts = np.bincount((pairs >> self._bits) - rows.start, minlength=rows.stop - rows.start)
        return _Merged(rows, counts, column, weight, bool((values == 1).all()), tally)


def _add_up(keys: Array, weights: Array) -> tuple[Array, Array, Array]:
    """The sums of the weights of each arc, the mean of both directions, and their tally."""
    order = np.argsort(keys)
    keys, weights = keys[order], weights[order]
    start = np.flatnonzero(_first_of_equal(keys))
    _sort_within(weights, start)
    sums = np.add.reduceat(weights, start) if len(start) else weights
    keys = keys[start]
    pairs = keys >> 1
    begin = np.flatnonzero(_first_of_equal(pairs))
    both = np.diff(begin, append=len(pairs)) == 2
    values, other = sums[begin], sums[begin[both] + 1]
    unequal = np.count_nonzero(values[both] != other)
    values[both] = (values[both] + other) / 2
    pairs, kept = pairs[begin], values >= _TINY
    forward, tiny = np.count_nonzero(keys & 1 == 0), np.count_nonzero(~kept)
    tally = np.array([len(weights), len(pairs), forward, tiny, unequal])
    return (pairs[kept], values[kept], tally) if tiny else (pairs, values, tally)


def _first_of_equal(values: Array) -> NDArray[np.bool_]:
    """Mark the first of equal neighbors."""
    first = np.empty(len(values), bool)
    first[:1] = True
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return first


def _sort_within(weights: Array, start: Array) -> None:
    """Sort the weights of each group of three or more, so that their sum is always the same."""
    sizes = np.diff(start, append=len(weights))
    large = sizes > 2
    if large.any():
        group = np.repeat(np.arange(len(start)), sizes)
        places = np.flatnonzero(large[group])
        weights[places] = weights[places][np.lexsort((weights[places], group[places]))]


def _weights_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-weight")


def _read(path: Path, kind: type[np.generic], first: int, last: int) -> Array:
    """Some entries of a plain file, read and not mapped."""
    return np.fromfile(path, kind, last - first, offset=first * np.dtype(kind).itemsize)
