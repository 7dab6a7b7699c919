"""The paper's claims, each tested on the results of a run."""

from __future__ import annotations

import math
import statistics as stats
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..balancing import ABLATION_NORMALIZATIONS
from .paired_tests import (
    FAILS,
    HOLDS,
    UNCLEAR,
    Statistic,
    accuracy_difference,
    mean_log_bias,
    paired_bias_test,
)
from .plan import OWN
from .trials import Floats, NodeLosses

ACCURACY_MARGIN = 2.0
"""Points that a method may lose and still be called comparable (the paper: 'within 2 %')."""
TIME_MARGIN = 1.25
"""The most that training may take, as a multiple of a GCN's time for as many epochs."""

# Node losses by the name of the cell and by how its settings were chosen.
ChosenNodes = Mapping[tuple[str, str], NodeLosses]
Cells = Sequence[Mapping[str, Any]]


def claims(cells: Cells, nodes: ChosenNodes) -> list[dict[str, Any]]:
    """Test every claim for which the cells have results."""
    tested = []
    for protocol, choice, measure in (
        ("paper", "validation", "loss"),
        ("paper", "test", "loss"),
        ("fair", "validation", "calibrated"),
    ):
        tested += _against_gcn(cells, nodes, protocol, choice, measure)
    tested += _cost(cells)
    for choice in ("validation", "test"):
        tested += _consistency(cells, nodes, choice)
    return tested


def _claim(
    text: str, protocol: str, choice: str, tests: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """A claim holds where all of its tests do, and fails where one does."""
    if not tests:
        return []
    outcomes = {test["outcome"] for test in tests}
    outcome = HOLDS if outcomes == {HOLDS} else FAILS if FAILS in outcomes else UNCLEAR
    made = {"claim": text, "protocol": protocol, "choice": choice, "outcome": outcome}
    return [{**made, "tests": tests}]


def _test(
    cell: Mapping[str, Any], outcome: str, figure: str, p: tuple[float | None, ...] = (None, None)
) -> dict[str, Any]:
    test = {"method": cell["title"], "graph": cell["graph"], "outcome": outcome, "figure": figure}
    return {**test, "p_seeds": p[0], "p_nodes": p[1]}


def _against_gcn(
    cells: Cells, nodes: ChosenNodes, protocol: str, choice: str, measure: str
) -> list[dict[str, Any]]:
    bias, accuracy = [], []
    for cell in cells:
        if cell["protocol"] != protocol or cell["method"] not in OWN or cell["variant"]:
            continue
        own = nodes.get((cell["name"], choice))
        gcn = nodes.get((f"rawlsgcn/{protocol}/{cell['dataset']}/gcn", choice))
        if own is None or gcn is None:
            continue
        test = paired_bias_test([(own, gcn)], measure)
        figure = f"{math.exp(test.difference):.2f} times the bias of GCN"
        bias.append(_test(cell, test.outcome, figure, (test.p_seeds, test.p_nodes)))
        gain = accuracy_difference(own, gcn)
        figure = f"{gain.points:+.1f} points ({gain.low:+.1f} to {gain.high:+.1f})"
        accuracy.append(_test(cell, gain.not_below(ACCURACY_MARGIN), figure))
    kind = "bias" if measure == "loss" else "calibrated bias"
    lower = f"both methods reduce the {kind} of a GCN on every graph"
    margin = f"not worse by more than {ACCURACY_MARGIN:g} points"
    comparable = f"accuracy is comparable with a GCN's: {margin}"
    return [
        *_claim(lower, protocol, choice, bias),
        *_claim(comparable, protocol, choice, accuracy),
    ]


def _cost(cells: Cells) -> list[dict[str, Any]]:
    timed = {
        (cell["dataset"], cell["method"], cell["variant"]): cell
        for cell in cells
        if cell["protocol"] == "efficiency" and cell["chosen"]["validation"] is not None
    }
    tests = []
    for (dataset, method, _), cell in timed.items():
        gcn = timed.get((dataset, "gcn", "100 epochs"))
        if method not in OWN or gcn is None:
            continue
        own, base = (each["chosen"]["validation"] for each in (cell, gcn))
        same = own["parameters"] == base["parameters"]
        figure = f"{own['parameters']:,} parameters, a GCN {base['parameters']:,}"
        tests.append(_test(cell, HOLDS if same else FAILS, figure))
        ratio, low, high = _time_ratio(own["times"]["train"], base["times"]["train"])
        outcome = HOLDS if high <= TIME_MARGIN else FAILS if low > TIME_MARGIN else UNCLEAR
        once = [stats.median(each["times"]["prepare"]) for each in (own, base)]
        figure = (
            f"{ratio:.2f} times the training seconds of a GCN ({low:.2f} to {high:.2f}); "
            f"preparing, once, {once[0]:.3f} s against {once[1]:.3f} s"
        )
        tests.append(_test(cell, outcome, figure))
    text = "parameters and training time are those of a GCN trained for as many epochs"
    return _claim(text, "efficiency", "validation", tests)


def _time_ratio(own: Sequence[float], base: Sequence[float]) -> tuple[float, float, float]:
    """Return the ratio of times, paired by seed, with a 95 % interval (Student's, of the logs)."""
    from scipy.stats import t

    logs = np.log(np.array(own)) - np.log(np.array(base))
    middle = float(logs.mean())
    if len(logs) < 2:
        return math.exp(middle), 0.0, math.inf
    error = float(logs.std(ddof=1)) / math.sqrt(len(logs)) * float(t.ppf(0.975, len(logs) - 1))
    return math.exp(middle), math.exp(middle - error), math.exp(middle + error)


def _consistency(cells: Cells, nodes: ChosenNodes, choice: str) -> list[dict[str, Any]]:
    """Compare normalizations by the graph on which each is worst relative to a GCN."""
    tests = []
    titles = {cell["method"]: cell["title"] for cell in cells}
    datasets = list(dict.fromkeys(cell["dataset"] for cell in cells))
    for method in OWN:
        for other in (name for name in ABLATION_NORMALIZATIONS if name != "doubly-stochastic"):
            groups = []
            for dataset in datasets:
                base = f"rawlsgcn/paper/{dataset}"
                names = (f"{base}/{method}", f"{base}/{method}/{other}", f"{base}/gcn")
                group = [nodes[name, choice] for name in names if (name, choice) in nodes]
                groups += [group] if len(group) == 3 else []
            if not groups:
                continue
            pairs = [(own, changed) for own, changed, _ in groups]
            test = paired_bias_test(pairs, "loss", _worst_case(groups))
            figure = (
                f"worst bias against a GCN, doubly stochastic over {other}: "
                f"{math.exp(test.difference):.2f}, {len(groups)} graphs"
            )
            where = {"title": titles[method], "graph": "all"}
            tests.append(_test(where, test.outcome, figure, (test.p_seeds, test.p_nodes)))
    text = "the doubly stochastic form is the most consistent of the four normalisations"
    return _claim(text, "paper", choice, tests)


def _worst_case(groups: Sequence[Sequence[NodeLosses]]) -> Statistic:
    gcn = np.array([mean_log_bias(group[2]) for group in groups])

    def statistic(first: Floats, second: Floats) -> float:
        return float((first.mean(1) - gcn).max() - (second.mean(1) - gcn).max())

    return statistic
