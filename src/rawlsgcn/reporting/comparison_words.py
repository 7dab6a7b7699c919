"""What an audit says of two models on the same nodes, in plain words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from .._core.text import printable
from .formatting import SIGNIFICANT, join_words, number, p_text, percent

if TYPE_CHECKING:
    from ..evaluation.audit.findings import Estimate, ModelAudit, ModelComparison, PairedBiasTest
    from ..experiments.auditing.audit_result import Audit


def differences(audit: Audit, base: ModelAudit) -> str | None:
    """Which models serve low-degree nodes better or worse than the headline's model."""
    if base.low is None or not base.learned:
        return None
    gains = low_degree_gains(audit, base.name)
    if not gains:
        return None
    name, said = printable(base.name), []
    for way, how in ((1, "better"), (-1, "worse")):
        who = [printable(other) for other, gain in gains.items() if gain.clear == way]
        if who:
            serve = "serves" if len(who) == 1 else "serve"
            said.append(f"{join_words(who)} {serve} low-degree nodes {how} than {name}")
    if said:
        return "; ".join(said) + "."
    makes = f"{printable(*gains)} makes no" if len(gains) == 1 else "No other model makes a"
    return f"{makes} clear difference to low-degree nodes, compared with {name}."


def low_degree_gains(audit: Audit, base: str) -> dict[str, Estimate]:
    """How much more often low-degree nodes are right with every other model than with ``base``."""
    gains = {}
    for pair in audit.comparisons:
        if pair.second == base:
            gains[pair.first] = pair.low_accuracy
        elif pair.first == base:
            gains[pair.second] = -pair.low_accuracy
    return {other: gain for other, gain in gains.items() if math.isfinite(gain.value)}


def pair_sentence(audit: Audit, pair: ModelComparison) -> str:
    """Whose bias is lower, before and after calibration, and who serves low degrees better."""
    first, second = printable(pair.first), printable(pair.second)
    said = _bias_words(pair)
    whose, gain = "low-degree nodes", pair.low_accuracy
    if math.isnan(gain.value):  # all nodes have the same degree
        whose, gain = "nodes", pair.accuracy
    if gain.clear:
        better, worse = (first, second) if gain.value > 0 else (second, first)
        said += (
            f"; {whose} are right {percent(abs(gain.value))} points more often with "
            f"{better} than with {worse}"
        )
    return f"{said}.{_leveling_down(audit, pair)}"


def _bias_words(pair: ModelComparison) -> str:
    """Whose bias is lower, before and after calibration."""
    first, second = printable(pair.first), printable(pair.second)
    test, after = pair.bias, pair.calibrated_bias
    if math.isnan(test.first) or math.isnan(test.second):
        return f"All nodes are in one group, so {first} and {second} have no bias to compare"
    forward, clear = test.first <= test.second, test.p <= SIGNIFICANT
    lower, higher = (first, second) if forward else (second, first)
    said = f"{lower} {'has less bias' if clear else 'is not shown to be fairer'} than {higher}"
    said += f" (bias {_biases(test, forward)})"
    if after is None:
        return said
    still = after.p <= SIGNIFICANT
    if still and (after.first <= after.second) != forward:
        turned = "it is the other way round: " if clear else ""
        turned += f"{higher} has less bias ({_biases(after, not forward)})"
        return f"{said}, but once both are calibrated {turned}"
    if still != clear:
        how = "it is" if still else "not clearly"
        said += f", but {how} once both are calibrated ({_biases(after, forward)})"
    return said


def _leveling_down(audit: Audit, pair: ModelComparison) -> str:
    """Say so where a gap is smaller only because the nodes of higher degrees lost."""
    lows = {model.name: model.low for model in audit.models}
    low_change, rest_change = pair.low_accuracy.clear, pair.rest_accuracy.clear
    for name, other, way in ((pair.first, pair.second, 1), (pair.second, pair.first, -1)):
        low, before = lows[name], lows[other]
        if low is None or before is None:
            return ""
        gap, wider = (abs(each.error.value - each.rest_error.value) for each in (low, before))
        if gap < wider and way * low_change <= 0 and way * rest_change < 0:
            why = " because the rest lost accuracy; low-degree nodes do not clearly gain"
            why = ", but both lose accuracy with it" if low_change else why
            smaller = "The gap between low-degree nodes and the rest is smaller with"
            return f" {smaller} {printable(name)}{why}."
    return ""


def _biases(test: PairedBiasTest, forward: bool) -> str:
    """``0.083 against 0.541, p = 0.002``, the first model's bias first if ``forward``."""
    each = (test.first, test.second) if forward else (test.second, test.first)
    return f"{number(each[0])} against {number(each[1])}, {p_text(test.p, test.draws)}"


def gains(audit: Audit, name: str, other: str) -> list[str]:
    """Say who gains and who loses with one model compared with another, with intervals over nodes.

    Two sentences, on accuracy and on bias; one if both are the same model, and none if one of them
    has not learned.
    """
    pairs = [pair for pair in audit.comparisons if {pair.first, pair.second} == {name, other}]
    if not pairs:
        return []
    (pair,) = pairs
    if pair.loss.low == pair.loss.high == 0:
        both = "both give every node the same probabilities"
        return [f"{printable(name)} is {printable(other)} itself: {both}."]
    differences = (pair.accuracy, pair.low_accuracy, pair.rest_accuracy)
    whole, low, rest = (each if pair.first == name else -each for each in differences)
    said = (
        f"Compared with {printable(other)}, {printable(name)} changes accuracy by "
        f"{_change(whole, '95 % interval over nodes ')}"
    )
    clear = {"nodes": whole.clear}
    if math.isfinite(low.value):
        said += f": by {_change(low)} on low-degree nodes, by {_change(rest)} on the others"
        clear = {"low-degree nodes": low.clear, "the others": rest.clear}
    return [f"{said}. {_winners(clear)}", f"{_bias_words(pair)}.{_leveling_down(audit, pair)}"]


def _change(gain: Estimate, what: str = "") -> str:
    """``+2.1 points (0.4 to 3.8)``."""
    shown = f"{'+' if gain.value > 0 else ''}{percent(gain.value)} points"
    if math.isnan(gain.low):
        return f"{shown} (too few nodes for an interval)"
    return f"{shown} ({what}{percent(gain.low)} to {percent(gain.high)})"


def _winners(clear: Mapping[str, int]) -> str:
    """Who clearly gains and who clearly loses."""
    gain, lose = ([who for who, sign in clear.items() if sign == way] for way in (1, -1))
    said = [f"{join_words(who)} {how}" for who, how in ((gain, "gain"), (lose, "lose")) if who]
    if not said:
        return "These differences may be chance."
    if len(gain) > 1:
        return "Both gain."
    sentence = "; ".join([*said, *(() if lose else ("nobody clearly loses",))])
    return f"{sentence[0].upper()}{sentence[1:]}."
