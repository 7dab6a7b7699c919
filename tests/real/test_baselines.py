"""The baselines' architectures, to the last weight; and the same seed, the same numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import rawlsgcn as rg

# With the other slow tests: training on the paper's graphs takes minutes in all.
pytestmark = pytest.mark.slow

PARAMETERS = {
    "demo-net": 11_999_880,
    "dsgcn": 181_096,
    "tail-gnn": 2_845_567,
    "advfair": 89_280,
    "redress": 48_264,
}


@pytest.mark.parametrize("method", PARAMETERS)
def test_parameters_on_amazon_photo_are_the_papers(method: str, data_root: Path) -> None:
    result = rg.fit(rg.load("amazon-photo", root=data_root), method, epochs=1, seeds=1)
    assert result.parameters == PARAMETERS[method]


@pytest.mark.parametrize("method", ["gcn", "rawlsgcn-graph", "rawlsgcn-grad", *PARAMETERS])
def test_the_same_seed_gives_the_same_numbers_twice(method: str, data_root: Path) -> None:
    graph = rg.load("cora-ml", root=data_root)
    first, second = (rg.fit(graph, method, epochs=3, seeds=[4]) for _ in range(2))
    assert torch.equal(first.logits, second.logits)
