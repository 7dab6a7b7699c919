"""Sampled training of the GCN family, in one process or in many that share every batch.

What is drawn is a function of the seed, the epoch and the step alone: the same for any number of
processes and workers, and again after a restart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from ..._core.distributed_context import DistributedContext
from ..._core.errors import RawlsError
from ...methods import Convolutional, Method, Settings
from ...sampling import Factors
from ...sampling.neighbor_drawing import derive_key
from ..batch_training import DRAW, ORDER, Batch, BatchTraining, require_average
from ..engine_choice import convolutional
from .blocks import BlockMaker
from .inference import MOST_ROWS, whole_graph_logits
from .sources import Source


def require_sampled(method: Method, settings: Settings, average: float) -> Convolutional:
    """Return the method if it can be trained on samples with these settings, or raise an error."""
    method = convolutional(method)
    if settings.patience:
        raise RawlsError(
            "sampled training has no early stopping: leave out patience, and give fewer --epochs "
            "where it trains too long"
        )
    require_average(average)
    return method


class SampledTraining(BatchTraining):
    """A network of the GCN family that learns from sampled batches of the training nodes.

    Args:
        method: One of the GCN family (``gcn``, ``rawlsgcn-graph``, ``rawlsgcn-grad``).
        source: The graph.
        settings: The method's; the number of layers is that of ``num_neighbors``.
        num_neighbors: Neighbors drawn for each node and layer, outermost layer first; −1 for all.
        workers: Further processes that draw batches ahead.
        batch_size, seed, context, average, dtype: As for
            :class:`..batch_training.BatchTraining`.
    """

    def __init__(
        self,
        method: Method,
        source: Source,
        settings: Settings,
        *,
        num_neighbors: Sequence[int],
        batch_size: int,
        seed: int = 0,
        context: DistributedContext | None = None,
        workers: int = 0,
        average: float = 0.1,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        method = require_sampled(method, settings, average)
        self.train = source.masks["train_mask"].nonzero().view(-1).numpy()
        super().__init__(
            replace(settings, num_layers=len(num_neighbors)),
            (source.num_features, source.num_classes),
            nodes=len(self.train),
            steps=math.ceil(len(self.train) / batch_size),
            batch_size=batch_size,
            seed=seed,
            context=context,
            average=average,
            dtype=dtype,
        )
        self.source, self.workers = source, workers
        graph, scale = source.adjacency, source.scale
        self.forward = Factors.of(graph, method.forward_normalization(settings), scale)
        own = method.gradient_normalization(settings)
        fair = None if own is None else Factors.of(graph, own, scale)
        self.maker = BlockMaker(graph, self.forward, fair, num_neighbors, dtype)

    def batches(self, epoch: int, first: int = 0) -> Iterator[Batch]:
        loader: DataLoader[Batch] = DataLoader(
            _Batches(self, epoch),
            batch_size=None,
            sampler=range(first, self.steps),
            num_workers=self.workers,
            generator=torch.Generator(),  # else every loader draws from the global one
        )
        return iter(loader)

    def logits(self, rows: int = MOST_ROWS) -> Tensor:
        """Compute the class scores of every node from all neighbors, ``rows`` nodes at a time."""
        return whole_graph_logits(self.kept, self.source, self.forward, self.context, rows)


class _Batches(Dataset[Batch]):
    """The steps of one epoch; a worker makes each when it is needed."""

    def __init__(self, training: SampledTraining, epoch: int) -> None:
        self.training, self.epoch = training, epoch
        random = np.random.default_rng(derive_key(training.seed, epoch, ORDER))
        self.seeds = np.array_split(random.permutation(training.train), training.steps)

    def __getitem__(self, step: int) -> Batch:
        of, seeds = self.training, self.seeds[step]
        own = seeds[of.context.rank :: of.context.world_size]
        blocks = of.maker.make(own, derive_key(of.seed, self.epoch, step, DRAW))
        x, y = of.source.features(blocks.nodes), of.source.y[torch.from_numpy(own)]
        return Batch(x, y, len(seeds), blocks)
