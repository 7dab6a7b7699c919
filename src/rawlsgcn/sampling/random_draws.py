"""Neighbors drawn without replacement, for all rows at once, as a pure function of a key.

The random numbers of a node's row come from a hash of (key, node, place), not from a stream. So a
row's draw is the same whatever else is in the batch, in whichever process it is made, and however
often it is repeated: a run on eight processes draws what a run on one would.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_GOLDEN = 0x9E3779B97F4A7C15
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_TO_UNIT = 2.0**-53


def derive_key(*parts: int) -> int:
    """Return a 64-bit key of several numbers (seed, epoch, step, layer, …) and their order."""
    state = 0
    for part in parts:
        state = int(_hash(np.array([((state + 1) * _GOLDEN + part) % 2**64], dtype=np.uint64))[0])
    return state


def draw_offsets(nodes: Array, degree: Array, k: int, key: int) -> tuple[Array, Array]:
    """Draw for each node min(k, d) different numbers below its degree d, all sets equally likely.

    Returns the numbers, (nodes, k), and how many at the front of each row count, min(k, d). The
    rows are no longer than the largest degree.

    Floyd's algorithm (Bentley and Floyd 1987), one step for all rows at a time: for j from d − k
    to d − 1, draw t ≤ j; take t, or j itself where t is already there. A row with d ≤ k takes
    every number under d, in order.
    """
    k = min(k, int(degree.max(initial=0)))
    offsets = np.empty((k, len(nodes)), dtype=np.int32)
    first = np.maximum(degree.astype(np.int64) - k, 0).astype(np.int32)
    seen = np.empty(len(nodes), dtype=bool)
    same = np.empty(len(nodes), dtype=bool)
    row_key = _hash(nodes.astype(np.uint64) * np.uint64(_GOLDEN) + np.uint64(key))
    for step in range(k):
        last = first + np.int32(step)
        bits = _hash(row_key + np.uint64(step * _GOLDEN % 2**64)) >> np.uint64(11)
        unit = bits * _TO_UNIT
        unit *= last + 1.0
        drawn = unit.astype(np.int32)
        seen[:] = False
        for earlier in offsets[:step]:
            np.equal(earlier, drawn, out=same)
            seen |= same
        np.copyto(drawn, last, where=seen)
        offsets[step] = drawn
    np.copyto(offsets, np.arange(k, dtype=np.int32)[:, None], where=degree <= k)
    return offsets.T, np.minimum(degree, k)


def _hash(state: Array) -> Array:
    """The finalizer of splitmix64: every bit of the result depends on every bit of the input."""
    state = (state ^ (state >> np.uint64(30))) * _FIRST
    state = (state ^ (state >> np.uint64(27))) * _SECOND
    mixed: Array = state ^ (state >> np.uint64(31))
    return mixed
