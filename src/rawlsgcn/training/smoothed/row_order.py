"""The order in which training rows come: a function of the seed and the epoch alone.

Rows on disk are read fastest in large consecutive pieces, and steps want rows from everywhere. So
the rows are cut into chunks of about 1 MB; an epoch takes the chunks in random order, some hundreds
at a time (a window), and the rows of a window in random order. Sizes are bytes of rows, not of the
memory at hand, so that the same seed gives the same steps on every machine and under any limit of
memory. Every process has a range of the chunks and its share of a step are the rows in them:
together the processes read every row once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._core.distributed_context import DistributedContext
from ...sampling.neighbor_drawing import derive_key
from ..batch_training import ORDER
from .smoothed_files import READ_BYTES

Ints = NDArray[np.int64]
#: Rows of a step by default.
BATCH_ROWS = 4096
#: Bytes of a chunk, and chunks of a window: about 256 MB of rows are shuffled together.
CHUNK_BYTES, WINDOW_CHUNKS = 1 << 20, 256
#: Small sets of rows are cut into so many chunks, so that processes can share them.
FEWEST_CHUNKS = 64
#: The share that the rows of a process may fill of its memory beside Python and torch.
_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class Window:
    """Rows that are read together, in rising order, and shared evenly by so many steps.

    ``order`` has the order of training, as places among the rows.
    """

    rows: Ints
    order: Ints
    steps: int


class RowOrder:
    """The steps of every epoch over so many training rows of so many bytes each.

    A step has about ``batch_size`` rows; the ``seed`` decides the order.

    Attributes:
        cuts: The first training row of each chunk, and the number of rows.
        steps: The steps of an epoch.
    """

    def __init__(self, rows: int, row_bytes: int, batch_size: int, seed: int) -> None:
        size = min(max(1, CHUNK_BYTES // row_bytes), math.ceil(rows / FEWEST_CHUNKS))
        count = math.ceil(rows / size)
        self.cuts: Ints = np.arange(count + 1) * rows // count
        self.seed = seed
        windows = math.ceil(count / WINDOW_CHUNKS)
        self._windows: Ints = np.arange(windows + 1) * count // windows
        # From the smallest chunk: which chunks are in a window differs from epoch to epoch.
        least = rows // count * np.diff(self._windows)
        self._steps: Ints = -(-least // batch_size)
        self.steps = int(self._steps.sum())

    def own_rows(self, context: DistributedContext) -> tuple[int, int]:
        """The first row of a process, and the one after its last."""
        chunks, ends = len(self.cuts) - 1, (context.rank, context.rank + 1)
        first, last = (int(self.cuts[end * chunks // context.world_size]) for end in ends)
        return first, last

    def windows(self, epoch: int, first: int = 0) -> Iterator[tuple[int, Window]]:
        """Draw the windows of an epoch, from the step ``first`` on, each with its first step."""
        random = np.random.default_rng(derive_key(self.seed, epoch, ORDER))
        sizes = np.diff(self.cuts)
        chunks = random.permutation(len(sizes))
        step = 0
        for number, steps in enumerate(self._steps.tolist()):
            if step + steps > first:
                chosen = np.sort(chunks[slice(*self._windows[number : number + 2])])
                counts = sizes[chosen]
                before = self.cuts[chosen] - (np.cumsum(counts) - counts)
                rows = np.repeat(before, counts) + np.arange(counts.sum())
                own = np.random.default_rng(derive_key(self.seed, epoch, number, ORDER))
                yield step, Window(rows, own.permutation(len(rows)), steps)
            step += steps


def row_bytes(rows: int, num_features: int, context: DistributedContext) -> tuple[int, int]:
    """Return what a process needs to keep its training rows in memory, and to stream them."""
    row = 4 * num_features
    first, last = RowOrder(rows, row, BATCH_ROWS, 0).own_rows(context)
    kept = int(((last - first) * row + 2 * READ_BYTES) / _SHARE)
    return kept, int(2 * WINDOW_CHUNKS * max(CHUNK_BYTES, row) / _SHARE)


def evenly(nodes: Ints, most: int) -> Ints:
    """At most so many of the nodes, evenly spaced among all."""
    if len(nodes) <= most:
        return nodes
    return nodes[np.arange(most) * len(nodes) // most]
