"""Sampled training of the GCN family, in one process or in many that share every batch.

What is drawn is a function of the seed, the epoch and the step alone: the same for any number of
processes and workers, and again after a restart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from ..._core.distributed_context import DistributedContext
from ..._core.errors import RawlsError
from ...methods import MAIN_METHODS, Convolutional, Method, Settings
from ...methods._ops.convolution import GraphConvolutionalNetwork
from ...methods._ops.fixed_matrix import FixedMatrix
from ...sampling import Factors
from ...sampling.neighbor_drawing import derive_key
from ..in_steps.batch_training import DRAW, ORDER, BatchTraining, require_average
from .blocks import BlockMaker, Blocks
from .inference import MOST_ROWS, NODE_BYTES, rows_at_once, whole_graph_logits
from .sources import Source

if TYPE_CHECKING:
    from ...graphs.shards.shards import Shards

Array = NDArray[Any]


def require_sampled(method: Method, settings: Settings, average: float) -> Convolutional:
    """Return the method if it can be trained on samples with these settings.

    Args:
        method: Any method.
        settings: Its settings.
        average: The share of steps whose weights are averaged.

    Returns:
        The method, which is of the GCN family.

    Raises:
        RawlsError: If it cannot be trained on samples, or the share is not from 0 to 1.
    """
    if not isinstance(method, Convolutional):
        raise RawlsError(
            f"{method.name} cannot be trained on sampled neighborhoods: it needs the whole "
            f"graph; use {' or '.join(MAIN_METHODS)}"
        )
    if settings.patience:
        raise RawlsError(
            "sampled training has no early stopping: leave out patience, and give fewer --epochs "
            "where it trains too long"
        )
    require_average(average)
    return method


def sampled_rows(
    shards: Shards,
    features: int,
    settings: Settings,
    num_neighbors: Sequence[int],
    share: int,
    memory: int,
    workers: int = 0,
) -> int:
    """Check that sampled training fits in memory, and return the rows of its scores of all nodes.

    Args:
        shards: The graph.
        features: The number of features.
        settings: The method's settings.
        num_neighbors: Neighbors drawn for each node and layer; −1 for all.
        share: Training nodes of a step in this process.
        memory: Bytes that this process may use.
        workers: Further processes, each of which draws two batches ahead.

    Returns:
        As :func:`rows_at_once` does.

    Raises:
        RawlsError: If the limit is too small for a batch, or for the scores of all nodes at the
            end; it names the least.
    """
    drawn = share
    for most in num_neighbors:
        drawn = shards.num_nodes if most < 0 else min(shards.num_nodes, drawn * (1 + most))
    batch = drawn * (12 * features + 32 * settings.hidden_channels) * (1 + 2 * workers)
    width = max(settings.hidden_channels, 4 * shards.classes)  # metrics are of double precision
    what = f"train on samples of a graph of this size with batches of {share:,} nodes"
    before = NODE_BYTES * shards.num_nodes + batch
    return rows_at_once(shards, features, width, memory, what, before)


@dataclass(frozen=True, eq=False)
class Batch:
    """A process's share of one step: its blocks, features and labels; ``total`` seeds in all."""

    blocks: Blocks
    x: Tensor
    y: Tensor
    total: int


class SampledTraining(BatchTraining[Batch]):
    """A network of the GCN family that learns from sampled batches of the training nodes.

    Args:
        method: One of the GCN family (``gcn``, ``rawlsgcn-graph``, ``rawlsgcn-grad``).
        source: The graph.
        settings: The method's; the number of layers is that of ``num_neighbors``.
        num_neighbors: Neighbors drawn for each node and layer, outermost layer first; −1 for all.
        batch_size: Training nodes of one step, shared by all processes.
        workers: Further processes that draw batches ahead.
        seed, context, average, dtype: As for :class:`..in_steps.batch_training.BatchTraining`.
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
        context = context or DistributedContext()
        self.train = source.masks["train_mask"].nonzero().view(-1).numpy()
        if batch_size < context.world_size or len(self.train) < context.world_size:
            raise RawlsError(
                f"{context.world_size} processes cannot share batches of {batch_size} out of "
                f"{len(self.train)} training nodes: each needs at least one training node"
            )
        self.source, self.workers = source, workers
        self.forward = Factors.of(
            source.adjacency, method.forward_normalization(settings), source.scale
        )
        own = method.gradient_normalization(settings)
        fair = None if own is None else Factors.of(source.adjacency, own, source.scale)
        self.maker = BlockMaker(source.adjacency, self.forward, fair, num_neighbors, dtype)
        sizes = [
            source.num_features,
            *[settings.hidden_channels] * (len(num_neighbors) - 1),
            source.num_classes,
        ]
        self.random = torch.Generator(context.device)
        network = GraphConvolutionalNetwork(sizes, settings.dropout, self.random)
        network.reset_parameters(torch.Generator().manual_seed(seed))
        super().__init__(
            network,
            settings,
            steps=math.ceil(len(self.train) / batch_size),
            seed=seed,
            context=context,
            average=average,
            dtype=dtype,
        )

    def batches(self, epoch: int, first: int = 0) -> Iterator[Batch]:
        dataset = _Batches(self, epoch)
        loader: DataLoader[Batch] = DataLoader(
            dataset,
            batch_size=None,
            sampler=range(first, self.steps),
            num_workers=self.workers,
            generator=torch.Generator(),  # else every loader draws from the global one
        )
        return iter(loader)

    def loss(self, batch: Batch) -> Tensor:
        device, blocks = self.context.device, batch.blocks
        x = FixedMatrix.of(batch.x.to(device, self.dtype))
        logits = self.model(x, blocks.forward(device), blocks.fair(device))
        loss = nn.functional.cross_entropy(logits, batch.y.to(device), reduction="sum")
        return loss * (self.context.world_size / batch.total)

    def seed_dropout(self, key: int) -> None:
        self.random.manual_seed(key)

    def logits(self, rows: int = MOST_ROWS) -> Tensor:
        """Compute the class scores of every node from all neighbors, without sampling.

        Args:
            rows: Nodes whose features are read at once.

        Returns:
            A tensor of shape (nodes, classes).
        """
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
        return Batch(
            blocks=blocks,
            x=of.source.features(blocks.nodes),
            y=of.source.y[torch.from_numpy(own)],
            total=len(seeds),
        )
