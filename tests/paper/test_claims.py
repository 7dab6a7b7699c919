"""The paper's claims hold where the tests say so."""

from __future__ import annotations

from typing import Any

from rawlsgcn.paper.claims import claims


def test_the_claim_about_cost_compares_with_a_gcn_of_as_many_epochs() -> None:
    def cell(method: str, variant: str, times: list[float]) -> dict[str, Any]:
        chosen = {"parameters": 7, "times": {"train": times, "prepare": [0.01]}}
        return {
            "name": method,
            "protocol": "efficiency",
            "dataset": "amazon-photo",
            "graph": "Amazon-Photo",
            "method": method,
            "title": method,
            "variant": variant,
            "chosen": {"validation": chosen, "test": chosen},
        }

    gcn = [cell("gcn", "100 epochs", [1.0, 1.1, 0.9]), cell("gcn", "200 epochs", [9.0] * 3)]
    (same,) = claims([*gcn, cell("rawlsgcn-grad", "", [1.05, 1.1, 0.95])], {})
    assert same["outcome"] == "holds"
    (slow,) = claims([*gcn, cell("rawlsgcn-grad", "", [2.0, 2.2, 1.8])], {})
    assert slow["outcome"] == "fails"
