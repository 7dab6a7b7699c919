"""How datasets, methods and numbers are put into words, alike in tables, figures and the page.

Loads nothing heavy: results are only looked at, never computed with.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .._core.errors import RawlsError
from .._core.text import printable as printable
from .._core.text import shown_path as shown_path

if TYPE_CHECKING:
    from ..experiments.result import Result, Spread

MINUS = "\N{MINUS SIGN}"


def dataset_name(name: str, synthetic: bool) -> str:
    """The dataset's name; an invented graph is always called synthetic."""
    name = printable(name)
    if synthetic and name.lower() == "synthetic":
        return "synthetic graph"
    return f"{name} (synthetic)" if synthetic and "synthetic" not in name.lower() else name


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def number(value: float) -> str:
    """A figure without a unit (bias, loss, slope): three decimals, or fewer where it is large."""
    if not math.isfinite(value):
        return "–"
    value += 0.0  # a zero has no sign
    size = abs(value)
    if size >= 1e5:
        shown = f"{value:.1e}"
    elif size >= 10:
        shown = f"{value:,.1f}"
    elif size >= 5e-4 or size == 0:
        shown = f"{value:.3f}"
    else:
        shown = f"{value:.1e}"
    return shown.replace("-", MINUS)


def percent(value: float) -> str:
    """A percentage with one decimal, without the sign."""
    if not math.isfinite(value):
        return "–"
    # Adding zero turns a rounded -0.0 into 0.0.
    return f"{round(value, 1) + 0.0:,.1f}".replace("-", MINUS)


def spread(figure: Spread, one: str) -> str:
    """Mean ± standard deviation; ``one`` is "percent" or "number"; a single run has no ±."""
    show = percent if one == "percent" else number
    if len(figure.runs) == 1:
        return show(figure.mean)
    return f"{show(figure.mean)} ± {show(figure.std)}"


def several(items: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def seeds(result: Result) -> str:
    """``seed 0``, ``5 seeds (0–4)`` or ``3 seeds (0, 7, 9)``."""
    chosen = result.seeds
    if len(chosen) == 1:
        return f"seed {chosen[0]}"
    in_a_row = chosen == list(range(chosen[0], chosen[0] + len(chosen)))
    which = f"{chosen[0]}–{chosen[-1]}" if in_a_row else ", ".join(map(str, chosen))
    return f"{len(chosen)} seeds ({which})"


def evaluated(result: Result) -> int:
    """How many nodes the figures rest on: those of the mask that have a label."""
    return int((result.mask & (result.graph.y >= 0)).sum())


def where(results: Sequence[Result]) -> str:
    """Dataset, split sizes and seeds of results on one graph, in a line."""
    first = results[0]
    graph = first.graph
    sizes = f"{int(graph.train_mask.sum()):,} training, {int(graph.val_mask.sum()):,} validation"
    runs = list(dict.fromkeys(seeds(result) for result in results))
    return (
        f"{dataset_name(first.dataset, first.synthetic)}: {int(first.degree.numel()):,} nodes "
        f"({sizes}, {evaluated(first):,} evaluated); {' or '.join(runs)}"
    )


def names(results: Sequence[Result]) -> list[str]:
    """A distinct name for every result: its title and, among equals, the settings that differ."""
    titles = [printable(result.title) for result in results]
    counts = Counter(titles)
    chosen = []
    for result, title in zip(results, titles, strict=True):
        if counts[title] == 1:
            chosen.append(title)
            continue
        equals = [other.settings for other in results if printable(other.title) == title]
        differing = [
            f"{key} {printable(value)}"
            for key, value in result.settings.items()
            if any(other.get(key) != value for other in equals)
        ]
        chosen.append(f"{title} ({', '.join(differing)})" if differing else title)
    seen: Counter[str] = Counter()
    distinct = []
    for name in chosen:
        seen[name] += 1
        distinct.append(name if chosen.count(name) == 1 else f"{name} #{seen[name]}")
    return distinct


def together(results: Result | Sequence[Result]) -> list[Result]:
    """The results as a list, refused where they are not of one graph and the same nodes."""
    chosen = list(results) if isinstance(results, Sequence) else [results]
    if not chosen:
        raise RawlsError("there is nothing to show: give at least one result")
    for each in chosen:
        if not hasattr(each, "judgements"):
            raise RawlsError(f"a result of fit or compare can be shown, not {type(each).__name__}")
    datasets = list(dict.fromkeys(printable(result.dataset) for result in chosen))
    if len(datasets) > 1:
        raise RawlsError(
            f"results on {several(datasets)} cannot be shown together: show each graph's alone"
        )
    first = chosen[0]
    for result in chosen[1:]:
        same = result.mask.shape == first.mask.shape and bool(
            ((result.mask == first.mask) & (result.degree == first.degree)).all()
        )
        if not same:
            raise RawlsError(
                f"results on {datasets[0]} with different evaluated nodes cannot be compared: "
                "train both methods with the same split"
            )
    return chosen
