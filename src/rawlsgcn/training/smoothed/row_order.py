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

from ...sampling.neighbor_drawing import derive_key
from ..in_steps.batch_training import ORDER

Ints = NDArray[np.int64]
#: Bytes of a chunk, and chunks of a window: about 256 MB of rows are shuffled together.
CHUNK_BYTES, WINDOW_CHUNKS = 1 << 20, 256
#: Small sets of rows are cut into so many chunks, so that processes can share them.
FEWEST_CHUNKS = 64


@dataclass(frozen=True, eq=False)
class Window:
    """Some chunks, and the order of their rows.

    Attributes:
        chunks: The numbers of the chunks, in rising order.
        order: The rows in the order of training, as places among those of the chunks in turn.
        steps: The number of steps that share the rows evenly.
    """

    chunks: Ints
    order: Ints
    steps: int


class RowOrder:
    """The steps of every epoch over so many training rows.

    Args:
        rows: The number of training rows.
        row_bytes: The bytes of one row.
        batch_size: Rows of a step, about.
        seed: Decides the order.

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

    def __len__(self) -> int:
        return int(self.cuts[-1])

    @property
    def chunks(self) -> int:
        """The number of chunks."""
        return len(self.cuts) - 1

    def own_chunks(self, rank: int, world_size: int) -> tuple[int, int]:
        """Return the range of chunks of a process.

        Args:
            rank: Which process it is.
            world_size: The number of processes.

        Returns:
            The first chunk, and the one after the last.
        """
        return rank * self.chunks // world_size, (rank + 1) * self.chunks // world_size

    def windows(self, epoch: int, first: int = 0) -> Iterator[tuple[int, Window]]:
        """Draw the windows of an epoch in their order.

        Args:
            epoch: The epoch, from 0.
            first: The first step that is needed; windows before it are left out.

        Yields:
            The number of the first step of a window, and the window.
        """
        random = np.random.default_rng(derive_key(self.seed, epoch, ORDER))
        chunks = random.permutation(self.chunks)
        sizes = np.diff(self.cuts)
        step = 0
        for number, steps in enumerate(self._steps.tolist()):
            if step + steps > first:
                chosen = np.sort(chunks[slice(*self._windows[number : number + 2])])
                own = np.random.default_rng(derive_key(self.seed, epoch, number, ORDER))
                yield step, Window(chosen, own.permutation(int(sizes[chosen].sum())), steps)
            step += steps

    def rows_of(self, chunks: Ints) -> Ints:
        """Return the numbers of the training rows of some chunks, one chunk after another.

        Args:
            chunks: The numbers of the chunks.

        Returns:
            Numbers of training rows.
        """
        sizes = np.diff(self.cuts)[chunks]
        starts = np.cumsum(sizes) - sizes
        rows: Ints = np.repeat(self.cuts[chunks] - starts, sizes) + np.arange(sizes.sum())
        return rows
