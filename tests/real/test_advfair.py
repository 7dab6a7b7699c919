"""AdvFair's parameters on Amazon-Photo add up to the paper's Table 4."""

from __future__ import annotations

from pathlib import Path

import pytest

import rawlsgcn as rg

# With the other slow tests: training on the paper's graphs takes minutes in all.
pytestmark = pytest.mark.slow


def test_parameters_on_amazon_photo(data_root: Path) -> None:
    photo = rg.load("amazon-photo", root=data_root)
    assert rg.fit(photo, "advfair", seeds=1, epochs=1).parameters == 89_280
