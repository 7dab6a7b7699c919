"""What to try after an audit: the steps that its findings call for, each with its line of code."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .audit_words import CLEAR, headline_model, p_words
from .wording import number, percent, printable

if TYPE_CHECKING:
    from ..evaluation.audit.findings import ModelAudit
    from ..experiments.audit_result import Audit


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
        return [
            Step(
                f"Before asking who is worst off under {printable(model.name)}, see why it is not "
                "clearly better than a constant answer: whether its classes are numbered as the "
                "labels are, whether the predictions are of this graph's nodes, and how its "
                "training went."
            )
        ]
    steps: list[Step] = []
    if model.low is not None or audit.column in ("degree", "in-degree"):
        steps += _about_degree(audit, model)
    else:
        steps.append(_about_column(audit, model))
    steps += _calibration(model)
    steps += _too_little(audit, model)
    return steps


def _about_column(audit: Audit, model: ModelAudit) -> Step:
    column, apart = printable(audit.column), model.by_accuracy
    differ = apart is not None and apart.difference.low > 0
    if not differ and not model.permutation.p <= CLEAR:
        return Step(f"Nothing here shows that nodes are served differently by {column}.")
    return Step(
        f"The methods of this package mend differences by degree, not by {column}. See whether "
        "degree explains this one: audit the same predictions by degree.",
        _command("audit", audit, *_predictions(audit), "--out by-degree.html"),
    )


def worse_off(model: ModelAudit) -> bool:
    """Whether low-degree nodes are shown to be worse off, by their errors or by the trend."""
    low, slope = model.low, model.slope
    errors = low is not None and low.p <= CLEAR and low.difference.clear > 0
    return errors or (slope is not None and slope.loss.clear < 0)


def _about_degree(audit: Audit, model: ModelAudit) -> list[Step]:
    name = printable(model.name)
    if len(model.curve) == 1:
        return [Step(f"All judged nodes have the same {audit.column}: there is nothing to mend.")]
    if not worse_off(model):
        return [
            Step(
                f"Nothing here shows that nodes with few neighbours are worse off under {name}; "
                "a fairer method has nothing to mend as far as these nodes can tell."
            )
        ]
    steps = []
    fairer = [
        pair
        for pair in audit.comparisons
        if pair.first == model.name and pair.low_accuracy.clear < 0
    ]
    if fairer:
        best = min(fairer, key=lambda pair: pair.low_accuracy.value)
        steps.append(
            Step(
                f"Of the models audited here, {printable(best.second)} serves low-degree nodes "
                f"best: they are right {percent(-best.low_accuracy.value)} points more often than "
                f"under {name}."
            )
        )
    steps.append(
        Step(
            "Train a plain GCN and both RawlsGCN methods on the same split and compare them:",
            _command("compare", audit, *_features(audit), "--out out"),
        )
    )
    steps.append(
        Step(
            "Or keep your own model, and give it the doubly stochastic form of the graph, in "
            "which every node counts the same:",
            "edge_index, edge_weight = rg.balance(graph.edge_index, num_nodes=graph.num_nodes)"
            ".matrix(torch.float32)",
            "python",
        )
    )
    return steps


def _calibration(model: ModelAudit) -> list[Step]:
    scaling = model.scaling
    if scaling is None or not scaling.under_confident:
        return []
    then = ""
    if math.isfinite(scaling.bias):
        then = f" Its bias is then {number(scaling.calibrated_bias)}, not {number(scaling.bias)}."
    return [
        Step(
            f"{printable(model.name)} is too unsure of itself: divide its logits by "
            f"{number(scaling.temperature)} before reading probabilities or comparing losses."
            f"{then}",
            f"logits = logits / {scaling.temperature:.4g}",
            "python",
        )
    ]


def _too_little(audit: Audit, model: ModelAudit) -> list[Step]:
    test = model.permutation
    told = test.p <= CLEAR or worse_off(model)
    if not test.draws or told or audit.how.nodes >= audit.how.graph_nodes:
        return []
    return [
        Step(
            f"The bias cannot be told from chance on {audit.how.nodes:,} nodes "
            f"({p_words(test.p, test.draws)}). Judge more of the {audit.how.graph_nodes:,}: "
            "predict all of them and audit every labelled node.",
            _command("audit", audit, "--predictions FILE --evaluate all --out report.html"),
        )
    ]


def _command(name: str, audit: Audit, *rest: str) -> str:
    return " ".join(["rawlsgcn", name, *_graph_options(audit), *rest])


def _graph_options(audit: Audit) -> list[str]:
    """The graph as the audit was given it, or a word to fill in."""
    options, models = [], {model.name for model in audit.models}
    for option in ("dataset", "data-root", "graph", "labels"):
        given = audit.how.files.get(option)
        if given is not None and option not in models:
            options += [f"--{option}", shlex.quote(printable(given))]
    return options or ["--graph FILE", "--labels FILE"]


def _features(audit: Audit) -> list[str]:
    """Predictions are audited without features, but nothing is trained without them."""
    named = any(word == "--dataset" for word in _graph_options(audit))
    return [] if audit.how.graph_features or named else ["--features FILE"]


def _predictions(audit: Audit) -> list[str]:
    """The files that were audited, or a word to fill in where they were not files."""
    if audit.how.command is None:
        return ["--predictions FILE"]
    return [f"--predictions {shlex.quote(printable(model.source))}" for model in audit.models]
