"""Which of the paper's differences in bias are more than chance: seven graphs, three methods.

Every method is trained with its own settings. Each seed's bias is held against the same losses with
the degrees shuffled among the nodes; and the two RawlsGCN methods against GCN, seed by seed and
node by node (:mod:`.paired`), before and after calibration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.errors import RawlsError
from .._core.machine import machine, pick_device
from .._core.threads import fork_safe_threads
from .._core.version import __version__
from ..evaluation.audit.group_statistics import GroupedScores
from ..evaluation.audit.net_variance import net_variance
from ..evaluation.audit.permutation import shuffled_bias
from ..evaluation.audit.resampling import resampled
from ..evaluation.audit.trend import slopes
from ..experiments import fitting as api
from ..graphs import load
from ..graphs.catalog import CATALOG
from .node_scores import Nodes
from .paired import LEVEL, compare
from .plan import MAIN

if TYPE_CHECKING:
    from ..experiments.result import Result

BEGIN, END = "<!-- survive: begin -->", "<!-- survive: end -->"
OUTCOMES = {"holds": "lower", "fails": "higher", "unclear": "not told apart"}


@fork_safe_threads()
def survive(
    datasets: Sequence[str],
    *,
    seeds: int = 5,
    evaluate: str = "test",
    draws: int = 1000,
    device: str = "auto",
    root: Path | None = None,
    command: str = "",
    tell: Callable[[str], None] = lambda what: None,
) -> dict[str, Any]:
    """Train, test and give the document that :func:`markdown` draws."""
    graphs = []
    for name in datasets:
        tell(f"training on {name}")
        graph = load(name, root=root, sparse=True)
        results = api.compare(graph, MAIN, seeds=seeds, device=device, evaluate=evaluate)
        tell(f"testing on {name}")
        graphs.append(_graph(name, results, draws))
    return {
        "rawlsgcn": __version__,
        "command": command,
        "machine": machine(pick_device(device)),
        "seeds": seeds,
        "evaluate": evaluate,
        "draws": draws,
        "graphs": graphs,
    }


def _graph(name: str, results: Sequence[Result], draws: int) -> dict[str, Any]:
    nodes = [Nodes.of(result) for result in results]
    _, counts = np.unique(nodes[0].degree, return_counts=True)
    base = nodes[0]
    return {
        "dataset": name,
        "title": CATALOG[name].title if name in CATALOG else name,
        "nodes": len(base.degree),
        "degrees": len(counts),
        "single": int((counts == 1).sum()),
        "methods": [
            _method(result, own, draws) for result, own in zip(results, nodes, strict=True)
        ],
        "against_gcn": [
            {"method": result.method, "title": result.title}
            | {
                measure: {"outcome": test.outcome, **asdict(test)}
                for measure in ("loss", "calibrated")
                for test in [compare([(own, base)], measure, draws=draws)]
            }
            for result, own in zip(results[1:], nodes[1:], strict=True)
        ],
    }


def _method(result: Result, nodes: Nodes, draws: int) -> dict[str, Any]:
    if not np.isfinite(result.bias.runs).all():
        raise RawlsError(
            f"a run of {result.title} diverged (its loss is NaN or infinite), so there is no bias "
            "to test: train it at a lower rate"
        )
    tests, nets, lines = [], [], []
    for seed, loss, right in zip(result.seeds, nodes.loss, nodes.right, strict=True):
        grouped = GroupedScores.of(nodes.degree, loss, right.astype(np.float64))
        tests.append(shuffled_bias(grouped, draws, seed))
        nets.append(net_variance(grouped))
        lines.append(slopes(grouped, resampled(grouped, draws, seed)))
    told = [line for line in lines if line is not None]
    return {
        "method": result.method,
        "title": result.title,
        "accuracy": result.accuracy.mean,
        "bias": result.bias.runs,
        "shuffled": [test.mean for test in tests],
        "p": [test.p for test in tests],
        "net": [net.value for net in nets],
        "slope": [line.loss.value for line in told],
        "slope_clear": [line.loss.clear for line in told],
        "correlation": [line.loss_correlation for line in told],
    }


def markdown(document: dict[str, Any]) -> str:
    """Two tables: whether a bias is more than chance, and whether it is lower than GCN's."""
    rows = [
        "| graph | method | accuracy | bias | shuffled | p | seeds with p ≤ 0.05 | net of noise "
        "| loss per doubling | correlation |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for graph in document["graphs"]:
        for each in graph["methods"]:
            runs = len(each["p"])
            rejected = sum(p <= LEVEL for p in each["p"])
            clear = sum(way != 0 for way in each["slope_clear"])
            rows.append(
                f"| {graph['title']} | {each['title']} | {each['accuracy']:.1f} "
                f"| {np.mean(each['bias']):.3f} | {np.mean(each['shuffled']):.3f} "
                f"| {np.median(each['p']):.3f} | {rejected} of {runs} | {np.mean(each['net']):.3f} "
                f"| {np.mean(each['slope']):+.3f} ({clear} of {runs} clear) "
                f"| {np.mean(each['correlation']):+.2f} |"
            )
    rows += [
        "",
        "| graph | method | bias over GCN's | p by nodes | p by seeds | bias is | calibrated: bias "
        "over GCN's | p by nodes | p by seeds | bias is |",
        "| --- | --- | ---: | ---: | ---: | --- | ---: | ---: | ---: | --- |",
    ]
    for graph in document["graphs"]:
        for each in graph["against_gcn"]:
            cells = [graph["title"], each["title"]]
            for measure in ("loss", "calibrated"):
                test = each[measure]
                # One-sided, towards the side that was seen.
                side = "p" if test["difference"] <= 0 else "q"
                cells += [
                    f"{np.exp(test['difference']):.2f}",
                    f"{test[f'{side}_nodes']:.3f}",
                    f"{test[f'{side}_seeds']:.3f}",
                    OUTCOMES[test["outcome"]],
                ]
            rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)
