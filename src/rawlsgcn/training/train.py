"""The one door to training: picks the engine that suits the method."""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch
from torch import Tensor

from .._core.errors import RawlsError, unknown_name
from .._core.random_state import kept_random_state
from .._core.threads import TrainingThreads, threads_for_graph
from ..methods import Convolutional, Inputs, Learner, Method, Settings
from . import reference
from .stacked.engine import FastEngine, shared_settings
from .trained_runs import Job, Progress, Run, silent

ENGINES = ("auto", "fast", "reference")


def train(
    method: Method,
    inputs: Inputs,
    jobs: Sequence[Job],
    *,
    engine: str = "auto",
    progress: Progress = silent,
) -> tuple[list[Run], dict[str, float]]:
    """Train ``jobs`` and return the runs, in order, and the seconds that each part took.

    Jobs that share depth, width and normalisation are trained as one by the fast engine.
    """
    if engine not in ENGINES:
        raise unknown_name("engine", engine, ENGINES)
    if engine == "fast" and not isinstance(method, Convolutional):
        raise RawlsError(f"the fast engine cannot train {method.name}: use the reference engine")
    early = any(job.settings.patience for job in jobs)  # watching epochs needs the plain engine
    if engine == "fast" and early:
        raise RawlsError(
            "the fast engine cannot stop early: leave patience at 0, or use the reference engine"
        )
    clock = Clock(inputs.device)
    if isinstance(method, Convolutional) and engine != "reference" and not early:
        with threads_for_graph(inputs.x, inputs.edge_index), TrainingThreads():
            runs = _train_fast(method, inputs, jobs, progress, clock)
    else:
        runs = []
        with kept_random_state():
            for learner in reference.train(method, inputs, jobs, progress):
                clock.lap("train")
                runs.append(_run(learner))
                clock.lap("evaluate")
    return runs, clock.seconds


def _train_fast(
    method: Convolutional,
    inputs: Inputs,
    jobs: Sequence[Job],
    progress: Progress,
    clock: Clock,
) -> list[Run]:
    groups: dict[Settings, list[int]] = {}
    for place, job in enumerate(jobs):
        groups.setdefault(shared_settings(job.settings), []).append(place)
    total, done = sum(job.settings.epochs for job in jobs), 0
    runs: dict[int, Run] = {}
    for settings, places in groups.items():
        share = sum(jobs[place].settings.epochs for place in places)
        engine = FastEngine(method, inputs, settings)
        clock.lap("prepare")

        def tell(step: int, steps: int, before: int = done, own: int = share) -> None:
            progress(before + own * step // max(1, steps), total)

        states = engine.train([jobs[place] for place in places], tell)
        clock.lap("train")
        count = sum(tensor.numel() for tensor in states[0])
        for place, state in zip(places, states, strict=True):
            notes = () if engine.note is None else (engine.note,)
            runs[place] = Run(count, _named(state), engine.logits(state).cpu(), notes)
        clock.lap("evaluate")
        done += share
    return [runs[place] for place in range(len(jobs))]


class Clock:
    """The seconds of preparing, training and evaluating, each with the GPU's work done."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.seconds = {"prepare": 0.0, "train": 0.0, "evaluate": 0.0}
        self.last = time.perf_counter()

    def lap(self, part: str) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        now = time.perf_counter()
        self.seconds[part] += now - self.last
        self.last = now


def _run(learner: Learner) -> Run:
    parameters = sum(parameter.numel() for parameter in learner.module.parameters())
    return Run(parameters, _on_cpu(learner.module.state_dict()), learner.logits().cpu())


def _named(state: list[Tensor]) -> dict[str, Tensor]:
    """The fast engine's weights under the names of the reference engine's module."""
    names = [f"layers.{i}.{kind}" for i in range(len(state) // 2) for kind in ("weight", "bias")]
    return _on_cpu(dict(zip(names, state, strict=True)))


def _on_cpu(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}
