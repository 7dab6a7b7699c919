"""The paper's Figures 1 to 3, and accuracy against bias of all methods on each graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..experiments.fitting import fit
from ..reporting.figure_style import INK, Figure, legend, save
from ..reporting.figures import (
    MethodPoint,
    by_degree,
    degrees,
    draw_accuracy_bias,
    side_by_side,
)
from .plan import EFFICIENCY_GRAPH, MAIN, Plan
from .tables import ordered
from .trials import evaluated_graph

FOLDER = "figures"


def paper_figures(
    cells: Sequence[Mapping[str, Any]], plan: Plan, device: str, root: Path | None, out: Path
) -> list[dict[str, str]]:
    """Train GCN and the two methods with their chosen settings, and draw Figures 1, 2 and 3."""
    dataset = EFFICIENCY_GRAPH if EFFICIENCY_GRAPH in plan.datasets else plan.datasets[0]
    graph = evaluated_graph(dataset, "test", root)
    results = []
    for method in MAIN:
        settings = dict(plan.changes)
        for cell in cells:
            if cell["name"] == f"rawlsgcn/paper/{dataset}/{method}":
                settings |= (cell["chosen"]["validation"] or {}).get("values", {})
        result = fit(
            graph, method, seeds=plan.seeds, device=device, check_weight_decay=False, **settings
        )
        results.append(result)
    drawn = {
        "figure-1": (by_degree(results[0]), "Figure 1: loss and accuracy of a GCN by degree."),
        "figure-2": (degrees(graph), "Figure 2: each node's degree in A and in Â."),
        "figure-3": (
            side_by_side(results),
            "Figure 3: loss and accuracy by degree of a GCN and of both methods.",
        ),
    }
    made = []
    for name, (figure, caption) in drawn.items():
        for suffix in (".png", ".svg"):
            save(figure, out / FOLDER / f"{name}{suffix}")
        made.append({"file": f"{FOLDER}/{name}", "caption": caption, "graph": dataset})
    return made


def accuracy_bias_figures(results: Mapping[str, Any]) -> dict[str, tuple[str, Figure]]:
    """Return each graph's title and figure, with the settings chosen by validation accuracy.

    Every method of a graph is drawn: low bias to the left, high accuracy above, and the front.
    """
    points: dict[str, list[MethodPoint]] = {}
    titles = {}
    for cell in ordered(results["cells"]):
        chosen, paper = cell["chosen"]["validation"], cell["paper"]
        if cell["protocol"] != "paper" or cell["variant"] or chosen is None:
            continue
        bias, accuracy = (
            (chosen[name]["mean"], chosen[name]["std"]) for name in ("bias", "accuracy")
        )
        if None not in (bias[0], accuracy[0]):
            published = paper and paper["bias"] and paper["accuracy"]
            place = (paper["bias"][0], paper["accuracy"][0]) if published else None
            point = MethodPoint(cell["title"], bias, accuracy, place)
            points.setdefault(cell["dataset"], []).append(point)
            titles[cell["dataset"]] = cell["graph"]
    drawn = {}
    for dataset, own in points.items():
        figure = Figure(figsize=(6.8, 4.6), layout="constrained")
        axes = figure.subplots()
        draw_accuracy_bias(axes, own)
        axes.set_title(titles[dataset], color=INK)
        legend(figure, axes)
        drawn[dataset] = titles[dataset], figure
    return drawn
