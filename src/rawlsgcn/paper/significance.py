"""Which biases, and which differences in bias from a GCN, are more than chance.

GCN and the two RawlsGCN methods are trained with their default settings. For each seed the bias is
compared with that of the same losses with the degrees shuffled among the nodes; and each method
with GCN by paired tests over seeds and nodes (:mod:`.claims`), before and after calibration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core import __version__
from .._core.errors import RawlsError
from .._core.machine import machine, pick_device
from .._core.threads import fork_safe_threads
from ..evaluation.audit.group_statistics import GroupedScores
from ..evaluation.audit.intervals import slopes
from ..evaluation.audit.net_variance import net_variance
from ..evaluation.audit.permutation_tests import shuffled_bias
from ..evaluation.audit.resampling import resampled
from ..experiments import comparison
from ..graphs import load
from ..graphs.catalog import CATALOG
from .claims import LEVEL, paired_bias_test
from .plan import MAIN
from .table_formats import Table
from .trials import NodeLosses

if TYPE_CHECKING:
    from ..experiments.result import Result

DRAWS = 1000
_OUTCOMES = {"holds": "lower", "fails": "higher", "unclear": "n.s."}
_NOTES = (
    "shuffled: the mean bias with the degrees shuffled among the nodes; p: the median over seeds "
    "of the share of shuffled biases at least as large as the observed one; net of noise: the "
    "bias less what the noise of each degree's mean loss adds to it; loss per doubling: the slope "
    "of the loss on the logarithm of the degree, to base 2.",
    "p by nodes: the losses of the two methods are swapped at random nodes; p by seeds: at every "
    "combination of seeds. Both are one-sided, towards the observed side; 'lower' and 'higher' "
    f"need both to be at most {LEVEL:g}, else it is not significant (n.s.).",
)


@fork_safe_threads()
def bias_significance(
    datasets: Sequence[str],
    methods: Sequence[str] = MAIN,
    *,
    seeds: Sequence[int] = (0, 1, 2, 3, 4),
    evaluate: str = "test",
    draws: int = DRAWS,
    device: str = "auto",
    root: Path | None = None,
    command: str = "",
    progress: Callable[[str], None] = lambda step: None,
    **settings: Any,
) -> dict[str, Any]:
    """Train the methods on each dataset and test their biases.

    Args:
        datasets: Names of datasets.
        methods: Names of methods, the first of which the others are compared with.
        seeds: The seeds of the runs.
        evaluate: ``"test"``, or ``"all"`` for every labeled node outside training and validation.
        draws: How many permutations and resamples each test draws.
        device: ``"cpu"``, ``"cuda"`` or ``"auto"``.
        root: The folder of the datasets.
        command: The command line, to be shown with the results.
        progress: Called with a description of each step.
        **settings: Settings of all methods, such as ``epochs``.

    Returns:
        The document that ``significance_tables`` shows.

    Raises:
        RawlsError: If a run diverged, so that it has no bias.
    """
    graphs = []
    for name in datasets:
        progress(f"training on {name}")
        graph = load(name, root=root, sparse=True)
        results = comparison.compare(
            graph,
            methods,
            seeds=seeds,
            device=device,
            evaluate=evaluate,
            check_weight_decay=False,
            **settings,
        )
        progress(f"testing on {name}")
        graphs.append(_graph(name, results, draws))
    return {
        "rawlsgcn": __version__,
        "command": command,
        "machine": machine(pick_device(device)),
        "seeds": len(seeds),
        "evaluate": evaluate,
        "draws": draws,
        "graphs": graphs,
    }


def _graph(name: str, results: Sequence[Result], draws: int) -> dict[str, Any]:
    nodes = [NodeLosses.of(result) for result in results]
    _, counts = np.unique(nodes[0].degree, return_counts=True)
    against = []
    for result, own in zip(results[1:], nodes[1:], strict=True):
        pair: dict[str, Any] = {"method": result.method, "title": result.title}
        for measure in ("loss", "calibrated"):
            test = paired_bias_test([(own, nodes[0])], measure, draws=draws)
            pair[measure] = {"outcome": test.outcome, **asdict(test)}
        against.append(pair)
    return {
        "dataset": name,
        "title": CATALOG[name].title if name in CATALOG else name,
        "nodes": len(nodes[0].degree),
        "degrees": len(counts),
        "single": int((counts == 1).sum()),
        "methods": [_method(*each, draws) for each in zip(results, nodes, strict=True)],
        "against_gcn": against,
    }


def _method(result: Result, nodes: NodeLosses, draws: int) -> dict[str, Any]:
    if not np.isfinite(result.bias.runs).all():
        raise RawlsError(
            f"a run of {result.title} diverged (its loss is NaN or infinite), so it has no bias "
            "to test: train it with a lower rate"
        )
    tests, nets, lines = [], [], []
    for seed, loss, correct in zip(result.seeds, nodes.loss, nodes.correct, strict=True):
        grouped = GroupedScores.of(nodes.degree, loss, correct.astype(np.float64))
        tests.append(shuffled_bias(grouped, draws, seed))
        nets.append(net_variance(grouped))
        line = slopes(grouped, resampled(grouped, draws, seed))
        lines += [] if line is None else [line]
    return {
        "method": result.method,
        "title": result.title,
        "accuracy": result.accuracy.mean,
        "bias": result.bias.runs,
        "shuffled": [test.mean for test in tests],
        "p": [test.p for test in tests],
        "net": [net.value for net in nets],
        "slope": [line.loss.value for line in lines],
        "slope_clear": [line.loss.clear for line in lines],
        "correlation": [line.loss_correlation for line in lines],
    }


def significance_tables(document: Mapping[str, Any]) -> list[Table]:
    """Return two tables: which biases are significant, and which differ from GCN's."""
    biases, pairs = [], []
    for graph in document["graphs"]:
        for each in graph["methods"]:
            rejected = sum(p <= LEVEL for p in each["p"])
            clear = sum(direction != 0 for direction in each["slope_clear"])
            runs = len(each["p"])
            biases.append(
                (
                    *(graph["title"], each["title"], f"{each['accuracy']:.1f}"),
                    *(f"{np.mean(each['bias']):.3f}", f"{np.mean(each['shuffled']):.3f}"),
                    *(f"{np.median(each['p']):.3f}", f"{rejected} of {runs}"),
                    f"{np.mean(each['net']):.3f}",
                    f"{np.mean(each['slope']):+.3f} ({clear} of {runs} clear)",
                    f"{np.mean(each['correlation']):+.2f}",
                )
            )
        for each in graph["against_gcn"]:
            row = [graph["title"], each["title"]]
            for test in (each["loss"], each["calibrated"]):
                # One-sided, towards the side that was observed.
                side = "p" if test["difference"] <= 0 else "q"
                row.append(f"{np.exp(test['difference']):.2f}")
                row += [f"{test[f'{side}_{by}']:.3f}" for by in ("nodes", "seeds")]
                row.append(_OUTCOMES[test["outcome"]])
            pairs.append(tuple(row))
    head = (
        *("graph", "method", "accuracy", "bias", "shuffled", "p", "seeds with p ≤ 0.05"),
        *("net of noise", "loss per doubling", "correlation"),
    )
    tested = ("p by nodes", "p by seeds", "bias is")
    ratio = "bias over GCN's"
    against = ("graph", "method", ratio, *tested, f"calibrated: {ratio}", *tested)
    title = "Which biases are more than chance"
    other = "Which biases differ from GCN's"
    return [
        Table("significance", title, head, biases, [_NOTES[0]]),
        Table("significance-gcn", other, against, pairs, [_NOTES[1]]),
    ]
