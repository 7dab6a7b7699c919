"""What an audit says, in plain words: one function, for the terminal and for the page."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from .audit_axis import doubled
from .verdict import Verdict
from .wording import number, percent, plural, printable, several

if TYPE_CHECKING:
    from ..evaluation.audit.findings import (
        Estimate,
        LowAgainstRest,
        ModelAudit,
        ModelComparison,
        PairedBiasTest,
    )
    from ..experiments.audit_result import Audit

CLEAR = 0.05
"""A p-value at or under this is called 'not chance'."""
TRAINING_NODES = (
    "The graph has no masks, so nodes that a model was trained on may be among those judged here, "
    "on which models are usually right more often: leave them out of the predictions, or give "
    "a graph with masks and say --evaluate test (evaluate='test')."
)


def verdict(audit: Audit) -> Verdict:
    """A headline on one model, and sentences on every model and every pair of them."""
    model = headline_model(audit)
    headline = _headline(audit, model)
    if len(audit.models) > 1 and model.learned:
        headline = f"With {printable(model.name)}, {headline[0].lower()}{headline[1:]}"
    sentences = [" ".join(_alone(audit, each, each is model)) for each in audit.models]
    sentences += _reconciled(audit, model)
    sentences += [_pair(pair) for pair in audit.comparisons]
    if not audit.training_nodes_excluded:
        sentences.append(TRAINING_NODES)
    return Verdict(headline, sentences)


def headline_model(audit: Audit) -> ModelAudit:
    """The first model that has learned, or the first where none has."""
    return next((model for model in audit.models if model.learned), audit.models[0])


def interval(estimate: Estimate, one: str) -> str:
    """``95 % interval a to b``; ``one`` is "percent" or "number"."""
    show = percent if one == "percent" else number
    if math.isnan(estimate.low) and math.isnan(estimate.high):
        return "too few nodes for an interval"
    if math.isnan(estimate.high):
        return f"95 % interval {show(estimate.low)} or more"
    return f"95 % interval {show(estimate.low)} to {show(estimate.high)}"


def p_words(p: float, draws: int = 0) -> str:
    """``p < 0.001`` or ``p = 0.28``; with a single group there is nothing to test."""
    if math.isnan(p):
        return "not tested"
    if draws and p <= 1.5 / (1 + draws):
        return f"p < {2 / (1 + draws):.2g}"
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def _headline(audit: Audit, model: ModelAudit) -> str:
    if not model.learned:
        who = "No model is" if len(audit.models) > 1 else f"{printable(model.name)} is not"
        return f"{who} clearly better than always predicting the most frequent class"
    if model.low is not None:
        return _low(model.low)
    apart = model.by_accuracy
    if len(model.curve) == 1:
        return (
            f"All judged nodes have the same {printable(audit.column)} "
            f"({printable(model.curve[0].label)}); accuracy is {percent(model.accuracy.value)} %"
        )
    if apart is None:
        return (
            f"There are no two groups of {audit.how.smallest_group} nodes or more to compare; "
            f"accuracy is {percent(model.accuracy.value)} %"
        )
    groups = {group.label: group for group in model.groups if not group.pooled}
    worst, best = groups[apart.worst], groups[apart.best]
    if apart.difference.value == 0:
        return (
            f"All groups by {printable(audit.column)} of {audit.how.smallest_group} nodes or more "
            f"are right equally often, {percent(best.accuracy.value)} % of the time"
        )
    chance = "this is not chance" if apart.difference.low > 0 else "this may be chance"
    return (
        f"Nodes with {printable(audit.column)} {printable(apart.worst)}, "
        f"{_share(worst.share)} of all, are right {percent(worst.accuracy.value)} % of the time "
        f"and those with {printable(apart.best)} {percent(best.accuracy.value)} %; {chance}"
    )


def _share(share: float) -> str:
    """``25 %``; never 0 % of some, nor 100 % of fewer than all."""
    if 0 < share < 1:
        return "under 1 %"
    return "over 99 %" if 99 < share < 100 else f"{share:.0f} %"


def _low(low: LowAgainstRest) -> str:
    who = f"Nodes with at most {plural(int(low.at_most), 'neighbour')}"
    if low.at_most == 0:
        who = "Nodes without neighbours"
    who += f", {_share(low.share)} of all,"
    rates = f"{percent(low.error.value)} % against {percent(low.rest_error.value)} %"
    if low.error.value == low.rest_error.value:
        return f"{who} are wrong just as often as the rest ({percent(low.error.value)} %)"
    if not _low_clear(low):
        return f"{who} are wrong about as often as the rest ({rates}); the difference may be chance"
    if low.difference.value < 0:
        return f"{who} are wrong less often than the rest ({rates}); this is not chance"
    if math.isfinite(low.ratio.value) and low.ratio.value >= 1.05:
        return (
            f"{who} are wrong {low.ratio.value:.1f} times as often as the rest; this is not chance"
        )
    return f"{who} are wrong more often than the rest ({rates}); this is not chance"


def _low_clear(low: LowAgainstRest) -> bool:
    return low.p <= CLEAR and low.difference.clear != 0


def _alone(audit: Audit, model: ModelAudit, first: bool) -> list[str]:
    """Accuracy, the bias against chance, the trend, and whatever must be warned of.

    ``first`` says whether the headline is about this model.
    """
    name = printable(model.name)
    right = f"{name} is right on {percent(model.accuracy.value)} % of {plural(model.nodes, 'node')}"
    if not model.learned:
        said = [
            f"{right}, and always predicting the most frequent class would be on "
            f"{percent(model.majority)} %: it has not learned, or what it learned does not hold "
            "for these nodes. No headline and no comparison rests on it."
        ]
    else:
        said = [f"{right}."]
        if not first and model.low is not None:
            said.append(f"{_low(model.low)}.")
        said += _bias(audit, model)
        said += _trend(audit, model)
    return said + [f"{warning[0].upper()}{warning[1:]}" for warning in model.warnings]


def _bias(audit: Audit, model: ModelAudit) -> list[str]:
    """What shuffling and the net variance say of the bias."""
    test, net = model.permutation, model.net_variance
    groups = _kind(audit)
    if not math.isfinite(test.seen):
        return []
    bias = f"Its bias, the variance of the average loss over {net.groups} {groups}, is"
    if not test.draws:
        why = f"every node has {'a degree' if groups == 'degrees' else 'a group'} of its own"
        if net.single < net.groups:
            why = "all losses are the same"
        return [
            f"{bias} {number(test.seen)}; shuffling the {groups} among the nodes has nothing "
            f"to say about it, as {why}."
        ]
    clear = test.p <= CLEAR
    bias += (
        f" {number(test.seen)}; shuffling the {groups} among the nodes gives {number(test.mean)} "
        f"on average ({p_words(test.p, test.draws)}), so that by this test it "
        f"{'is more than chance' if clear else 'may be chance'}."
    )
    if not clear or math.isnan(net.value):
        return [bias]
    left = f"Net of each {groups[:-1]}'s own noise {number(net.value)} is left"
    if net.value == 0:
        left += (
            f": it may be how much losses scatter, and not their average, that differs between "
            f"{groups}"
        )
    return [bias, f"{left}."]


def _reconciled(audit: Audit, first: ModelAudit) -> list[str]:
    """Why the test of the bias and the one behind the headline differ, where they do.

    The headline (of the model ``first``, and what is said likewise of others) asks about two groups
    of nodes, the bias about all single degrees.
    """
    differing = [
        model
        for model in audit.models
        if model.learned
        and model.permutation.draws
        and (model.low is not None or (model is first and model.by_accuracy is not None))
        and _found(model) != (model.permutation.p <= CLEAR)
    ]
    if not differing:
        return []
    net = differing[0].net_variance
    singly = f", {net.single} of them with one node," if net.single else ""
    whom, alone = "", len(audit.models) == 1
    if not alone:
        whom = f" for {several([printable(model.name) for model in differing])}"
    if differing[0].low is not None:
        found = [p_words(model.low.p) for model in differing if model.low is not None]
        asks = (
            "whether the low-degree nodes, taken together, are wrong more or less often than the "
            f"rest (Fisher's exact test, {several(found)})"
        )
    else:
        asks = (
            "whether the worst and the best group differ in accuracy (by an interval that holds "
            "for all pairs of groups)"
        )
    return [
        f"The two tests of chance come out differently{whom}, which is no contradiction, as they "
        f"ask different things. One asks {asks}, and it decides the headline. The other, of "
        f"the bias, asks whether the average losses of {net.groups} {_kind(audit)}{singly} differ "
        "by more than chance, each counting the same however few its nodes."
    ]


def _found(model: ModelAudit) -> bool:
    """Whether the test behind the headline finds a difference."""
    if model.low is not None:
        return _low_clear(model.low)
    return model.by_accuracy is not None and model.by_accuracy.difference.low > 0


def _kind(audit: Audit) -> str:
    return "degrees" if audit.column in ("degree", "in-degree") else "groups"


def _trend(audit: Audit, model: ModelAudit) -> list[str]:
    if model.slope is None:
        return []
    slope = model.slope.loss
    loss = "loss" if model.loss_kind == "cross entropy" else "error"
    if math.isnan(slope.low):
        least = audit.how.smallest_group
        return [
            f"No trend with {printable(audit.column)} can be told: that takes {least} nodes or "
            f"more, and where losses are 0 and 1, {least} right and {least} wrong ones."
        ]
    if not slope.clear:
        return [f"{loss.capitalize()} shows no clear trend with {printable(audit.column)}."]
    way, change = "rises", slope
    if slope.value < 0:  # of a fall, sizes are told and not signs
        way = "falls"
        change = replace(slope, value=-slope.value, low=-slope.high, high=-slope.low)
    return [
        f"{loss.capitalize()} {way} by {number(change.value)} with each doubling of "
        f"{doubled(audit, model.slope.scale)} ({interval(change, 'number')})."
    ]


def _pair(pair: ModelComparison) -> str:
    first, second = printable(pair.first), printable(pair.second)
    test, after = pair.bias, pair.calibrated_bias
    if math.isnan(test.first) or math.isnan(test.second):
        said = f"All nodes are in one group, so {first} and {second} have no bias to compare"
    else:
        forward = test.first <= test.second
        lower, higher = (first, second) if forward else (second, first)
        clear = test.p <= CLEAR
        said = f"{lower} {'has less bias' if clear else 'is not shown to be fairer'} than {higher}"
        said += f" (bias {_biases(test, forward)})"
        if after is not None:
            said += _calibrated(after, forward, clear, lower, higher)
    whose, gain = "low-degree nodes", pair.low_accuracy
    if math.isnan(gain.value):  # all nodes are of one degree
        whose, gain = "nodes", pair.accuracy
    if gain.clear:
        better, worse = (first, second) if gain.value > 0 else (second, first)
        said += (
            f"; {whose} are right {percent(abs(gain.value))} points more often with "
            f"{better} than with {worse}"
        )
    return f"{said}."


def _calibrated(after: PairedBiasTest, forward: bool, clear: bool, lower: str, higher: str) -> str:
    """What becomes of the order of two biases, ``lower`` and ``higher``, with calibration."""
    still = (after.first <= after.second) == forward
    if after.p > CLEAR:
        if not clear:
            return ""
        figures = _biases(after, forward)
        return f", but not clearly once both are calibrated ({figures})"
    if not still:
        turned = f"{higher} has less bias ({_biases(after, not forward)})"
        if clear:
            return f", but once both are calibrated it is the other way round: {turned}"
        return f", but once both are calibrated {turned}"
    return "" if clear else f", but it is once both are calibrated ({_biases(after, forward)})"


def _biases(test: PairedBiasTest, forward: bool) -> str:
    """``0.083 against 0.541, p = 0.002``, the first model's first if ``forward``."""
    each = (test.first, test.second) if forward else (test.second, test.first)
    return f"{number(each[0])} against {number(each[1])}, {p_words(test.p, test.draws)}"
