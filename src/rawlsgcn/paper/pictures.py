"""The paper's Figures 1 to 3, and each graph's plane of accuracy against bias."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..reporting.accuracy_bias_plot import MethodPoint, draw_accuracy_bias
from ..reporting.figures import INK, by_degree, degrees, save, side_by_side
from .plan import EFFICIENCY_GRAPH, MAIN, Plan
from .tables import ordered

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOLDER = "figures"


def paper_figures(
    cells: Sequence[Mapping[str, Any]], plan: Plan, device: str, root: Path | None, out: Path
) -> list[dict[str, str]]:
    """Train GCN and the two methods as they were chosen, and draw Figures 1, 2 and 3."""
    from ..experiments.fitting import fit
    from .train import judged_graph

    graph_name = EFFICIENCY_GRAPH if EFFICIENCY_GRAPH in plan.datasets else plan.datasets[0]
    graph = judged_graph(graph_name, "test", root)
    results = []
    for method in MAIN:
        settings = dict(plan.changes)
        for cell in cells:
            if cell["name"] == f"rawlsgcn/paper/{graph_name}/{method}":
                settings |= (cell["chosen"]["validation"] or {}).get("values", {})
        results.append(fit(graph, method, seeds=plan.seeds, device=device, **settings))
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
        made.append({"file": f"{FOLDER}/{name}", "caption": caption, "graph": graph_name})
    return made


def planes(results: Mapping[str, Any]) -> dict[str, tuple[str, Figure]]:
    """By graph: its title and its plane, from the figures chosen by validation accuracy."""
    drawn = {}
    cells = [
        cell
        for cell in ordered(results["cells"])
        if cell["protocol"] == "paper" and not cell["variant"] and _has_numbers(cell)
    ]
    for dataset in dict.fromkeys(cell["dataset"] for cell in cells):
        own = [cell for cell in cells if cell["dataset"] == dataset]
        drawn[dataset] = own[0]["graph"], plane(own)
    return drawn


def _has_numbers(cell: Mapping[str, Any]) -> bool:
    chosen = cell["chosen"]["validation"]
    return chosen is not None and None not in (chosen["bias"]["mean"], chosen["accuracy"]["mean"])


def plane(cells: Sequence[Mapping[str, Any]]) -> Figure:
    """Every method of one graph: low bias to the left, high accuracy above, and the front."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.8, 4.6), layout="constrained")
    axes = figure.subplots()
    draw_accuracy_bias(axes, [_tried(cell) for cell in cells])
    axes.set_title(cells[0]["graph"], color=INK)
    figure.legend(loc="outside lower center", ncols=4, frameon=False, labelcolor=INK, fontsize=9)
    return figure


def _tried(cell: Mapping[str, Any]) -> MethodPoint:
    chosen, paper = cell["chosen"]["validation"], cell["paper"]
    bias, accuracy = ((chosen[name]["mean"], chosen[name]["std"]) for name in ("bias", "accuracy"))
    printed = paper and paper["bias"] and paper["accuracy"]
    place = (paper["bias"][0], paper["accuracy"][0]) if printed else None
    return MethodPoint(cell["title"], bias, accuracy, place)
