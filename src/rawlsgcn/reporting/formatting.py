"""Numbers, counts and names as text, the same in tables, figures and the page.

No heavy import: the command line's light commands use this module.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from .._core.text import printable

if TYPE_CHECKING:
    from ..evaluation.audit.findings import Estimate
    from ..experiments.result import Result
    from ..experiments.trained_runs import Spread

MINUS = "\N{MINUS SIGN}"
SIGNIFICANT = 0.05
"""A p-value at or under this is called 'not chance'."""


def dataset_name(name: str, synthetic: bool) -> str:
    """The dataset's name; an invented graph is always called synthetic."""
    name = printable(name)
    if synthetic and name.lower() == "synthetic":
        return "synthetic graph"
    return f"{name} (synthetic)" if synthetic and "synthetic" not in name.lower() else name


def number(value: float) -> str:
    """A number without a unit (bias, loss, slope): three decimals, or fewer if it is large."""
    if not math.isfinite(value):
        return "–"
    value, size = value + 0.0, abs(value)  # a zero has no sign
    shown = f"{value:,.1f}" if size >= 10 else f"{value:.3f}"
    if size >= 1e5 or 0 < size < 5e-4:
        shown = f"{value:.1e}"
    return shown.replace("-", MINUS)


def percent(value: float) -> str:
    """A percentage with one decimal, without the sign."""
    # Adding zero turns a rounded -0.0 into 0.0.
    return f"{round(value, 1) + 0.0:,.1f}".replace("-", MINUS) if math.isfinite(value) else "–"


def spread(figure: Spread, show: Callable[[float], str]) -> str:
    """Mean ± standard deviation, each as ``show`` shows it; a single run has no ±.

    A mean that is not defined, since a run has no value, is a dash.
    """
    if len(figure.runs) == 1 or not math.isfinite(figure.mean):
        return show(figure.mean)
    return f"{show(figure.mean)} ± {show(figure.std)}"


def with_interval(estimate: Estimate, unit: str = "number") -> str:
    """``0.25 [0.20, 0.30]`` for a terminal: two decimals, unless the number is small or large."""

    def show(value: float) -> str:
        if unit == "percent" or not (0.01 <= abs(value) < 100 or value == 0):
            return percent(value) if unit == "percent" else number(value)
        return f"{value:.2f}".replace("-", MINUS)

    shown = show(estimate.value)
    if math.isnan(estimate.low):
        return shown
    return f"{shown} [{show(estimate.low)}, {show(estimate.high)}]"


def join_words(items: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def short_count(count: int) -> str:
    """``950``, ``233 k`` or ``1.4 M``."""
    if count >= 999_500:
        return f"{count / 1e6:,.1f} M"
    return f"{count}" if count < 1000 else f"{count / 1e3:,.0f} k"


def p_text(p: float, draws: int = 0) -> str:
    """``p < 0.001`` or ``p = 0.28``; with a single group there is nothing to test."""
    if math.isnan(p):
        return "not tested"
    if draws and p <= 1.5 / (1 + draws):
        return f"p < {2 / (1 + draws):.2g}"
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def judged_runs(results: Mapping[str, Result]) -> str | None:
    """Which run of each result is audited; None where none has several."""
    sound = {
        printable(name): result.seeds[result.best_run]
        for name, result in results.items()
        if len(result.diverged) < len(result.seeds)
    }
    if not sound or max(len(result.seeds) for result in results.values()) == 1:
        return None
    which = join_words([f"seed {seed} of {name}" for name, seed in sound.items()])
    whose = "one run of each method"
    if len(results) == 1:
        which, whose = f"seed {next(iter(sound.values()))}", "one run"
    return f"{whose}, the one with the highest validation accuracy: {which}"


def seeds_text(result: Result) -> str:
    """``seed 0``, ``5 seeds (0–4)`` or ``3 seeds (0, 7, 9)``."""
    chosen = result.seeds
    if len(chosen) == 1:
        return f"seed {chosen[0]}"
    in_a_row = chosen == list(range(chosen[0], chosen[0] + len(chosen)))
    which = f"{chosen[0]}–{chosen[-1]}" if in_a_row else ", ".join(map(str, chosen))
    return f"{len(chosen)} seeds ({which})"


def num_evaluated(result: Result) -> int:
    """How many nodes are evaluated: those of the mask that have a label."""
    return int((result.mask & (result.graph.y >= 0)).sum())


def setup_text(results: Sequence[Result]) -> str:
    """Dataset, split sizes and seeds of results on one graph, in a line."""
    first = results[0]
    graph = first.graph
    sizes = f"{int(graph.train_mask.sum()):,} training, {int(graph.val_mask.sum()):,} validation"
    runs = list(dict.fromkeys(seeds_text(result) for result in results))
    return (
        f"{dataset_name(first.dataset, first.synthetic)}: {int(first.degree.numel()):,} nodes "
        f"({sizes}, {num_evaluated(first):,} evaluated); {' or '.join(runs)}"
    )
