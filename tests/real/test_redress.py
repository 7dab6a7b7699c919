"""REDRESS on the paper's graphs: its size on Amazon-Photo, its accuracy and bias on Cora-ML."""

from __future__ import annotations

from pathlib import Path

import pytest

import rawlsgcn as rg

# With the other slow tests: training on the paper's graphs takes minutes in all.
pytestmark = pytest.mark.slow


def test_parameters_on_amazon_photo(data_root: Path) -> None:
    photo = rg.load("amazon-photo", root=data_root)
    assert rg.fit(photo, "redress", seeds=1, epochs=1).parameters == 48_264


def test_cora_ml_gives_the_papers_numbers(data_root: Path) -> None:
    result = rg.fit(rg.load("cora-ml", root=data_root), "redress", seeds=2)
    assert 73.5 <= result.accuracy.mean <= 78.0
    assert 0.45 <= result.bias.mean <= 1.2
