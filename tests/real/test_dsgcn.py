"""DSGCN on Amazon-Photo: exactly the paper's number of parameters."""

from __future__ import annotations

from pathlib import Path

import pytest

from rawlsgcn.graphs import load
from rawlsgcn.methods import Inputs, find_method

# With the other slow tests: training on the paper's graphs takes minutes in all.
pytestmark = pytest.mark.slow


def test_parameters_are_those_of_the_papers_table(data_root: Path) -> None:
    method = find_method("dsgcn")
    inputs = Inputs.of(load("amazon-photo", root=data_root))
    learner = method.learner(inputs, method.defaults, seed=0)
    assert sum(parameter.numel() for parameter in learner.module.parameters()) == 181_096


def test_it_learns(data_root: Path) -> None:
    """Far above the largest class's share; the method is unstable, the bar is low."""
    method = find_method("dsgcn")
    inputs = Inputs.of(load("amazon-photo", root=data_root))
    learner = method.learner(inputs, method.defaults, seed=0)
    for _ in range(method.defaults.epochs):
        learner.epoch()
    correct = learner.logits().argmax(1)[inputs.test] == inputs.y[inputs.test]
    assert correct.float().mean() > 0.45
