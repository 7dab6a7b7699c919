"""Train an MLP on rows of smoothed features, in steps that are read from disk.

After the smoothing nothing of the graph is needed: a step is a batch of labeled rows. The rows of
a process are read once if they fit in memory, and otherwise a window at a time, the next one while
this one is used. Both give the same steps and so the same weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..._core.distributed_context import DistributedContext
from ..._core.memory import memory_left
from ..._core.threads import ordered_map
from ...graphs.shards.shard_graph import ShardNodes
from ...methods.smoothed_mlp_inputs import SmoothedMLPSettings
from ..batch_training import Batch, BatchTraining
from ..stacked.dropout import Dropout as Masks
from .row_order import BATCH_ROWS, RowOrder, Window, evenly, row_bytes
from .smoothed_files import SmoothedRows, take_rows

Ints = NDArray[np.int64]
#: Validation nodes whose accuracy the progress shows, at most: of more, so many are taken.
SHOWN_NODES = 10_000


class RowDropout(nn.Module):
    """Dropout with masks of a stream of its own, drawn as the stacked engine draws them.

    torch draws one random number for each entry, which takes as long as everything else of a step.
    Entries are set to zero with probability ``p``, met to 1 part in 65,536.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        self.reseed(0)

    def reseed(self, seed: int) -> None:
        """Draw the next masks from a new stream."""
        self.masks = Masks([seed], self.p, torch.device("cpu"))

    def forward(self, h: Tensor) -> Tensor:
        """Set entries of a matrix to zero in training, and scale the others."""
        if not self.training or self.p == 0:
            return h
        mask = np.empty((h.shape[0], 1, h.shape[1]), dtype=np.float32)
        self.masks.draw(mask)
        return h * torch.from_numpy(mask.reshape(h.shape))


class RowTraining(BatchTraining):
    """An MLP that learns from mini-batches of labeled rows.

    Args:
        nodes: The classes and the split of all nodes.
        file: Their rows.
        settings: The settings of smoothed-mlp.
        shown: Validation nodes whose accuracy is known after each epoch, at most.
        memory: Bytes that this process may use; rows that take more than half of what Python
            and torch leave of them are streamed.
        batch_size, seed, context, average, dtype: As for
            :class:`..batch_training.BatchTraining`.

    Attributes:
        in_memory: Whether the rows of this process are kept in memory.

    Raises:
        RawlsError: If there are fewer rows than processes, or the memory is too little.
    """

    def __init__(
        self,
        nodes: ShardNodes,
        file: SmoothedRows,
        settings: SmoothedMLPSettings,
        *,
        shown: int = SHOWN_NODES,
        batch_size: int = BATCH_ROWS,
        seed: int = 0,
        context: DistributedContext | None = None,
        average: float = 0.1,
        memory: int = 1 << 40,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.file, self.y, self.train = file, nodes.y, nodes.nodes("train")
        self.val = evenly(nodes.nodes("val"), shown)
        count, width = len(self.train), file.num_features
        self.order = RowOrder(count, 4 * width, batch_size, seed)
        super().__init__(
            settings,
            (width, nodes.shards.classes),
            nodes=count,
            steps=self.order.steps,
            batch_size=batch_size,
            seed=seed,
            context=context,
            average=average,
            dtype=dtype,
            fused=True,
            label_smoothing=settings.label_smoothing,
        )
        if self.context.device.type == "cpu":
            dropout = RowDropout(settings.dropout)
            self.network.dropout, self.seed_dropout = dropout, dropout.reseed  # type: ignore[assignment]
        kept, streamed = row_bytes(count, width, self.context)
        least = min(kept, streamed)
        left = memory_left(least, memory, f"train on rows of {width:,} features")
        self.in_memory = least + left >= kept
        self._kept: tuple[Tensor, Tensor] | None = None
        self._val: Tensor | None = None

    def batches(self, epoch: int, first: int = 0) -> Iterator[Batch]:
        def read(part: tuple[int, Window]) -> tuple[int, Window, Tensor, Tensor, Ints]:
            return *part, *self._read(part[1])

        # One window is read ahead.
        for start, window, x, y, place in ordered_map(read, self.order.windows(epoch, first), 1):
            cuts = np.arange(window.steps + 1) * len(window.order) // window.steps
            for step in range(max(0, first - start), window.steps):
                chosen = window.order[cuts[step] : cuts[step + 1]]
                places = place[chosen]
                own = torch.from_numpy(places[places >= 0]).to(x.device)
                yield Batch(x.index_select(0, own), y.index_select(0, own), len(chosen))
            del x, y  # before the window after the next one is read

    def _read(self, window: Window) -> tuple[Tensor, Tensor, Ints]:
        """This process's rows of a window or of all, and the place of the window's rows there."""
        low, high = self.order.own_rows(self.context)
        own = (window.rows >= low) & (window.rows < high)
        if not self.in_memory:
            return *self._load(window.rows[own]), np.where(own, np.cumsum(own) - 1, -1)
        if self._kept is None:
            self._kept = self._load(np.arange(low, high))
        return *self._kept, np.where(own, window.rows - low, -1)

    def _load(self, rows: Ints) -> tuple[Tensor, Tensor]:
        """Training rows and their classes, read in consecutive pieces."""
        x = np.empty((len(rows), self.file.num_features), dtype=np.float32)
        at = 0
        for nodes in np.split(self.train[rows], np.flatnonzero(np.diff(rows) > 1) + 1):
            take_rows(self.file, nodes, x[at : at + len(nodes)])
            at += len(nodes)
        y, device = torch.from_numpy(self.y[self.train[rows]]), self.context.device
        return torch.from_numpy(x).to(device, self.dtype), y.to(device)

    @torch.no_grad()
    def validation_accuracy(self) -> float:
        if not len(self.val):
            return math.nan
        if self._val is None:
            self._val = torch.from_numpy(take_rows(self.file, self.val))
        self.network.eval()
        scores = self.network(self._val.to(self.context.device, self.dtype), None)
        right = scores.argmax(1).cpu() == torch.from_numpy(self.y[self.val])
        return float(right.float().mean())
