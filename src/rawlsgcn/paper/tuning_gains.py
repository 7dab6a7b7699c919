"""How much of a method's gain over the paper's GCN is tuning, and how much is the method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from .plan import OWN


def tuning_gains(results: Mapping[str, Any]) -> pd.DataFrame:
    """Split the gain in accuracy over the paper's GCN into tuning and method.

    A row is a method on a graph of the fair comparison: ``gcn`` is the accuracy of a GCN with the
    paper's settings, ``tuned_gcn`` with its own, ``accuracy`` the method's; ``bias_ratio`` is the
    method's calibrated bias as a multiple of the tuned GCN's.
    """
    figures = ("accuracy", "calibrated_bias")
    names = ("dataset", "graph", "method", "title")
    rows = []
    for cell in results["cells"]:
        chosen = cell["chosen"]["validation"]
        if cell["protocol"] == "fair" and chosen is not None:
            # The paper's rate and weight decay are a point of the fair grid.
            papers = [
                t for t in cell["trials"] if t["values"] == {"lr": 0.01, "weight_decay": 5e-4}
            ]
            means = [chosen[name]["mean"] for name in figures]
            before = papers[0]["accuracy"]["mean"] if papers else None
            rows.append([*(cell[name] for name in names), *means, before])
    tuned = pd.DataFrame(rows, columns=[*names, *figures, "gcn"])
    gcn = tuned[tuned["method"] == "gcn"].set_index("dataset")
    gains = tuned[tuned["method"].isin(OWN)].drop(columns="gcn")
    gains = gains.join(gcn[["gcn", *figures]].add_prefix("tuned_"), on="dataset")
    gains = gains.rename(columns={"tuned_gcn": "gcn", "tuned_accuracy": "tuned_gcn"}).dropna()
    gains["by_tuning"] = gains["tuned_gcn"] - gains["gcn"]
    gains["by_method"] = gains["accuracy"] - gains["tuned_gcn"]
    gains["bias_ratio"] = gains["calibrated_bias"] / gains["tuned_calibrated_bias"]
    return gains
