"""A recorded epoch does what the epoch itself does, and keeps what it needs."""

from __future__ import annotations

import gc

import pytest
import torch

from rawlsgcn.graphs import synthetic
from rawlsgcn.methods import Inputs, find_method, with_changes
from rawlsgcn.training import Job, train_runs
from rawlsgcn.training.stacked.engine import StackedEngine

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
METHODS = ["gcn", "rawlsgcn-graph", "rawlsgcn-grad"]


def jobs_of(name: str, **changes: object) -> list[Job]:
    settings = with_changes(find_method(name).defaults, {"dropout": 0.0, "epochs": 20, **changes})
    return [
        Job(with_changes(settings, {"lr": lr}), seed) for lr in (0.05, 0.01) for seed in range(2)
    ]


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_twenty_recorded_steps_equal_the_cpus(name: str, layers: int) -> None:
    graph, method, jobs = synthetic(300), find_method(name), jobs_of(name, num_layers=layers)
    found = [
        train_runs(method, Inputs.of(graph, device=torch.device(d), dtype=torch.float64), jobs)[0]
        for d in ("cpu", "cuda")
    ]
    for here, there in zip(*found, strict=True):
        for key in here.state:
            torch.testing.assert_close(here.state[key], there.state[key], rtol=0, atol=1e-9)


def test_a_recorded_step_keeps_the_memory_that_it_works_on() -> None:
    inputs = Inputs.of(synthetic(300), device=torch.device("cuda"), dtype=torch.float64)
    jobs = jobs_of("gcn")
    engine = StackedEngine(find_method("gcn"), inputs, jobs[0].settings)
    kept = engine.replicas(jobs)
    step = engine.step(kept, jobs)
    again = engine.replicas(jobs)
    expected = engine.step(again, jobs)
    gc.collect()
    torch.cuda.empty_cache()
    for _ in range(20):
        step()
        torch.full((1 << 20,), 7.0, device="cuda")  # would land where the optimizer's memory was
        expected()
    torch.testing.assert_close(kept.parameters, again.parameters, rtol=0, atol=1e-9)
    assert bool(kept.parameters.isfinite().all())
