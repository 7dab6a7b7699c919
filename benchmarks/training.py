"""Training: our engine against torch_geometric's cached GCN, and our methods against our GCN."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch_geometric.data import Data

from rawlsgcn._core.kernels import kernels, without_kernels
from rawlsgcn.experiments.tuning import LEARNING_RATES
from rawlsgcn.methods import Convolutional, Inputs, find_method, with_changes
from rawlsgcn.training import Job
from rawlsgcn.training.stacked.engine import StackedEngine

from .measurement import Measurement, Timing, timed, timed_in_turn
from .rivals import cached_gcn_training

EPOCHS, SEEDS = 100, 5
# The ratios to reach, for five runs and for the grid of 35.
GOALS = {
    "amazon-photo": (25, 40),
    "citeseer": (12, 18),
    "coauthor-cs": (25, 25),
    "coauthor-physics": (100, 150),
}
GPU_GOALS = {"five": "at most 0.030 s", "grid": "at most 0.10 s"}


def against_torch_geometric(
    graph: Data, device: torch.device, repeats: int
) -> Iterator[Measurement]:
    """Compare five runs, and the paper's grid of 35, with as many single runs of the rival."""
    inputs = Inputs.of(graph, device=device)
    rival = cached_gcn_training(inputs)
    # The rival's epochs take the same time: only a few seconds of them are timed.
    once = timed(lambda: rival(2), 1, device).median / 2
    epochs = max(2, min(EPOCHS, round(3 / max(once, 1e-4))))
    per_run = timed(lambda: rival(epochs), repeats, device)
    gcn = _family("gcn")
    for name, jobs in (("five", _jobs("gcn", 1)), ("grid", _jobs("gcn", 7))):
        prepare = partial(prepared, gcn, inputs, jobs)
        facts = {}
        if name == "five":
            facts["first_prepare_seconds"] = timed(prepare, 1, device, warm=False).median
        goal = GOALS.get(graph.name)
        aim = f"at least {goal[name == 'grid']}" if goal else ""
        if device.type == "cuda":
            aim = GPU_GOALS[name] if graph.name == "amazon-photo" else ""
        yield Measurement(
            "training",
            f"{graph.name}: {len(jobs)} runs x {EPOCHS} epochs",
            ours=timed(prepare(), repeats, device),
            rival=Timing(per_run.samples, EPOCHS / epochs * len(jobs)),
            rival_name="torch_geometric's cached GCN, one run after another"
            + ("" if epochs == EPOCHS else f" ({epochs} epochs timed)"),
            goal=aim,
            facts={**facts, "prepare_seconds": timed(prepare, repeats, device).median},
        )


def against_own_gcn(graph: Data, device: torch.device, repeats: int) -> Iterator[Measurement]:
    """Compare both methods with our own GCN, as the paper promises no extra cost.

    That GCN is also compared with itself without compiled kernels, where there are any.
    """
    inputs = Inputs.of(graph, device=device)
    names = ("gcn", "rawlsgcn-graph", "rawlsgcn-grad")
    trainings = [prepared(_family(name), inputs, _jobs(name, 1)) for name in names]
    if device.type == "cpu" and kernels() is not None:
        trainings.append(partial(_by_torch, trainings[0]))
    gcn, *others = timed_in_turn(trainings, repeats, device)
    for name, seconds in zip(names[1:], others, strict=False):
        yield Measurement(
            "methods",
            f"{graph.name}: {name}, {SEEDS} runs x {EPOCHS} epochs",
            ours=seconds,
            rival=gcn,
            rival_name="our own GCN",
            goal="at most 1.10",
            inverse=True,
        )
    for seconds in others[2:]:
        yield Measurement(
            "compiled products",
            f"{graph.name}: gcn, {SEEDS} runs x {EPOCHS} epochs",
            ours=gcn,
            rival=seconds,
            rival_name="the same by torch, where nothing was compiled",
        )


def _by_torch(training: Callable[[], object]) -> None:
    with without_kernels():
        training()


def prepared(method: Convolutional, inputs: Inputs, jobs: list[Job]) -> Callable[[], object]:
    """Return training as a call, with everything before the first epoch done (see README.md)."""
    engine = StackedEngine(method, inputs, jobs[0].settings)
    if inputs.device.type != "cuda":
        return lambda: engine.train(jobs)
    step = engine.step(engine.replicas(jobs), jobs)
    return lambda: _repeat(step, jobs[0].settings.epochs)


def _repeat(step: Callable[[], None], times: int) -> None:
    for _ in range(times):
        step()


def _family(name: str) -> Convolutional:
    method = find_method(name)
    assert isinstance(method, Convolutional)
    return method


def _jobs(name: str, rates: int) -> list[Job]:
    method = find_method(name)
    base = with_changes(method.defaults, {"epochs": EPOCHS})
    values = LEARNING_RATES[:rates] if rates > 1 else [base.lr]
    return [Job(with_changes(base, {"lr": lr}), seed) for lr in values for seed in range(SEEDS)]
