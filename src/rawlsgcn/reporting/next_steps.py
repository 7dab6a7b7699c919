"""What to try after an audit: the steps that its results call for, each with its line of code."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._core.text import printable
from ..graphs.catalog import datasets
from .audit_verdict import headline_model, low_degree_significant
from .comparison_words import low_degree_gains
from .formatting import SIGNIFICANT, number, p_text, percent

if TYPE_CHECKING:
    from ..evaluation.audit.findings import ModelAudit
    from ..experiments.auditing.audit_result import Audit

_COMPARED = {"gcn", "rawlsgcn-graph", "rawlsgcn-grad"}
_AUTO = "auto"
_GRAPH = ("dataset", "data-root", "graph", "features", "labels", "split")
_OPTIONS = {
    "audit": ("dataset", "data-root", "graph", "labels", "evaluate"),
    "audit more": ("dataset", "data-root", "graph", "labels", "by", "bins"),
    "auto": (*_GRAPH, "evaluate"),
    "compare": (*_GRAPH, "evaluate"),
    "tune": _GRAPH,
}
"""Which of the typed options on the graph the command of a step repeats."""


@dataclass(frozen=True)
class Step:
    """Why, in a sentence or two, and the exact line; ``code`` is None where there is none."""

    words: str
    code: str | None = None
    language: str = "shell"


def next_steps(audit: Audit) -> list[Step]:
    """The steps for the model that the headline is about; the others are alternatives."""
    model = headline_model(audit)
    if not model.learned:
        return [_find_out_why(audit, model)]
    by_degree = model.low is not None or audit.column in ("degree", "in-degree")
    about = _about_degree if by_degree else _about_column
    return [*about(audit, model), *_calibrate(model), *_evaluate_more(audit, model)]


def _find_out_why(audit: Audit, model: ModelAudit) -> Step:
    cure = (
        "change its training: another learning rate (--lr), more epochs (--epochs) or more "
        "training nodes (--split)."
    )
    if model.name not in audit.results:
        cure = (
            "find out why it is not clearly better than a constant prediction: check that its "
            "classes are numbered as the labels are, that the predictions belong to the nodes of "
            "this graph, and how its training went."
        )
    return Step(f"Before asking who is worst off with {printable(model.name)}, {cure}")


def _about_column(audit: Audit, model: ModelAudit) -> Iterator[Step]:
    column, gap = printable(audit.column), model.by_accuracy
    differ = gap is not None and gap.difference.low > 0
    if not differ and not model.permutation.p <= SIGNIFICANT:
        yield Step(f"Nothing here shows that the model treats nodes differently by {column}.")
        return
    yield _step(
        f"The methods of this package reduce differences by degree, not by {column}. See whether "
        "degree explains this one: audit the same predictions by degree.",
        audit,
        "audit",
        [*_predictions(audit), "--out by-degree.html"],
        'rg.audit(graph, predictions).to_html("by-degree.html")',
    )


def _low_degrees_worse_off(model: ModelAudit) -> bool:
    """Whether low-degree nodes are shown to be worse off, by their errors or by the trend."""
    low, slope = model.low, model.slope
    errors = low is not None and low_degree_significant(low) and low.difference.value > 0
    return errors or (slope is not None and slope.loss.clear < 0)


def _about_degree(audit: Audit, model: ModelAudit) -> Iterator[Step]:
    name = printable(model.name)
    if len(model.curve) == 1:
        same = f"All evaluated nodes have the same {audit.column}"
        yield Step(f"{same}: there is nothing to improve.")
        return
    if not _low_degrees_worse_off(model):
        yield Step(
            f"Nothing here shows that nodes with few neighbors are worse off with {name}; "
            "as far as these nodes show, a fairer method has nothing to improve."
        )
        return
    all_gains = low_degree_gains(audit, model.name)
    gains = {other: gain.value for other, gain in all_gains.items() if gain.clear > 0}
    if gains:
        best = max(gains, key=lambda other: gains[other])
        words = (
            f"Of the models audited here, {printable(best)} serves low-degree nodes best: they are "
            f"right {percent(gains[best])} points more often than with {name}."
        )
        result = audit.results.get(best)
        if result is None or result.method == _AUTO:
            yield Step(words)
        else:
            line = f"--method {shlex.quote(printable(result.method))} --out model"
            python = f"tuning = rg.tune(graph, {printable(result.method)!r})"
            yield _step(f"{words} Search better settings for it:", audit, "tune", [line], python)
    without_features = ""
    if audit.how.graph_options and not audit.how.graph_features and not audit.results:
        without_features = " Without --features FILE the structure of the graph alone is used."
    methods = {result.method for result in audit.results.values()}
    if _AUTO not in methods:
        yield _step(
            "Let auto choose the best of several models by the validation nodes of the graph, "
            f"and compare it with a GCN that is tuned as carefully.{without_features}",
            audit,
            "auto",
            ["--out best"],
            "best = rg.auto(graph)",
        )
    if not methods >= _COMPARED:
        yield _step(
            "Train a plain GCN and both RawlsGCN methods on the same split and compare "
            f"them.{without_features}",
            audit,
            "compare",
            ["--out out"],
            "results = rg.compare(graph)",
        )
    yield Step(
        "Or use a model of your own with the doubly stochastic form of the graph, in "
        "which every node has the same weight:",
        "edge_index, edge_weight = rg.balance(graph.edge_index, num_nodes=graph.num_nodes)"
        ".matrix(torch.float32)",
        "python",
    )


def _calibrate(model: ModelAudit) -> Iterator[Step]:
    scaling = model.scaling
    if scaling is None or not scaling.under_confident:
        return
    then = ""
    if math.isfinite(scaling.bias):
        then = f" Its bias is then {number(scaling.calibrated_bias)}, not {number(scaling.bias)}."
    yield Step(
        f"{printable(model.name)} is under-confident: divide its logits by "
        f"{number(scaling.temperature)} before reading probabilities or comparing losses.{then}",
        f"logits = logits / {scaling.temperature:.4g}",
        "python",
    )


def _evaluate_more(audit: Audit, model: ModelAudit) -> Iterator[Step]:
    test, how = model.permutation, audit.how
    shown = test.p <= SIGNIFICANT or _low_degrees_worse_off(model)
    if not test.draws or shown or how.nodes >= how.graph_nodes:
        return
    words = f"On {how.nodes:,} nodes the bias may be chance ({p_text(test.p, test.draws)}). "
    if how.predicted > how.nodes:
        words += f"Evaluate all {how.predicted:,} labeled nodes outside training and validation:"
        if audit.results and how.command and how.command.split()[1] in ("train", "compare", "auto"):
            yield Step(words, f"{printable(how.command)} --evaluate all")
            return
        line = [*_predictions(audit), "--evaluate all --out report.html"]
    else:
        words += f"Predict more of the {how.graph_nodes:,} nodes, and audit those predictions:"
        line = ["--predictions FILE --out report.html"]
    python = 'rg.audit(graph, predictions, evaluate="all").to_html("report.html")'
    yield _step(words, audit, "audit more", line, python)


def _step(words: str, audit: Audit, name: str, rest: Sequence[str], python: str) -> Step:
    """A step with its command, or with its line of Python for a graph that was made in Python.

    The command names the audited graph by the options that were typed.
    """
    typed = audit.how.graph_options
    options = []
    if {"dataset", "graph"} & typed.keys():
        for option in _OPTIONS[name]:
            # The nodes to evaluate are called differently by audit and by the commands that train.
            differs = option == "evaluate" and (name == "audit") is bool(audit.results)
            if option in typed and not differs:
                options += [f"--{option}", shlex.quote(printable(typed[option]))]
    elif audit.results and audit.graph in datasets():
        options = ["--dataset", audit.graph]
    if not options:
        return Step(words, python, "python")
    return Step(words, " ".join(["rawlsgcn", name.split()[0], *options, *rest]))


def _predictions(audit: Audit) -> list[str]:
    """The files that were audited, or a placeholder where they were not files."""
    if audit.how.command is None or audit.results:
        return ["--predictions FILE"]
    return [f"--predictions {shlex.quote(printable(model.source))}" for model in audit.models]
