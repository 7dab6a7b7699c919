"""DEMO-Net on Amazon-Photo: exactly the paper's number of parameters."""

from __future__ import annotations

from pathlib import Path

from rawlsgcn.graphs import load
from rawlsgcn.methods import Inputs, find_method


def test_parameters_are_those_of_the_papers_table(data_root: Path) -> None:
    method = find_method("demo-net")
    inputs = Inputs.of(load("amazon-photo", root=data_root))
    learner = method.learner(inputs, method.defaults, seed=0)
    assert sum(parameter.numel() for parameter in learner.module.parameters()) == 11_999_880
