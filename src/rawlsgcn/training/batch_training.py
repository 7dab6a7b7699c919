"""Training in steps on batches, of samples of a graph or of rows of smoothed features.

A step shares its batch out over the processes of a torchrun; ``DistributedDataParallel`` takes the
mean of their gradients. Everything random is a function of the seed, the epoch and the step, so
that a restart repeats what an unbroken run does.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, distributed, nn
from torch.optim.swa_utils import AveragedModel

from .._core.distributed_context import DistributedContext
from .._core.errors import RawlsError
from ..methods import Settings
from ..methods._ops.convolution import GraphConvolutionalNetwork
from ..methods._ops.fixed_matrix import FixedMatrix
from ..sampling.neighbor_drawing import derive_key
from .reference import BestEpoch
from .sampled.blocks import Blocks

# What a key is for: seeds of different uses must differ.
ORDER, DRAW, DROPOUT = range(3)


class DivergedError(RawlsError):
    """The loss of a step is not a finite number."""


def require_average(average: float) -> None:
    """Raise an error unless the share of averaged steps is from 0 to 1."""
    if not 0 <= average <= 1:
        raise RawlsError(f"average is a share of the steps, from 0 to 1, not {average:g}")


@dataclass(frozen=True, eq=False)
class Batch:
    """A process's share of a step: features, classes, sampled edges; ``total`` nodes in all."""

    x: Tensor
    y: Tensor
    total: int
    blocks: Blocks | None = None


class BatchTraining(ABC):
    """A network that learns from batches.

    Args:
        ends: The numbers of features and of classes.
        nodes: The number of training nodes.
        steps: The steps of one epoch.
        batch_size: Training nodes of one step, shared by all processes.
        seed: Decides the initial weights, the order, every draw and dropout.
        context: Which of how many processes this one is; by default the only one.
        average: The share of all steps, the last ones, over which the weights that are kept are
            the mean (Polyak and Juditsky 1992): gradients of batches are noisy, and so are the
            weights after any single step. 0 keeps the last. With early stopping the weights of
            the best epoch are kept instead.
        fused: Whether Adam updates all weights in one sweep.
        label_smoothing: The share of a target that is spread evenly over the classes.
    """

    def __init__(
        self,
        settings: Settings,
        ends: tuple[int, int],
        *,
        nodes: int,
        steps: int,
        batch_size: int,
        seed: int,
        context: DistributedContext | None,
        average: float,
        dtype: torch.dtype,
        fused: bool = False,
        label_smoothing: float = 0.0,
    ) -> None:
        self.settings, self.steps, self.seed, self.dtype = settings, steps, seed, dtype
        self.context, self.label_smoothing = context or DistributedContext(), label_smoothing
        processes, device = self.context.world_size, self.context.device
        require_average(average)
        if min(batch_size, nodes) < processes:
            raise RawlsError(
                f"{processes} processes cannot share batches of {batch_size} out of {nodes} "
                "training nodes: each needs at least one training node"
            )
        random = torch.Generator(device)
        hidden = [settings.hidden_channels] * (settings.num_layers - 1)
        network = GraphConvolutionalNetwork([ends[0], *hidden, ends[1]], settings.dropout, random)
        network.reset_parameters(torch.Generator().manual_seed(seed))
        #: Begins the stream of the next step's masks.
        self.seed_dropout: Callable[[int], object] = random.manual_seed
        self.network = network.to(device, dtype)
        self.model: nn.Module = self.network
        if processes > 1:
            self.model = nn.parallel.DistributedDataParallel(self.network)
        self.optimizer = torch.optim.Adam(
            self.network.parameters(),
            lr=settings.lr,
            weight_decay=settings.weight_decay,
            fused=fused or None,
        )
        self.mean = AveragedModel(self.network)
        self.averaged = 0 if settings.patience else math.ceil(average * self.total)
        #: All that a checkpoint has to keep, but for the optimizer.
        self.state = nn.ModuleDict({"network": self.network, "mean": self.mean})
        self.best: BestEpoch | None = None
        if settings.patience:
            self.best = BestEpoch(self.network)
            self.state["best"] = self.best

    @property
    def total(self) -> int:
        """Steps of all epochs."""
        return self.steps * self.settings.epochs

    @property
    def kept(self) -> GraphConvolutionalNetwork:
        """The network with the weights of the best epoch, the mean ones, or else the last."""
        network = self.mean.module if int(self.mean.n_averaged) else self.network
        if self.best is not None and bool(self.best.score.isfinite()):
            network = self.best.network
        assert isinstance(network, GraphConvolutionalNetwork)
        return network

    @property
    def trained_epochs(self) -> int:
        """The epochs of a finished run, fewer than planned if it was stopped early."""
        return self.settings.epochs if self.best is None else int(self.best.epochs)

    @property
    def stopped(self) -> bool:
        """Whether validation has not improved for as many epochs as the settings have patience."""
        return self.best is not None and int(self.best.since) >= self.settings.patience

    @abstractmethod
    def batches(self, epoch: int, first: int = 0) -> Iterator[Batch]:
        """Make this process's shares of the steps of an epoch, from the step ``first`` on."""

    def validation_accuracy(self) -> float:
        """The share of validation nodes that the last weights are right on; NaN if not known."""
        return math.nan

    def watch(self) -> float:
        """Return the validation accuracy after an epoch, and keep the best weights if asked for."""
        accuracy = self.validation_accuracy()
        if self.best is not None:
            score = torch.tensor(accuracy, dtype=torch.float64, device=self.context.device)
            if self.context.world_size > 1:  # all processes must decide alike
                distributed.broadcast(score, src=0)
            self.best.compare(self.network, float(score))
        return accuracy

    def loss(self, batch: Batch) -> Tensor:
        """Compute this share's part of the mean loss of the step, times the number of processes.

        DistributedDataParallel takes the mean over processes, which makes it the step's loss
        whatever the sizes of the shares.
        """
        device, blocks = self.context.device, batch.blocks
        x = batch.x.to(device, self.dtype)
        if blocks is None:
            scores = self.model(x, None)
        else:
            scores = self.model(FixedMatrix.of(x), blocks.forward(device), blocks.fair(device))
        loss = nn.functional.cross_entropy(
            scores, batch.y.to(device), label_smoothing=self.label_smoothing, reduction="sum"
        )
        return loss * (self.context.world_size / batch.total)

    def step(self, batch: Batch, epoch: int, number: int) -> float:
        """Train on the batch of an epoch and a step, both from 0; return this share's loss.

        Raises:
            DivergedError: If the loss is not finite.
        """
        self.model.train()
        # A restart must draw the masks that an unbroken run would have drawn.
        self.seed_dropout(derive_key(self.seed, epoch, number, self.context.rank, DROPOUT) >> 1)
        self.optimizer.zero_grad()
        loss = self.loss(batch)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        value = float(loss.detach())
        if not math.isfinite(value):
            raise DivergedError(
                f"the loss is {value} in step {number + 1} of epoch {epoch + 1}, so nothing is "
                f"learned any more: lower the learning rate of {self.settings.lr:g} and start again"
            )
        if epoch * self.steps + number >= self.total - self.averaged:
            self.mean.update_parameters(self.network)
        return value
