"""The picture of the evaluation: gains of ``auto`` over the GCN, and the ratio of biases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .summary import Summary, title

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def picture(summary: Summary) -> Figure | None:
    """Draw the gain over the tuned GCN and the ratio of biases; None without a common split."""
    from matplotlib.figure import Figure

    from rawlsgcn.reporting.figure_style import FAINT, GRID, INK, PALETTE, PAPER

    graphs = [graph for graph in summary.graphs if summary.pairs(graph, "gcn", "accuracy")][::-1]
    if not graphs:
        return None
    drawn = Figure(figsize=(10, 1.5 + 0.5 * len(graphs)), layout="constrained", facecolor=PAPER)
    left, right = drawn.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    for metric, color, shift, label in (
        ("low_degree_accuracy", PALETTE[0], 0.12, "quarter of lowest degrees"),
        ("accuracy", PALETTE[4], -0.12, "all nodes"),
    ):
        for at, graph in enumerate(graphs):
            found = summary.difference(graph, "gcn", metric)
            if found is None:
                continue
            name = label if at == 0 else None
            if found.low is not None and found.high is not None:
                left.plot([found.low, found.high], [at + shift] * 2, color=color, linewidth=2)
            left.plot(found.mean, at + shift, "o", color=color, markersize=7, label=name)
    left.axvline(0, color=INK, linewidth=1)
    left.set_title("Accuracy of auto minus that of a tuned GCN (points)", fontsize=11, loc="left")
    left.legend(frameon=False, fontsize=9, loc="best")
    for at, graph in enumerate(graphs):
        ratio = summary.bias_ratio(graph)
        if ratio is None:
            continue
        right.barh(at, ratio, height=0.55, color=PALETTE[2] if ratio <= 1 else PALETTE[1])
        right.annotate(
            f"× {ratio:.2f}",
            (ratio, at),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            color=INK,
            bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1},
        )
    right.axvline(1, color=INK, linewidth=1)
    right.axvline(0.5, color=FAINT, linewidth=1, linestyle="--")
    right.margins(x=0.15)
    right.set_title("Calibrated bias as a multiple of the GCN's", fontsize=11, loc="left")
    left.set_yticks(range(len(graphs)), [title(graph) for graph in graphs])
    for axes in (left, right):
        axes.set_facecolor(PAPER)
        axes.grid(axis="x", color=GRID, linewidth=0.7)
        axes.set_axisbelow(True)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
    splits = {len(summary.pairs(graph, "gcn", "accuracy")) for graph in graphs}
    count = str(splits.pop()) if len(splits) == 1 else f"{min(splits)} to {max(splits)}"
    left.set_xlabel(f"mean over {count} splits, bars: 95 % intervals", color=FAINT, fontsize=9)
    right.set_xlabel("ratio of means over splits; dashed: half", color=FAINT, fontsize=9)
    return drawn
