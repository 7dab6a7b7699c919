"""What an audit says, in plain words: one function, for the terminal and for the page."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from .audit_axis import doubled
from .verdict import Verdict
from .wording import number, percent, plural, printable

if TYPE_CHECKING:
    from ..audit_result import Audit
    from ..evaluation.audit.parts import Comparison, Estimate, LowAgainstRest, ModelAudit

CLEAR = 0.05
"""A p-value at or under this is called 'not chance'."""


def verdict(audit: Audit) -> Verdict:
    """A headline on the first model, and sentences on every model and every pair of them."""
    several = len(audit.models) > 1
    headline = _headline(audit, audit.models[0])
    if several:
        headline = f"With {printable(audit.models[0].name)}, {headline[0].lower()}{headline[1:]}"
    sentences = [
        " ".join(_alone(audit, model, again=index > 0)) for index, model in enumerate(audit.models)
    ]
    sentences += [_pair(pair) for pair in audit.comparisons]
    return Verdict(headline, sentences)


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
    if model.low is not None:
        return _low(model.low)
    apart = model.by_accuracy
    if apart is None:
        return (
            f"There are no two groups of {audit.how.smallest_group} nodes or more to compare; "
            f"accuracy is {percent(model.accuracy.value)} %"
        )
    groups = {group.label: group for group in model.groups}
    worst, best = groups[apart.worst], groups[apart.best]
    chance = "this is not chance" if apart.difference.low > 0 else "this may be chance"
    return (
        f"Nodes with {printable(audit.column)} {printable(apart.worst)}, "
        f"{worst.share:.0f} % of all, are right {percent(worst.accuracy.value)} % of the time and "
        f"those with {printable(apart.best)} {percent(best.accuracy.value)} %; {chance}"
    )


def _low(low: LowAgainstRest) -> str:
    who = f"Nodes with at most {plural(int(low.at_most), 'neighbour')}"
    if low.at_most == 0:
        who = "Nodes without neighbours"
    who += f", {low.share:.0f} % of all,"
    rates = f"{percent(low.error.value)} % against {percent(low.rest_error.value)} %"
    if not (low.p <= CLEAR and low.difference.clear):
        return f"{who} are wrong about as often as the rest ({rates}); the difference may be chance"
    if low.difference.value < 0:
        return f"{who} are wrong less often than the rest ({rates}); this is not chance"
    if math.isfinite(low.ratio.value) and low.ratio.value >= 1.05:
        return (
            f"{who} are wrong {low.ratio.value:.1f} times as often as the rest; this is not chance"
        )
    return f"{who} are wrong more often than the rest ({rates}); this is not chance"


def _alone(audit: Audit, model: ModelAudit, again: bool) -> list[str]:
    """Accuracy, the bias against chance, the trend, and whatever must be warned of."""
    name = printable(model.name)
    said = [f"{name} is right on {percent(model.accuracy.value)} % of {model.nodes:,} nodes."]
    if again and model.low is not None:
        said.append(f"{_low(model.low)}.")
    test, net = model.permutation, model.net_variance
    groups = "degrees" if audit.column in ("degree", "in-degree") else "groups"
    if test.draws:
        shuffled = (
            f"shuffling the {groups} among the nodes gives {number(test.mean)} on average "
            f"({p_words(test.p, test.draws)})"
        )
        if test.p <= CLEAR:
            said.append(
                f"Its bias is {number(test.seen)}, and {shuffled}: net of noise "
                f"{number(net.value)} is left, with a 95 % interval from "
                f"{number(max(net.low, 0.0))} to {number(max(net.high, 0.0))}."
            )
        else:
            left = ""
            if net.low > 0:
                left = (
                    f"; yet some of it ({number(net.value)}, 95 % interval {number(net.low)} to "
                    f"{number(net.high)}) is left where every degree's own noise is taken out"
                )
            said.append(
                f"Its bias is {number(test.seen)}, no larger than shuffling makes it: "
                f"{shuffled}{left}."
            )
    elif math.isfinite(test.seen):
        why = f"every node has {'a degree' if groups == 'degrees' else 'a group'} of its own"
        if net.single < net.groups:
            why = "all losses are the same"
        said.append(
            f"Its bias is {number(test.seen)}; shuffling the {groups} among the nodes has nothing "
            f"to say about it, as {why}."
        )
    if model.slope is not None:
        slope = model.slope.loss
        loss = "loss" if model.loss_kind == "cross entropy" else "error"
        if slope.clear:
            way, change = "rises", slope
            if slope.value < 0:  # of a fall, sizes are told and not signs
                way, change = (
                    "falls",
                    replace(slope, value=-slope.value, low=-slope.high, high=-slope.low),
                )
            said.append(
                f"{loss.capitalize()} {way} by {number(change.value)} with each doubling of "
                f"{doubled(audit, model.slope.scale)} ({interval(change, 'number')})."
            )
        else:
            said.append(f"{loss.capitalize()} shows no clear trend with {printable(audit.column)}.")
    said += [f"{warning[0].upper()}{warning[1:]}" for warning in model.warnings]
    return said


def _pair(pair: Comparison) -> str:
    first, second = printable(pair.first), printable(pair.second)
    test, after = pair.bias, pair.calibrated_bias
    forward = test.first <= test.second
    lower, higher = (first, second) if forward else (second, first)
    p = test.p_lower if forward else test.p_higher
    told = (
        f"bias {number(min(test.first, test.second))} against "
        f"{number(max(test.first, test.second))}, {p_words(p, test.draws)}"
    )
    if math.isnan(test.first) or math.isnan(test.second):
        said = f"All nodes are in one group, so {first} and {second} have no bias to compare"
    elif p <= CLEAR:
        said = f"{lower} has less bias than {higher} ({told})"
        p_after = 0.0 if after is None else after.p_lower if forward else after.p_higher
        if p_after > CLEAR:
            said += f", but not clearly once both are calibrated ({p_words(p_after, test.draws)})"
    else:
        said = f"{lower} is not shown to be fairer than {higher} ({told})"
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
