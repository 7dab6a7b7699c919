"""The paper's claims, and the paired tests of two methods by which they hold or fail.

The tests are over the same seeds and the same nodes. Under the null hypothesis the two methods are
the same, so that their losses may be swapped at any seed, or at any node. The test over seeds tries
every way of swapping, the test over nodes draws some at random. Each p-value is the share of ways
that give a difference at least as large as the observed one.
"""

from __future__ import annotations

import math
import statistics as stats
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ..balancing import ABLATION_NORMALIZATIONS
from ..evaluation.audit.findings import Estimate
from ..evaluation.audit.permutation_tests import p_values
from .plan import OWN
from .trials import Floats, NodeLosses

DRAWS = 999
LEVEL = 0.05
HOLDS, FAILS, UNCLEAR = "holds", "fails", "unclear"

# From the log bias of the first and of the second method, each (graphs, seeds), to a difference.
Statistic = Callable[[Floats, Floats], float]

ACCURACY_MARGIN = 2.0
"""Points that a method may lose and still be called comparable (the paper: 'within 2 %')."""
TIME_MARGIN = 1.25
"""The most that training may take, as a multiple of a GCN's time for as many epochs."""

# Node losses by the name of the cell and by how its settings were chosen.
ChosenNodes = Mapping[tuple[str, str], NodeLosses]
Cells = Sequence[Mapping[str, Any]]


def claims(cells: Cells, nodes: ChosenNodes) -> list[dict[str, Any]]:
    """Test every claim for which the cells have results."""
    tested = [
        *_against_gcn(cells, nodes, "paper", "validation", "loss"),
        *_against_gcn(cells, nodes, "paper", "test", "loss"),
        *_against_gcn(cells, nodes, "fair", "validation", "calibrated"),
        _cost(cells),
        *(_consistency(cells, nodes, choice) for choice in ("validation", "test")),
    ]
    return [claim for claim in tested if claim["tests"]]


