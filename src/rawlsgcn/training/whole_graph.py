"""``train_runs``: train jobs on the whole graph, by the engine that suits the method."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from .._core.errors import RawlsError, unknown_name
from .._core.progress import ProgressCallback, no_progress
from .._core.random_state import kept_random_state
from .._core.threads import threads_for_graph, training_threads
from ..methods import Convolutional, Inputs, Method, Settings, Stackable
from .engine_choice import ENGINES, STEPWISE
from .reference import train_reference
from .runs import Job, TrainedRun
from .stacked.engine import StackedEngine, shared_settings


def train_runs(
    method: Method,
    inputs: Inputs,
    jobs: Sequence[Job],
    *,
    engine: str = "auto",
    progress: ProgressCallback = no_progress,
) -> tuple[list[TrainedRun], dict[str, float]]:
    """Train jobs; those that share depth, width and normalization are trained at once if possible.

    Args:
        method: The method.
        inputs: The graph.
        jobs: The runs to be trained.
        engine: ``"stacked"`` (GCN family and smoothed-mlp, without early stopping),
            ``"reference"``, or ``"auto"`` for the first where it is possible.
        progress: Called with the epochs done and the epochs in total.

    Returns:
        The runs in the order of the jobs, and the seconds of preparing, training and evaluating.

    Raises:
        RawlsError: If the engine is unknown or cannot train these jobs.
    """
    if engine in STEPWISE:
        raise RawlsError(
            f"the engine '{engine}' does not train on the whole graph: use 'rawlsgcn train "
            f"--engine {engine}', or engine 'auto'"
        )
    if engine not in ENGINES:
        raise unknown_name("engine", engine, ENGINES)
    if engine == "stacked" and not isinstance(method, Stackable):
        raise RawlsError(f"the stacked engine cannot train {method.name}: use engine 'reference'")
    if inputs.train_weight is not None and not isinstance(method, Stackable):
        raise RawlsError(f"{method.name} cannot be trained with weights of the training nodes")
    early = any(job.settings.patience for job in jobs)
    if engine == "stacked" and early:
        raise RawlsError(
            "the stacked engine cannot stop early: set patience to 0, or use engine 'reference'"
        )
    clock = Clock(inputs.device)
    if isinstance(method, Stackable) and engine != "reference" and not early:
        return _train_stacked(method, inputs, jobs, progress, clock), clock.seconds
    runs = []
    with kept_random_state():
        for learner in train_reference(method, inputs, jobs, progress):
            clock.lap("train")
            count = sum(parameter.numel() for parameter in learner.module.parameters())
            kept = _on_cpu(learner.module.state_dict())
            runs.append(TrainedRun(count, kept, learner.logits().cpu()))
            clock.lap("evaluate")
    return runs, clock.seconds


def _train_stacked(
    method: Stackable,
    inputs: Inputs,
    jobs: Sequence[Job],
    progress: ProgressCallback,
    clock: Clock,
) -> list[TrainedRun]:
    workers = 1 if isinstance(method, Convolutional) else torch.get_num_threads()
    groups: dict[Settings, list[int]] = {}
    for index, job in enumerate(jobs):
        groups.setdefault(shared_settings(job.settings), []).append(index)
    total, done = sum(job.settings.epochs for job in jobs), 0
    runs: dict[int, TrainedRun] = {}
    for settings, indices in groups.items():
        share = sum(jobs[index].settings.epochs for index in indices)
        with threads_for_graph(inputs.x, inputs.edge_index), training_threads():
            engine = StackedEngine(method, inputs, settings)
        clock.lap("prepare")
        part = PartialProgress(progress, done, share, total)
        with threads_for_graph(*engine.stack.tensors), training_threads():
            states = engine.train([jobs[index] for index in indices], part, workers)
        clock.lap("train")
        count = sum(tensor.numel() for tensor in states[0])
        with threads_for_graph(inputs.x, inputs.edge_index), training_threads():
            notes = (*engine.stack.notes, *engine.notes)
            for index, state in zip(indices, states, strict=True):
                # The names of the reference engine's module.
                places = product(range(len(state) // 2), ("weight", "bias"))
                names = [f"layers.{number}.{kind}" for number, kind in places]
                kept = dict(zip(names, state, strict=True)) | dict(engine.stack.fixed)
                runs[index] = TrainedRun(
                    count, _on_cpu(kept), engine.stack.logits(state).cpu(), notes
                )
        clock.lap("evaluate")
        done += share
    return [runs[index] for index in range(len(jobs))]


@dataclass(frozen=True)
class PartialProgress:
    """The progress of some of the jobs, which may have a name, as a part of the progress of all."""

    progress: ProgressCallback
    before: int
    share: int
    total: int
    name: str | None = None

    def __call__(self, done: int, total: int, description: str | None = None) -> None:
        where = self.before + self.share * done // max(1, total), self.total
        if self.name is None:
            self.progress(*where)
        else:
            self.progress(*where, ", ".join(filter(None, (self.name, description))))


class Clock:
    """The seconds of preparing, training and evaluating, each with the GPU's work finished."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.seconds = {"prepare": 0.0, "train": 0.0, "evaluate": 0.0}
        self.last = time.perf_counter()

    def lap(self, part: str) -> None:
        """Add the time since the last call to a part."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        now = time.perf_counter()
        self.seconds[part] += now - self.last
        self.last = now


def _on_cpu(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}
