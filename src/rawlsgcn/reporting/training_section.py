"""The section of the report on training: all runs, their settings and cost, and their figures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .._core.text import printable
from .figures import accuracy_bias_plot, by_degree, degrees, side_by_side
from .formatting import dataset_name, join_words, judged_runs, number, percent, seeds_text
from .text_tables import COMPARED, RESULT_HEADINGS, best_figures, result_cells

if TYPE_CHECKING:
    from ..experiments.result import Result
    from .figure_style import Figure

_METRICS = {metric: show for _, metric, show, _ in COMPARED}
_OF_EACH_RUN = {**_METRICS, "temperature": number, "validation_accuracy": percent}


def training_section(results: Mapping[str, Result]) -> dict[str, Any]:
    """What the template shows of the results, which are given by their names on the page."""
    every = list(results.values())
    seeds = dict.fromkeys(map(seeds_text, every))
    judged = judged_runs(results)
    about = f" The other sections are about {judged}." if judged else ""
    failed = [f"{printable(name)}, which {r.failed}" for name, r in results.items() if r.failed]
    return {
        "runs_text": f"Trained with {' or '.join(seeds)}.{about}",
        "several_runs": any(len(result.seeds) > 1 for result in every),
        "headings": [*RESULT_HEADINGS[1:], "parameters", "seconds"],
        "rows": [
            {
                "name": printable(name),
                "failed": result.failed,
                "cells": result_cells(result, list(_METRICS)),
                "best": best,
                "cost": [f"{result.parameters:,}", f"{sum(result.seconds.values()):,.1f}"],
            }
            for (name, result), best in zip(results.items(), best_figures(every), strict=True)
        ],
        "runs": [run for name, result in results.items() for run in _runs(name, result)],
        "settings": _settings(every),
        "remarks": list(_remarks(results)),
        "left_out": join_words(failed),
    }


def training_figures(results: Mapping[str, Result]) -> dict[str, tuple[Figure, str]]:
    """Figures 1 or 3 and 2 of the paper, and accuracy against bias, each with its words."""
    every = list(results.values())
    first, names = every[0], "; ".join(map(printable, results))
    low, high = int(first.degree.min()), int(first.degree.max())
    drawn = {
        "by-degree": (
            by_degree(first) if len(every) == 1 else side_by_side(every),
            f"Average loss and accuracy by degree, with regression lines: {names}.",
        ),
        "degrees": (
            degrees(first.graph),
            f"Degrees of the nodes of {dataset_name(first.dataset, first.synthetic)} in A, "
            f"{low:,} to {high:,}, against their degrees in the renormalized Laplacian; the "
            "doubly stochastic form gives each node degree 1.",
        ),
    }
    if len(every) > 1:
        places = [
            f"{printable(name)}: accuracy {percent(result.accuracy.mean)} %, bias "
            f"{number(result.bias.mean)}, calibrated {number(result.calibrated_bias.mean)}."
            for name, result in results.items()
        ]
        drawn["accuracy-bias"] = (accuracy_bias_plot(every), " ".join(places))
    return drawn


def _runs(name: str, result: Result) -> Iterator[dict[str, Any]]:
    """The figures of each run; the one of the highest validation accuracy is audited."""
    sound = len(result.diverged) < len(result.seeds)
    for place, run in enumerate(result.to_frame().to_dict("records")):
        cells = [str(run["seed"]), *(show(run[metric]) for metric, show in _OF_EACH_RUN.items())]
        audited = sound and place == result.best_run
        yield {"name": printable(name), "audited": audited, "cells": cells}


def _settings(every: list[Result]) -> list[tuple[str, list[str]]]:
    """A row for each setting, and for what the runs cost; a dash for those that have none."""
    settings, costs = [], []
    for result in every:
        described = result.described_settings.items()
        settings.append({key.replace("_", " "): _setting(value) for key, value in described})
        cost = {"seeds": ", ".join(map(str, result.seeds)), "device": printable(result.device)}
        if not math.isnan(result.peak_memory_mb):
            cost["peak memory (MB)"] = f"{result.peak_memory_mb:,.0f}"
        seconds = {f"seconds to {phase}": f"{time:,.2f}" for phase, time in result.seconds.items()}
        costs.append(cost | seconds)
    return [
        (printable(key), [column.get(key, "–") for column in columns])
        for columns in (settings, costs)
        for key in dict.fromkeys(key for column in columns for key in column)
    ]


def _setting(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "–" if value is None else printable(value)


def _remarks(results: Mapping[str, Result]) -> Iterator[str]:
    """Say where calibration changes who has the least bias, and why a method has no such bias."""
    learned = {printable(name): each for name, each in results.items() if each.failure is None}
    least = []
    for metric in ("bias", "calibrated_bias"):
        means = {name: getattr(result, metric).mean for name, result in learned.items()}
        finite = {name: mean for name, mean in means.items() if math.isfinite(mean)}
        least += [min(finite, key=lambda name: finite[name])] if len(finite) > 1 else []
    if len(set(least)) > 1:
        yield (
            f"Calibration changes the order: {least[0]} has the least bias before it, {least[1]} "
            "after it."
        )
    for name, result in learned.items():
        if math.isfinite(result.calibrated_bias.mean):
            continue
        for reason, runs in Counter(run.calibration for run in result.run_metrics).items():
            if not reason.usable:
                which = f" in {runs} of {len(result.seeds)} runs" if len(result.seeds) > 1 else ""
                yield f"{name} has no calibrated bias{which}: {reason.value}."