def _claim(
    text: str, protocol: str, choice: str, tests: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """A claim holds where all of its tests do, and fails where one does."""
    outcomes = {test["outcome"] for test in tests}
    outcome = HOLDS if outcomes == {HOLDS} else FAILS if FAILS in outcomes else UNCLEAR
    made = {"claim": text, "protocol": protocol, "choice": choice, "outcome": outcome}
    return {**made, "tests": tests}


def _test(
    method: str, graph: str, outcome: str, figure: str, paired: PairedTest | None = None
) -> dict[str, Any]:
    test = {"method": method, "graph": graph, "outcome": outcome, "figure": figure}
    p_seeds, p_nodes = (None, None) if paired is None else (paired.p_seeds, paired.p_nodes)
    return {**test, "p_seeds": p_seeds, "p_nodes": p_nodes}


def _against_gcn(
    cells: Cells, nodes: ChosenNodes, protocol: str, choice: str, measure: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    bias, accuracy = [], []
    for cell in cells:
        own = nodes.get((cell["name"], choice))
        gcn = nodes.get((f"rawlsgcn/{protocol}/{cell['dataset']}/gcn", choice))
        wanted = cell["protocol"] == protocol and cell["method"] in OWN and not cell["variant"]
        if not wanted or own is None or gcn is None:
            continue
        of = (cell["title"], cell["graph"])
        test = paired_bias_test([(own, gcn)], measure)
        figure = f"{math.exp(test.difference):.2f} times the bias of GCN"
        bias.append(_test(*of, test.outcome, figure, test))
        gain = accuracy_difference(own, gcn)
        figure = f"{gain.value:+.1f} points ({gain.low:+.1f} to {gain.high:+.1f})"
        accuracy.append(_test(*of, not_worse(gain, ACCURACY_MARGIN), figure))
    kind = "bias" if measure == "loss" else "calibrated bias"
    lower = f"both methods reduce the {kind} of a GCN on every graph"
    margin = f"not worse by more than {ACCURACY_MARGIN:g} points"
    comparable = f"accuracy is comparable with a GCN's: {margin}"
    return (
        _claim(lower, protocol, choice, bias),
        _claim(comparable, protocol, choice, accuracy),
    )


def _cost(cells: Cells) -> dict[str, Any]:
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
        of = (cell["title"], cell["graph"])
        own, base = (each["chosen"]["validation"] for each in (cell, gcn))
        same = own["parameters"] == base["parameters"]
        figure = f"{own['parameters']:,} parameters, a GCN {base['parameters']:,}"
        tests.append(_test(*of, HOLDS if same else FAILS, figure))
        ratio, low, high = _time_ratio(own["times"]["train"], base["times"]["train"])
        outcome = HOLDS if high <= TIME_MARGIN else FAILS if low > TIME_MARGIN else UNCLEAR
        once = [stats.median(each["times"]["prepare"]) for each in (own, base)]
        figure = (
            f"{ratio:.2f} times the training seconds of a GCN ({low:.2f} to {high:.2f}); "
            f"preparing, once, {once[0]:.3f} s against {once[1]:.3f} s"
        )
        tests.append(_test(*of, outcome, figure))
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


def _consistency(cells: Cells, nodes: ChosenNodes, choice: str) -> dict[str, Any]:
    """Compare normalizations by the graph on which each is worst relative to a GCN."""
    tests = []
    titles = {cell["method"]: cell["title"] for cell in cells}
    datasets = list(dict.fromkeys(cell["dataset"] for cell in cells))
    others = [name for name in ABLATION_NORMALIZATIONS if name != "doubly-stochastic"]
    for method, other in product(OWN, others):
        pairs, gcn = [], []
        for dataset in datasets:
            base = f"rawlsgcn/paper/{dataset}"
            names = (f"{base}/{method}", f"{base}/{method}/{other}", f"{base}/gcn")
            if all((name, choice) in nodes for name in names):
                own, changed, plain = (nodes[name, choice] for name in names)
                pairs.append((own, changed))
                swapped = log_biases(plain.loss, plain.loss, plain.degree)
                gcn.append(swapped(np.zeros(len(plain.degree)))[0].mean())
        if not pairs:
            continue
        test = paired_bias_test(pairs, "loss", _worst_case(np.array(gcn)))
        figure = (
            f"worst bias against a GCN, doubly stochastic over {other}: "
            f"{math.exp(test.difference):.2f}, {len(pairs)} graphs"
        )
        tests.append(_test(titles[method], "all", test.outcome, figure, test))
    text = "the doubly stochastic form is the most consistent of the four normalizations"
    return _claim(text, "paper", choice, tests)


def _worst_case(gcn: Floats) -> Statistic:
    """The difference of the largest log bias less GCN's, each a mean over the seeds."""
    return lambda first, second: float((first.mean(1) - gcn).max() - (second.mean(1) - gcn).max())


@dataclass(frozen=True)
class PairedTest:
    """A difference of log biases and its one-sided p-values, over seeds and over nodes.

    A negative difference says that the first method has the lower bias; ``p_seeds`` and
    ``p_nodes`` are for a difference as low by chance, ``q_seeds`` and ``q_nodes`` for one as high.
    """

    difference: float
    p_seeds: float
    p_nodes: float
    q_seeds: float
    q_nodes: float

    @property
    def outcome(self) -> str:
        """Return "holds" where both tests say lower, "fails" where higher, else "unclear"."""
        if max(self.p_seeds, self.p_nodes) <= LEVEL:
            return HOLDS
        return FAILS if max(self.q_seeds, self.q_nodes) <= LEVEL else UNCLEAR


def mean_difference(first: Floats, second: Floats) -> float:
    """Return the log of the ratio of the geometric means of the biases."""
    return float((first - second).mean())


def paired_bias_test(
    pairs: Sequence[tuple[NodeLosses, NodeLosses]],
    measure: str = "loss",
    statistic: Statistic = mean_difference,
    draws: int = DRAWS,
) -> PairedTest:
    """Test whether the first of each pair of methods, one for each graph, has the lower bias.

    ``measure`` is "loss" for the bias, "calibrated" for the calibrated bias; ``draws`` random ways
    of swapping nodes are tried.
    """
    graphs = [log_biases(getattr(a, measure), getattr(b, measure), a.degree) for a, b in pairs]
    sizes = [len(first.degree) for first, _ in pairs]
    seeds = min(len(each.loss) for pair in pairs for each in pair)

    def both(ways: Sequence[np.ndarray]) -> tuple[Floats, Floats]:
        each = [swapped(way) for swapped, way in zip(graphs, ways, strict=True)]
        first, second = (np.stack([a[:seeds] for a in side]) for side in zip(*each, strict=True))
        return first, second

    first, second = both([np.zeros(nodes) for nodes in sizes])
    seen = statistic(first, second)
    by_seeds = []
    for swapped in product((False, True), repeat=seeds):
        at = np.array(swapped)
        by_seeds.append(statistic(np.where(at, second, first), np.where(at, first, second)))
    rng = np.random.default_rng(0)
    by_nodes = []
    for _ in range(draws):
        by_nodes.append(statistic(*both([rng.random(nodes) < 0.5 for nodes in sizes])))
    p_seeds, q_seeds = p_values(seen, by_seeds, exhaustive=True)
    p_nodes, q_nodes = p_values(seen, by_nodes)
    return PairedTest(seen, p_seeds, p_nodes, q_seeds, q_nodes)


def log_biases(
    first: Floats, second: Floats, degree: np.ndarray
) -> Callable[[np.ndarray], tuple[Floats, Floats]]:
    """Return a function from the nodes to swap to both log biases, one for each seed.

    The losses are (seeds, nodes); a bias is the sample variance over degrees of the mean losses.
    """
    order = np.argsort(degree, kind="stable")
    first, second = first[:, order], second[:, order]
    _, starts, counts = np.unique(degree[order], return_index=True, return_counts=True)
    sums = [np.add.reduceat(each, starts, 1) for each in (first, second)]
    difference = second - first

    def log_bias(sums: Floats) -> Floats:
        if len(counts) < 2:
            return np.zeros(len(sums))
        logs: Floats = np.log(np.maximum((sums / counts).var(1, ddof=1), 1e-300))
        return logs

    def swapped(at: np.ndarray) -> tuple[Floats, Floats]:
        moved = np.add.reduceat(difference * at, starts, 1)
        return log_bias(sums[0] + moved), log_bias(sums[1] - moved)

    return swapped


def accuracy_difference(first: NodeLosses, second: NodeLosses) -> Estimate:
    """Subtract the second method's accuracy from the first's, with a 95 % interval, in points.

    The difference is paired by seed and by node; the variance of its mean is that of the seeds'
    means plus that of the nodes' means.
    """
    seeds = min(len(first.correct), len(second.correct))
    gains = 100 * (first.correct[:seeds].astype(float) - second.correct[:seeds])
    means = [gains.mean(axis) for axis in (0, 1)]
    error = math.sqrt(sum(float(m.var(ddof=1)) / len(m) for m in means if len(m) > 1))
    points = float(gains.mean())
    return Estimate(points, points - 1.96 * error, points + 1.96 * error)


def not_worse(gain: Estimate, margin: float) -> str:
    """Return whether a gain in accuracy is a loss of at most ``margin`` points."""
    return HOLDS if gain.low > -margin else FAILS if gain.high < -margin else UNCLEAR
