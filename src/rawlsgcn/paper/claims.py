"""The paper's claims, tested as claims: each with paired tests over seeds and nodes."""

from __future__ import annotations

import math
import statistics as stats
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..balancing import ABLATION_NORMALIZATIONS
from .node_scores import Floats, Nodes
from .paired import FAILS, HOLDS, UNCLEAR, Statistic, accuracy_gain, compare
from .plan import OWN

ACCURACY_MARGIN = 2.0
"""Points that a method may lose and still be called comparable (the paper: 'within 2 %')."""
TIME_MARGIN = 1.25
"""The most that training may take, as a multiple of a GCN's time for as many epochs."""

# The nodes of what was chosen, by the cell's name and the kind of choice.
Chosen = Mapping[tuple[str, str], Nodes]


def claims(cells: Sequence[Mapping[str, Any]], nodes: Chosen) -> list[dict[str, Any]]:
    """Every claim that the cells have the results for."""
    found = []
    for protocol, choice, measure in (
        ("paper", "validation", "loss"),
        ("paper", "test", "loss"),
        ("fair", "validation", "calibrated"),
    ):
        found += _against_gcn(cells, nodes, protocol, choice, measure)
    found += _cost(cells)
    for choice in ("validation", "test"):
        found += _consistent(cells, nodes, choice)
    return found


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


def _with_gcn(
    cells: Sequence[Mapping[str, Any]], nodes: Chosen, protocol: str, choice: str
) -> Iterator[tuple[Mapping[str, Any], Nodes, Nodes]]:
    """Each cell of the two methods, its nodes, and those of GCN on the same graph."""
    for cell in cells:
        if cell["protocol"] != protocol or cell["method"] not in OWN or cell["variant"]:
            continue
        own = nodes.get((cell["name"], choice))
        gcn = nodes.get((f"rawlsgcn/{protocol}/{cell['dataset']}/gcn", choice))
        if own is not None and gcn is not None:
            yield cell, own, gcn


def _against_gcn(
    cells: Sequence[Mapping[str, Any]], nodes: Chosen, protocol: str, choice: str, measure: str
) -> list[dict[str, Any]]:
    bias, accuracy = [], []
    for cell, own, gcn in _with_gcn(cells, nodes, protocol, choice):
        where = {"method": cell["title"], "graph": cell["graph"]}
        test = compare([(own, gcn)], measure)
        bias.append(
            {
                **where,
                "outcome": test.outcome,
                "figure": f"{math.exp(test.difference):.2f} times the bias of GCN",
                "p_seeds": test.p_seeds,
                "p_nodes": test.p_nodes,
            }
        )
        gain = accuracy_gain(own, gcn)
        accuracy.append(
            {
                **where,
                "outcome": gain.not_below(ACCURACY_MARGIN),
                "figure": f"{gain.points:+.1f} points ({gain.low:+.1f} to {gain.high:+.1f})",
                "p_seeds": None,
                "p_nodes": None,
            }
        )
    kind = "bias" if measure == "loss" else "calibrated bias"
    return [
        *_claim(f"both methods reduce the {kind} of a GCN on every graph", protocol, choice, bias),
        *_claim(
            "accuracy is comparable with a GCN's: not worse by more than "
            f"{ACCURACY_MARGIN:g} points",
            protocol,
            choice,
            accuracy,
        ),
    ]


def _cost(cells: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
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
        where = {"method": cell["title"], "graph": cell["graph"]}
        same = own["parameters"] == base["parameters"]
        figure = f"{own['parameters']:,} parameters, a GCN {base['parameters']:,}"
        none = {"p_seeds": None, "p_nodes": None}
        tests.append({**where, "outcome": HOLDS if same else FAILS, "figure": figure, **none})
        ratio, low, high = _time_ratio(own["times"]["train"], base["times"]["train"])
        outcome = UNCLEAR
        if high <= TIME_MARGIN:
            outcome = HOLDS
        elif low > TIME_MARGIN:
            outcome = FAILS
        once = [stats.median(each["times"]["prepare"]) for each in (own, base)]
        figure = (
            f"{ratio:.2f} times the training seconds of a GCN ({low:.2f} to {high:.2f}); "
            f"preparing, once, {once[0]:.3f} s against {once[1]:.3f} s"
        )
        tests.append({**where, "outcome": outcome, "figure": figure, **none})
    text = "parameters and training time are those of a GCN trained for as many epochs"
    return _claim(text, "efficiency", "validation", tests)


def _time_ratio(own: Sequence[float], base: Sequence[float]) -> tuple[float, float, float]:
    """The ratio of the times, paired by seed, with a 95 % interval (Student's, of the logs)."""
    from scipy.stats import t

    logs = np.log(np.array(own)) - np.log(np.array(base))
    middle = float(logs.mean())
    if len(logs) < 2:
        return math.exp(middle), 0.0, math.inf
    error = float(logs.std(ddof=1)) / math.sqrt(len(logs)) * float(t.ppf(0.975, len(logs) - 1))
    return math.exp(middle), math.exp(middle - error), math.exp(middle + error)


def _consistent(
    cells: Sequence[Mapping[str, Any]], nodes: Chosen, choice: str
) -> list[dict[str, Any]]:
    """A form is as consistent as the graph on which it compares worst with a GCN."""
    tests = []
    titles = {cell["method"]: cell["title"] for cell in cells}
    graphs = list(dict.fromkeys(cell["dataset"] for cell in cells))
    for method in OWN:
        for form in (form for form in ABLATION_NORMALIZATIONS if form != "doubly-stochastic"):
            groups = []
            for graph in graphs:
                base = f"rawlsgcn/paper/{graph}"
                names = (f"{base}/{method}", f"{base}/{method}/{form}", f"{base}/gcn")
                group = [nodes[name, choice] for name in names if (name, choice) in nodes]
                groups += [group] if len(group) == 3 else []
            if not groups:
                continue
            test = compare([(own, other) for own, other, _ in groups], "loss", _worst_case(groups))
            figure = (
                f"worst bias against a GCN, doubly stochastic over {form}: "
                f"{math.exp(test.difference):.2f}, {len(groups)} graphs"
            )
            tests.append(
                {
                    "method": titles[method],
                    "graph": "all",
                    "outcome": test.outcome,
                    "figure": figure,
                    "p_seeds": test.p_seeds,
                    "p_nodes": test.p_nodes,
                }
            )
    text = "the doubly stochastic form is the most consistent of the four normalisations"
    return _claim(text, "paper", choice, tests)


def _worst_case(groups: Sequence[Sequence[Nodes]]) -> Statistic:
    gcn = np.array([_mean_log_bias(group[2]) for group in groups])

    def statistic(first: Floats, second: Floats) -> float:
        return float((first.mean(1) - gcn).max() - (second.mean(1) - gcn).max())

    return statistic


def _mean_log_bias(nodes: Nodes) -> float:
    present, member, count = np.unique(nodes.degree, return_inverse=True, return_counts=True)
    if len(present) < 2:
        return 0.0
    means = [np.bincount(member, loss) / count for loss in nodes.loss]
    return float(np.mean([math.log(max(float(each.var(ddof=1)), 1e-300)) for each in means]))
