"""Train an MLP on rows of smoothed features, in steps that are read from disk.

After the smoothing nothing of the graph is needed: a step is a batch of labeled rows. The rows of
a process are read once if they fit in memory, and otherwise a window at a time, the next one while
this one is used. Both give the same steps and so the same weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..._core.distributed_context import DistributedContext
from ..._core.errors import RawlsError
from ..._core.memory import memory_left
from ...methods._ops.convolution import GraphConvolutionalNetwork
from ...methods.smoothed_mlp_inputs import SmoothedMLPSettings
from ..in_steps.batch_training import BatchTraining, require_average
from ..stacked.dropout import Dropout as Masks
from .row_order import CHUNK_BYTES, WINDOW_CHUNKS, RowOrder, Window
from .smoothed_files import READ_BYTES, SmoothedRows, take_rows

Ints = NDArray[np.int64]
#: Rows of a step by default.
BATCH_ROWS = 4096
#: The share that the rows of a process may fill of its memory beside Python and torch.
_SHARE = 0.5


def row_bytes(rows: int, num_features: int, context: DistributedContext) -> tuple[int, int]:
    """Return what a process needs to keep its training rows in memory, and to stream them.

    Args:
        rows: The number of training rows of all processes.
        num_features: The numbers of a row.
        context: Which of how many processes this one is.

    Returns:
        The bytes where all are kept, and where they are read a window at a time.
    """
    row = 4 * num_features
    order = RowOrder(rows, row, BATCH_ROWS, 0)
    first, last = (
        int(order.cuts[chunk]) for chunk in order.own_chunks(context.rank, context.world_size)
    )
    kept = int(((last - first) * row + 2 * READ_BYTES) / _SHARE)
    return kept, int(2 * WINDOW_CHUNKS * max(CHUNK_BYTES, row) / _SHARE)


@dataclass(frozen=True, eq=False)
class LabeledRows:
    """The rows that training and its progress need.

    Attributes:
        file: The rows of all nodes.
        nodes: The numbers of the training nodes, in rising order.
        y: Their classes.
        num_classes: The number of classes.
        val_nodes: Some validation nodes, in rising order, for the accuracy after each epoch.
        val_y: Their classes.
    """

    file: SmoothedRows
    nodes: Ints
    y: Ints
    num_classes: int
    val_nodes: Ints
    val_y: Ints


@dataclass(frozen=True, eq=False)
class RowBatch:
    """A process's share of one step: rows and classes; ``total`` rows in all."""

    x: Tensor
    y: Tensor
    total: int


