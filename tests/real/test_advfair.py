"""AdvFair's parameters on Amazon-Photo add up to the paper's Table 4."""

from __future__ import annotations

from pathlib import Path

import rawlsgcn as rg


def test_parameters_on_amazon_photo(data_root: Path) -> None:
    photo = rg.load("amazon-photo", root=data_root)
    assert rg.fit(photo, "advfair", seeds=1, epochs=1).parameters == 89_280
