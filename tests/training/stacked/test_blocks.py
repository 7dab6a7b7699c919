"""Blocks trained side by side: the same weights, and one failure ends all."""

from __future__ import annotations

import threading

import pytest
import torch

from rawlsgcn._core.kernels import kernels, without_kernels
from rawlsgcn._core.progress import no_progress
from rawlsgcn._core.threads import limited_threads
from rawlsgcn.graphs import check, synthetic
from rawlsgcn.methods import Inputs, find_method
from rawlsgcn.training import Job
from rawlsgcn.training.stacked.blocks import EpochCounter, train_side_by_side
from rawlsgcn.training.stacked.engine import StackedEngine


def test_the_bits_do_not_depend_on_the_number_of_workers() -> None:
    method, inputs = find_method("smoothed-mlp"), Inputs.of(check(synthetic(200)))
    rates = (0.05, 0.01, 0.005)
    jobs = [
        Job(method.configure({"lr": lr, "epochs": 10}), seed) for lr in rates for seed in (0, 1)
    ]
    engine = StackedEngine(method, inputs, jobs[0].settings)
    with limited_threads(1):
        alone = engine.train(jobs)
    seen: list[int] = []
    beside = engine.train(jobs, lambda done, total, what=None: seen.append(done), workers=3)
    for one, other in zip(alone, beside, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    assert seen == list(range(1, 10 * len(rates) + 1))


def test_a_failure_ends_the_other_blocks_and_is_the_one_that_is_raised() -> None:
    counter, begun = EpochCounter(10**9, no_progress), threading.Event()

    def train(block: int) -> None:
        if block == 1:
            begun.wait(10)
            raise ValueError("block 1")
        while True:  # ends only because the counter stops it
            begun.set()
            counter()

    with pytest.raises(ValueError, match="block 1"):
        train_side_by_side(train, [0, 1, 2, 3], 2, counter)


def test_threads_have_the_callers_context_and_one_thread_each() -> None:
    def look(block: int) -> tuple[bool, int]:
        return kernels() is None, torch.get_num_threads()

    counter = EpochCounter(1, no_progress)
    with without_kernels():
        assert train_side_by_side(look, [0, 1, 2], 2, counter) == [(True, 1)] * 3
