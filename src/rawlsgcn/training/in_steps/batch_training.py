"""Training in steps on batches, shared by the trainer on samples and the trainer on rows.

A step shares its batch out over the processes of a torchrun; ``DistributedDataParallel`` takes the
mean of their gradients. Everything random is a function of the seed, the epoch and the step, so
that a restart repeats what an unbroken run does.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, distributed, nn
from torch.optim.swa_utils import AveragedModel

from ..._core.distributed_context import DistributedContext
from ..._core.errors import RawlsError
from ...methods import Settings
from ...methods._ops.convolution import GraphConvolutionalNetwork
from ...methods.base import all_finite
from ...sampling.neighbor_drawing import derive_key

# What a key is for: seeds of different uses must differ.
ORDER, DRAW, DROPOUT = range(3)
B = TypeVar("B")


class DivergedError(RawlsError):
    """The loss of a step is not a finite number."""


def require_average(average: float) -> None:
    """Raise an error unless the share of averaged steps is from 0 to 1."""
    if not 0 <= average <= 1:
        raise RawlsError(f"average is a share of the steps, from 0 to 1, not {average:g}")


class BestEpoch(nn.Module):
    """The weights of the epoch with the best validation score, the epochs since, and all epochs.

    The form of :class:`..early_stopping.EarlyStopping` that a checkpoint can keep.

    Args:
        network: The network.
    """

    score: Tensor
    since: Tensor
    epochs: Tensor

    def __init__(self, network: GraphConvolutionalNetwork) -> None:
        super().__init__()
        self.network = copy.deepcopy(network).requires_grad_(False)
        self.register_buffer("score", torch.tensor(-math.inf, dtype=torch.float64))
        self.register_buffer("since", torch.tensor(0))
        self.register_buffer("epochs", torch.tensor(0))

    def compare(self, network: GraphConvolutionalNetwork, score: Tensor) -> None:
        """Take the weights over if their score is the best so far.

        Args:
            network: The network after an epoch.
            score: Its score, a number; NaN is never the best.
        """
        self.epochs += 1
        if bool(score > self.score) and all_finite(network.state_dict().values()):
            self.score.copy_(score)
            self.since.zero_()
            self.network.load_state_dict(network.state_dict())
        else:
            self.since += 1


class BatchTraining(ABC, Generic[B]):
    """A network that learns from batches; ``B`` is a process's share of one.

    Args:
        network: The network, with its initial weights.
        settings: The settings of the method.
        steps: The steps of one epoch.
        seed: Decides the initial weights, the order, every draw and dropout.
        context: Which of how many processes this one is.
        average: The share of all steps, the last ones, over which the weights that are kept are
            the mean (Polyak and Juditsky 1992): gradients of batches are noisy, and so are the
            weights after any single step. 0 keeps the last. With early stopping the weights of
            the best epoch are kept instead.
        dtype: The type of the weights.
        fused: Whether Adam updates all weights in one sweep.
    """

    def __init__(
        self,
        network: GraphConvolutionalNetwork,
        settings: Settings,
        *,
        steps: int,
        seed: int,
        context: DistributedContext,
        average: float,
        dtype: torch.dtype = torch.float32,
        fused: bool = False,
    ) -> None:
        self.settings, self.steps, self.seed, self.context = settings, steps, seed, context
        self.dtype = dtype
        self.network = network.to(context.device, dtype)
        self.model: nn.Module = self.network
        if context.world_size > 1:
            self.model = nn.parallel.DistributedDataParallel(self.network)
        how: dict[str, Any] = {"fused": True} if fused else {}
        self.optimizer = torch.optim.Adam(
            self.network.parameters(), lr=settings.lr, weight_decay=settings.weight_decay, **how
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
        averaged = int(self.mean.n_averaged)
        network = self.mean.module if averaged else self.network
        if self.best is not None and bool(self.best.score.isfinite()):
            network = self.best.network
        assert isinstance(network, GraphConvolutionalNetwork)
        return network

    @abstractmethod
    def batches(self, epoch: int, first: int = 0) -> Iterator[B]:
        """Make this process's shares of the steps of an epoch, from the step ``first`` on."""

    @abstractmethod
    def loss(self, batch: B) -> Tensor:
        """Compute this share's part of the mean loss of the step, times the number of processes.

        DistributedDataParallel takes the mean over processes, which makes it the step's loss
        whatever the sizes of the shares.
        """

    @abstractmethod
    def seed_dropout(self, key: int) -> None:
        """Draw the masks of the next step from a generator with this seed, of 63 bits."""

    def validation_accuracy(self) -> float:
        """Compute the accuracy of the last weights on validation nodes, for early stopping.

        Returns:
            A share from 0 to 1; NaN if it is not known.
        """
        return math.nan

    @property
    def trained_epochs(self) -> int:
        """The epochs of a finished run, fewer than planned if it was stopped early."""
        return self.settings.epochs if self.best is None else int(self.best.epochs)

    @property
    def stopped(self) -> bool:
        """Whether validation has not improved for as many epochs as the settings have patience."""
        return self.best is not None and int(self.best.since) >= self.settings.patience

    def watch(self) -> None:
        """Compare the weights after an epoch with the best ones, if there is early stopping."""
        if self.best is None:
            return
        score = torch.tensor(self.validation_accuracy(), dtype=torch.float64)
        if self.context.world_size > 1:  # all processes must decide alike
            score = score.to(self.context.device)
            distributed.broadcast(score, src=0)
        self.best.compare(self.network, score.cpu())

    def epoch_ended(self, epoch: int) -> str:
        """Return what the progress says after an epoch, which is numbered from 0."""
        return f"epoch {epoch + 1}"

    def step(self, batch: B, epoch: int, number: int) -> float:
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