class RowDropout(nn.Module):
    """Dropout with masks of a stream of its own, drawn as the stacked engine draws them.

    torch draws one random number for each entry, which takes as long as everything else of a step.

    Args:
        p: The probability with which an entry is set to zero, met to 1 part in 65,536.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        self.reseed(0)

    def reseed(self, seed: int) -> None:
        """Draw the next masks from a new stream.

        Args:
            seed: The seed of the stream.
        """
        self.masks = Masks([seed], self.p, torch.device("cpu"))

    def forward(self, h: Tensor) -> Tensor:
        """Set entries to zero in training, and scale the others.

        Args:
            h: A matrix of shape (rows, width).

        Returns:
            A matrix of the same shape.
        """
        if not self.training or self.p == 0:
            return h
        mask = np.empty((h.shape[0], 1, h.shape[1]), dtype=np.float32)
        self.masks.draw(mask)
        return h * torch.from_numpy(mask.reshape(h.shape))


class RowTraining(BatchTraining[RowBatch]):
    """An MLP that learns from mini-batches of labeled rows.

    Args:
        rows: The training rows.
        settings: The settings of smoothed-mlp.
        batch_size: Rows of one step, about, shared by all processes.
        memory: Bytes that this process may use; rows that take more than half of what Python
            and torch leave of them are streamed.
        seed, context, average, dtype: As for :class:`..in_steps.batch_training.BatchTraining`.

    Attributes:
        in_memory: Whether the rows of this process are kept in memory.

    Raises:
        RawlsError: If there are fewer rows than processes, or the memory is too little.
    """

    def __init__(
        self,
        rows: LabeledRows,
        settings: SmoothedMLPSettings,
        *,
        batch_size: int = BATCH_ROWS,
        seed: int = 0,
        context: DistributedContext | None = None,
        average: float = 0.1,
        memory: int = 1 << 40,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        context = context or DistributedContext()
        require_average(average)
        if min(batch_size, len(rows.nodes)) < context.world_size:
            raise RawlsError(
                f"{context.world_size} processes cannot share batches of {batch_size} out of "
                f"{len(rows.nodes)} training nodes: each needs at least one training node"
            )
        self.rows, self.smoothing = rows, settings.label_smoothing
        self.order = RowOrder(len(rows.nodes), 4 * rows.file.num_features, batch_size, seed)
        self.own = self.order.own_chunks(context.rank, context.world_size)
        kept, streamed = row_bytes(len(rows.nodes), rows.file.num_features, context)
        what = f"train on rows of {rows.file.num_features:,} features"
        least = min(kept, streamed)
        self.in_memory = least + memory_left(least, memory, what) >= kept
        self._kept: Tensor | None = None
        self._val: Tensor | None = None
        on_cpu = context.device.type == "cpu"
        self.random = torch.Generator(context.device)
        hidden = [settings.hidden_channels] * (settings.num_layers - 1)
        sizes = [rows.file.num_features, *hidden, rows.num_classes]
        network = GraphConvolutionalNetwork(sizes, settings.dropout, self.random)
        network.reset_parameters(torch.Generator().manual_seed(seed))
        if on_cpu:
            network.dropout = RowDropout(settings.dropout)  # type: ignore[assignment]
        super().__init__(
            network,
            settings,
            steps=self.order.steps,
            seed=seed,
            context=context,
            average=average,
            dtype=dtype,
            fused=True,
        )

    def batches(self, epoch: int, first: int = 0) -> Iterator[RowBatch]:
        windows = self.order.windows(epoch, first)
        with ThreadPoolExecutor(max_workers=1) as reader:
            waiting: Future[Any] | None = None
            ahead = next(windows, None)
            while ahead is not None:
                (start, window), task = ahead, waiting
                if task is None:
                    task = reader.submit(self._read, window)
                ahead = next(windows, None)
                x, y, place = task.result()
                waiting = None if ahead is None else reader.submit(self._read, ahead[1])
                cuts = np.arange(window.steps + 1) * len(window.order) // window.steps
                for step in range(max(0, first - start), window.steps):
                    chosen = window.order[cuts[step] : cuts[step + 1]]
                    places = place[chosen]
                    own = torch.from_numpy(places[places >= 0]).to(x.device)
                    yield RowBatch(x.index_select(0, own), y.index_select(0, own), len(chosen))

    def _read(self, window: Window) -> tuple[Tensor, Tensor, Ints]:
        """This process's rows of a window or of all, and the place of the window's rows there."""
        rows, device = self.order.rows_of(window.chunks), self.context.device
        low, high = (int(self.order.cuts[chunk]) for chunk in self.own)
        own = (rows >= low) & (rows < high)
        if self.in_memory:
            if self._kept is None:
                self._kept = torch.from_numpy(take_rows(self.rows.file, self.rows.nodes[low:high]))
                self._kept = self._kept.to(device, self.dtype)
                self._y = torch.from_numpy(self.rows.y[low:high]).to(device)
            return self._kept, self._y, np.where(own, rows - low, -1)
        x = np.empty((int(own.sum()), self.rows.file.num_features), dtype=np.float32)
        at = 0
        for chunk in window.chunks[(window.chunks >= self.own[0]) & (window.chunks < self.own[1])]:
            nodes = self.rows.nodes[self.order.cuts[chunk] : self.order.cuts[chunk + 1]]
            take_rows(self.rows.file, nodes, x[at : at + len(nodes)])
            at += len(nodes)
        place = np.where(own, np.cumsum(own) - 1, -1)
        y = torch.from_numpy(self.rows.y[rows[own]])
        return torch.from_numpy(x).to(device, self.dtype), y.to(device), place

    def loss(self, batch: RowBatch) -> Tensor:
        loss = nn.functional.cross_entropy(
            self.model(batch.x, None),
            batch.y,
            label_smoothing=self.smoothing,
            reduction="sum",
        )
        return loss * (self.context.world_size / batch.total)

    def seed_dropout(self, key: int) -> None:
        if isinstance(self.network.dropout, RowDropout):
            self.network.dropout.reseed(key)
        else:
            self.random.manual_seed(key)

    def epoch_ended(self, epoch: int) -> str:
        accuracy = self.validation_accuracy()
        return f"epoch {epoch + 1}, validation accuracy {100 * accuracy:.1f} %"

    @torch.no_grad()
    def validation_accuracy(self) -> float:
        if not len(self.rows.val_nodes):
            return math.nan
        if self._val is None:
            self._val = torch.from_numpy(take_rows(self.rows.file, self.rows.val_nodes))
        self.network.eval()
        scores = self.network(self._val.to(self.context.device, self.dtype), None)
        right = scores.argmax(1).cpu() == torch.from_numpy(self.rows.val_y)
        return float(right.float().mean())
