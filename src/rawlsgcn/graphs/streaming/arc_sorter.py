"""An external sort: arcs that come in batches, as a symmetric CSR matrix in files.

The arcs of the batches are packed into 64-bit keys (row, column, direction), both directions of
each. As many as the memory allows are sorted at a time and written to a file, a sorted run. Then
ranges of rows are taken from all runs at once, sorted, merged and appended to the matrix. Ranges
are chosen by the keys themselves, so that a few rows with most of the arcs do no harm.

The result is that of :func:`rawlsgcn.graphs.edges.clean_edges`, whatever the batches and the
memory: weights of repeated arcs are added up from the smallest to the largest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
from ..readers.edge_lists import EdgeBatch
from ..shards.shard_writer import ArcReader

Array = NDArray[Any]
#: Keys of both directions, and weights if there are any.
Keys = tuple[Array, Array | None]
#: The memory for each key of a run: one run is filled, one waits and one is sorted, with weights.
_BYTES_A_KEY = 128
_FEWEST, _MOST = 1 << 12, 1 << 25
#: One key in so many of a run is remembered, to choose ranges of rows by.
_SAMPLED = 1 << 8
_TINY = float(np.finfo(np.float32).tiny)


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


class _Run(NamedTuple):
    """A sorted file of keys, one of their weights, and how many keys there were and are left."""

    keys: Path
    weights: Path
    added: int
    length: int
    samples: Array


class _Merged(NamedTuple):
    """The merged arcs of some rows.

    ``tally`` counts the keys that were merged, the arcs, those of them that were given in this
    direction, those that are too light to keep, those that have another weight in the other
    direction, and those of any other weight than one.
    """

    rows: slice
    counts: Array
    column: NDArray[np.int32]
    weight: NDArray[np.float32]
    tally: Array


def sort_arcs(
    batches: Iterable[EdgeBatch],
    num_nodes: int,
    *,
    weighted: bool,
    folder: Path,
    memory: int,
    facts: GraphFacts,
    where: str = "the graph",
    progress: ProgressCallback = no_progress,
) -> SortedArcs:
    """Sort arcs that come in batches, in bounded memory.

    Args:
        batches: Arcs between nodes that are numbered from 0, whose range has been checked.
        num_nodes: The number of nodes, below 2³¹.
        weighted: Whether the arcs have weights.
        folder: An empty folder for the files; the caller removes it.
        memory: The bytes to use, about.
        facts: What is dropped and merged is counted here.
        where: The source of the arcs, for error messages.
        progress: Called while the sorted arcs are merged.
    """
    if num_nodes >= 2**31:
        raise RawlsError(
            f"{where}: a graph of {num_nodes:,} nodes is too large: at most 2,147,483,647 can be "
            "sorted"
        )
    bits = max(1, (num_nodes - 1).bit_length())
    size = min(max(memory // _BYTES_A_KEY, _FEWEST), _MOST)
    collected = enumerate(_collect(batches, bits, size, facts))
    runs = list(ordered_map(partial(_write_run, folder, bits), collected, threads=1))
    added = sum(run.added for run in runs)
    row_start, tally = np.zeros(num_nodes + 1, np.int64), np.zeros(6, np.int64)
    column, weight = folder / "column", folder / "weight"
    merge = partial(_merge, bits=bits, weighted=weighted, where=where)
    with column.open("wb") as columns, weight.open("wb") as weights:
        for part in ordered_map(merge, _ranges(runs, num_nodes, bits, size)):
            row_start[1:][part.rows] = part.counts
            part.column.tofile(columns)
            part.weight.tofile(weights)
            tally += part.tally
            progress(int(tally[0]), added, "merging the arcs")
    for run in runs:
        run.keys.unlink()
        run.weights.unlink(missing_ok=True)
    _, arcs, forward, tiny, unequal, not_one = tally.tolist()
    if added // 2 > forward:
        facts.repeated_edges += added // 2 - forward
        facts.weights_summed = weighted
    if arcs > forward:
        facts.one_way_arcs, facts.arcs = arcs - forward, forward
    else:
        facts.unequal_weights += unequal // 2
    facts.tiny_weights += tiny // 2
    np.cumsum(row_start, out=row_start)
    read_weight = partial(_read, weight, np.float32) if not_one else None
    return SortedArcs(row_start, partial(_read, column, np.int32), read_weight)


def _collect(
    batches: Iterable[EdgeBatch], bits: int, size: int, facts: GraphFacts
) -> Iterator[list[Keys]]:
    """The keys of both directions of the arcs, about so many at a time."""
    parts: list[Keys] = []
    for source, target, weight in batches:
        keep = source != target
        facts.self_loops += len(source) - int(np.count_nonzero(keep))
        if weight is not None:
            empty = keep & (weight == 0)
            facts.zero_weights += int(np.count_nonzero(empty))
            keep &= ~empty
        if not keep.all():
            source, target = source[keep], target[keep]
            weight = None if weight is None else weight[keep]
        for row, column, direction in ((source, target, 0), (target, source, 1)):
            for first in range(0, len(row), size):
                part = slice(first, first + size)
                keys = row[part].astype(np.int64)
                keys <<= bits
                keys |= column[part]
                keys <<= 1
                keys |= direction
                parts.append((keys, None if weight is None else weight[part]))
                if sum(len(each) for each, _ in parts) >= size:
                    yield parts
                    parts = []
    if parts:
        yield parts


def _write_run(folder: Path, bits: int, item: tuple[int, list[Keys]]) -> _Run:
    number, parts = item
    paths = folder / f"run-{number:05d}", folder / f"run-{number:05d}-weight"
    keys = np.concatenate([each for each, _ in parts])
    weights = [weight for _, weight in parts if weight is not None]
    added = len(keys)
    if weights:
        order = np.argsort(keys)
        keys = keys[order]
        np.concatenate(weights)[order].tofile(paths[1])
    else:
        keys.sort()
        keys = keys[_first_of_equal(keys)]
    keys.tofile(paths[0])
    return _Run(*paths, added, len(keys), keys[::_SAMPLED] >> (bits + 1))


def _ranges(
    runs: list[_Run], nodes: int, bits: int, size: int
) -> Iterator[tuple[slice, list[tuple[_Run, int, int]]]]:
    """Ranges of rows with the entries of each run in them, about evenly many in each."""
    samples = np.sort(np.concatenate([*(run.samples for run in runs), np.empty(0, np.int64)]))
    # As many ranges are in memory at a time as there are threads, and one more that waits.
    each = max(1, size // (2 * (num_threads() + 1)) // _SAMPLED)
    inner = np.unique(samples[each::each])
    rows = np.array([0, *inner[inner > 0], nodes])
    begins = []
    for run in runs:
        keys = np.memmap(run.keys, np.int64, "r", shape=(run.length,))
        begins.append(np.searchsorted(keys, rows << (bits + 1)).tolist())
    for place, (first, last) in enumerate(pairwise(rows.tolist())):
        ends = (begin[place : place + 2] for begin in begins)
        yield slice(first, last), [(run, *both) for run, both in zip(runs, ends, strict=True)]


def _merge(
    range_: tuple[slice, list[tuple[_Run, int, int]]], bits: int, weighted: bool, where: str
) -> _Merged:
    """The sums of the weights of each arc, and the mean of both directions."""
    rows, parts = range_
    keys = np.concatenate(
        [np.empty(0, np.int64), *(_read(r.keys, np.int64, a, b) for r, a, b in parts)]
    )
    merged, values, unequal, tiny = len(keys), np.empty(0), 0, 0
    if weighted:
        weights = np.concatenate(
            [values, *(_read(r.weights, np.float64, a, b) for r, a, b in parts)]
        )
        order = np.argsort(keys)
        keys, weights = keys[order], weights[order]
        start = np.flatnonzero(_first_of_equal(keys))
        _sort_within(weights, start)
        sums = np.add.reduceat(weights, start) if len(start) else weights
        keys = keys[start]
    else:
        keys.sort()
        keys = keys[_first_of_equal(keys)]
    forward = np.count_nonzero(keys & 1 == 0)
    keys >>= 1
    is_first = _first_of_equal(keys)
    pairs = keys[is_first]
    arcs = len(pairs)
    if weighted:
        begin = np.flatnonzero(is_first)
        both = np.diff(begin, append=len(keys)) == 2
        values, other = sums[begin], sums[begin[both] + 1]
        unequal = int(np.count_nonzero(values[both] != other))
        values[both] = (values[both] + other) / 2
        kept = values >= _TINY
        tiny = arcs - int(np.count_nonzero(kept))
        if tiny:
            pairs, values = pairs[kept], values[kept]
    with np.errstate(over="ignore"):
        weight = values.astype(np.float32)
    if not np.isfinite(weight).all():
        raise RawlsError(f"{where}: weights over 3e38 do not fit: divide them first")
    column = (pairs & ((1 << bits) - 1)).astype(np.int32)
    counts = np.bincount((pairs >> bits) - rows.start, minlength=rows.stop - rows.start)
    tally = np.array([merged, arcs, forward, tiny, unequal, np.count_nonzero(values != 1)])
    return _Merged(rows, counts, column, weight, tally)


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


def _read(path: Path, kind: type[np.generic], first: int, last: int) -> Array:
    """Some entries of a plain file, read and not mapped."""
    return np.fromfile(path, kind, last - first, offset=first * np.dtype(kind).itemsize)
