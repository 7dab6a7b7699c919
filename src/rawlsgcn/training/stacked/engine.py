"""The stacked engine: networks with fixed matrices, exact and many times faster than plain ones.

Four ideas: only the rows that reach the loss are computed
(``methods/_ops/receptive_field.py``), products that never change are computed once
(``methods/_ops/fixed_matrix.py``), runs are trained at once (``networks.py``, ``blocks.py``), and
on a GPU an epoch is recorded once and replayed (:func:`recorded`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from ..._core.progress import ProgressCallback, no_progress
from ..._core.random_state import kept_random_state
from ..._core.threads import training_threads
from ...methods import Inputs, Settings, Stackable
from ...methods._ops.convolution import GraphConvolutionalNetwork
from ..runs import Job
from .adam import FusedAdam, VectorAdam
from .blocks import EpochCounter, block_size, train_side_by_side
from .dropout import Dropout
from .networks import Replicas


class StackedEngine:
    """A method's products on one graph, prepared once for any number of runs.

    The jobs that it trains may differ in seed, rate, weight decay, dropout and epochs; depth,
    width and normalization are those of ``settings``.
    """

    def __init__(self, method: Stackable, inputs: Inputs, settings: Settings) -> None:
        self.inputs = inputs
        self.stack = method.stack(inputs, settings)
        self.sizes, self.layers = self.stack.sizes, self.stack.layers
        self.label_smoothing = method.label_smoothing(settings)
        #: Remarks for the user about how the last jobs were trained.
        self.notes: list[str] = []

    def train(
        self, jobs: Sequence[Job], progress: ProgressCallback = no_progress, workers: int = 1
    ) -> list[list[Tensor]]:
        """Train all jobs, block by block; every run's weights and biases, in the jobs' order.

        With several ``workers`` so many blocks are trained at once on the CPU.
        """
        blocks = self._blocks(jobs)
        total = sum(jobs[block[0]].settings.epochs for block in blocks)
        counter = EpochCounter(total, progress)

        def train(block: list[int]) -> list[list[Tensor]]:
            replicas = self.replicas([jobs[place] for place in block])
            step = self.step(replicas, [jobs[place] for place in block])
            with training_threads() as update_threads:
                for _ in range(jobs[block[0]].settings.epochs):
                    update_threads()
                    step()
                    counter()
            return [replicas.state(run) for run in range(len(block))]

        if self.on_gpu or workers == 1 or len(blocks) == 1:
            with kept_random_state() if self.on_gpu else nullcontext():
                trained = [train(block) for block in blocks]
        else:
            trained = train_side_by_side(train, blocks, workers, counter)
        places = np.argsort(np.concatenate(blocks))
        states = [state for each in trained for state in each]
        return [states[place] for place in places]

    def _blocks(self, jobs: Sequence[Job]) -> list[list[int]]:
        """The jobs' indices, in blocks that are trained at once.

        A CPU wants the rates of a block equal (torch's fused Adam) and products as wide as suits
        the features; a GPU wants as few and as large products as its memory holds.
        """
        size = block_size(self.sizes, self.layers, self.inputs, self.on_gpu)
        alike: dict[tuple[float, ...], list[int]] = {}
        for place, job in enumerate(jobs):
            each = job.settings
            rates = () if self.on_gpu else (each.lr, each.weight_decay)
            alike.setdefault((*rates, each.dropout, each.epochs), []).append(place)
        blocks = [
            places[at : at + size]
            for places in alike.values()
            for at in range(0, len(places), size)
        ]
        if self.on_gpu and len(blocks) > len(alike):
            self.notes = [
                f"the GPU's free memory fits {size:,} of the runs at once, so they were trained "
                "in blocks of that size."
            ]
        return blocks

    @property
    def on_gpu(self) -> bool:
        return self.inputs.device.type == "cuda"

    def replicas(self, block: list[Job]) -> Replicas:
        """The block's runs at their initial weights: the same that the reference engine draws."""
        device, dtype = self.inputs.device, self.inputs.dtype
        states = []
        for job in block:
            module = GraphConvolutionalNetwork(self.sizes, job.settings.dropout)
            module.reset_parameters(torch.Generator().manual_seed(job.seed))
            states.append([p.detach().to(device, dtype) for p in module.parameters()])
        dropout = Dropout([job.seed for job in block], block[0].settings.dropout, device)
        return Replicas(
            self.layers,
            self.inputs.y[self.inputs.train],
            states,
            dropout,
            weight=self.inputs.train_weight,
            label_smoothing=self.label_smoothing,
        )

    def step(self, replicas: Replicas, block: list[Job]) -> Callable[[], None]:
        """One epoch of the block: gradients, then Adam."""
        adam: FusedAdam | VectorAdam

        def epoch() -> None:
            replicas.step()
            adam.step()

        if not self.on_gpu:
            rate, decay = block[0].settings.lr, block[0].settings.weight_decay
            adam = FusedAdam(replicas.parameters, replicas.gradients, rate, decay)
            return epoch
        adam = VectorAdam(
            replicas.parameters,
            replicas.gradients,
            replicas.spread([job.settings.lr for job in block]),
            replicas.spread([job.settings.weight_decay for job in block]),
        )
        with torch.cuda.device(self.inputs.device):
            torch.cuda.manual_seed(block[0].seed)
        return recorded(epoch, adam.state)


def shared_settings(settings: Settings) -> Settings:
    """``settings`` with everything set to the same in which runs of one engine may differ."""
    return replace(settings, lr=1.0, weight_decay=0.0, dropout=0.0, epochs=1)


def recorded(step: Callable[[], object], state: list[Tensor]) -> Callable[[], None]:
    """``step`` as a CUDA graph that is replayed by calling the result: an epoch is launch-bound.

    CUDA graphs ask for a few ordinary calls before the recording; ``state``, all that the step
    changes, and the random stream are put back to what they were before them.
    """
    device = state[0].device
    with torch.cuda.device(device):
        before = [tensor.clone() for tensor in state]
        random = torch.cuda.get_rng_state(device)
        side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.current_stream(device).wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        for tensor, value in zip(state, before, strict=True):
            tensor.copy_(value)
        torch.cuda.set_rng_state(random, device)
    return partial(_replay, graph, step)


def _replay(graph: torch.cuda.CUDAGraph, step: Callable[[], object]) -> None:
    """Replay. ``step`` is held: the graph reads and writes its memory but does not keep it."""
    graph.replay()
