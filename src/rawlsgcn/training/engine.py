"""The one door to training: picks the engine that suits the method."""

from __future__ import annotations

import time
from collections.abc import Sequence

from torch import Tensor

from ..errors import RawlsError, unknown_name
from ..methods import Convolutional, Inputs, Learner, Method
from . import reference
from .fast import FastEngine
from .runs import Job, Progress, Run, silent

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

    The jobs of one call share depth, width and normalisation and may differ in the rest.
    """
    if engine not in ENGINES:
        raise unknown_name("engine", engine, ENGINES)
    if engine == "fast" and not isinstance(method, Convolutional):
        raise RawlsError(f"the fast engine cannot train {method.name}: use the reference engine")
    times = [time.perf_counter()]
    early = any(job.settings.patience for job in jobs)  # watching epochs needs the plain engine
    if isinstance(method, Convolutional) and engine != "reference" and not early:
        fast = FastEngine(method, inputs, jobs[0].settings)
        times.append(time.perf_counter())
        states = fast.train(jobs, progress)
        times.append(time.perf_counter())
        count = sum(tensor.numel() for tensor in states[0])
        runs = [Run(count, _named(state), fast.logits(state).cpu()) for state in states]
    else:
        times.append(times[0])
        learners = reference.train(method, inputs, jobs, progress)
        times.append(time.perf_counter())
        runs = [_run(learner) for learner in learners]
    times.append(time.perf_counter())
    parts = ("prepare", "train", "evaluate")
    return runs, {part: b - a for part, a, b in zip(parts, times, times[1:], strict=False)}


def _run(learner: Learner) -> Run:
    parameters = sum(parameter.numel() for parameter in learner.module.parameters())
    return Run(parameters, _on_cpu(learner.module.state_dict()), learner.logits().cpu())


def _named(state: list[Tensor]) -> dict[str, Tensor]:
    """The fast engine's weights under the names of the reference engine's module."""
    names = [f"layers.{i}.{kind}" for i in range(len(state) // 2) for kind in ("weight", "bias")]
    return _on_cpu(dict(zip(names, state, strict=True)))


def _on_cpu(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}
