"""The gain over the paper's GCN is that of tuning and that of the method."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rawlsgcn.paper.tuning_gains import tuning_gains

RESULTS = Path(__file__).parents[2] / "results" / "paper" / "results.json"


def test_gains_by_tuning_and_by_method_add_up() -> None:
    gains = tuning_gains(json.loads(RESULTS.read_text(encoding="utf-8")))
    assert len(gains) == 14
    both = gains["by_tuning"] + gains["by_method"]
    assert both.tolist() == pytest.approx((gains["accuracy"] - gains["gcn"]).tolist())
