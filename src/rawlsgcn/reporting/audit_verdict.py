"""What an audit says, in plain words: the same on the terminal, in notebooks and on the page."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .._core.text import plural, printable
from .comparison_words import differences, pair_sentence
from .formatting import SIGNIFICANT, join_words, number, p_text, percent

if TYPE_CHECKING:
    from ..evaluation.audit.findings import LowAgainstRest, ModelAudit
    from ..experiments.auditing.audit_result import Audit

MOST_PAIRS = 3
"""With more pairs of models than this, only those with the headline's model get a sentence."""
NOT_USED = "No headline and no comparison uses it."
TRAINING_NODES = (
    "The graph has no masks, so the evaluated nodes may include nodes that a model was trained on, "
    "on which models are usually right more often: leave them out of the predictions, mark them "
    "there with train or val in a column 'split', or use a graph with masks and --evaluate test "
    "(evaluate='test')."
)


@dataclass(frozen=True)
class Verdict:
    """A headline on one model, how the others differ from it, and sentences with the details.

    ``comparison`` is None where there are no two models to compare.
    """

    headline: str
    comparison: str | None = None
    sentences: list[str] = field(default_factory=list)

    @property
    def lines(self) -> list[str]:
        """All of it in the order of reading."""
        return [self.headline, *([self.comparison] if self.comparison else []), *self.sentences]


#: Instead of the verdict on an audit, where there is nothing to audit.
DIVERGED = Verdict("Training diverged in every run")


def verdict(audit: Audit) -> Verdict:
    """Say who is worse off with which model, and how sure that is.

    Nothing is concluded from a model that has not learned, and nothing is compared with it.

    Args:
        audit: The audit.

    Returns:
        The headline, the comparison and the sentences.
    """
    model = headline_model(audit)
    headline = _headline(audit, model)
    if len(audit.models) > 1 and model.learned:
        headline = f"With {printable(model.name)}, {headline[0].lower()}{headline[1:]}"
    sentences = [" ".join(_on_model(audit, each, each is model)) for each in audit.models]
    audited = {each.name for each in audit.models}
    sentences += [
        f"{result.failure_of(printable(name))} {NOT_USED}"
        for name, result in audit.results.items()
        if name not in audited
    ]
    sentences += _why_tests_differ(audit, model)
    pairs = audit.comparisons
    if len(pairs) > MOST_PAIRS:
        pairs = [pair for pair in pairs if model.name in (pair.first, pair.second)]
    sentences += [pair_sentence(audit, pair) for pair in pairs]
    if not audit.training_nodes_excluded:
        sentences.append(TRAINING_NODES)
    return Verdict(headline, differences(audit, _reference(audit, model)), sentences)


def headline_model(audit: Audit) -> ModelAudit:
    """The trained GCN if it has learned, else the first model that has, else the first model."""
    learned = [model for model in audit.models if model.learned]
    methods = {name: result.method for name, result in audit.results.items()}
    gcn = [model for model in learned if methods.get(model.name) == "gcn"]
    return [*gcn, *learned, *audit.models][0]


def _reference(audit: Audit, headline: ModelAudit) -> ModelAudit:
    """The model that the others are compared with: of ``auto`` the tuned GCN."""
    rival = getattr(audit.results.get(headline.name), "baseline", None)
    rivals = [model for model in audit.models if audit.results.get(model.name) is rival]
    return rivals[0] if rival is not None and rivals else headline


def doubled(audit: Audit, scale: str) -> str:
    """What a slope refers to a doubling of: ``1 + degree``, or the column itself."""
    column = printable(audit.column)
    return f"1 + {column}" if scale == "one more" else column


def low_degree_significant(low: LowAgainstRest) -> bool:
    """Whether both Fisher's test and the interval show that low-degree nodes differ."""
    return low.p <= SIGNIFICANT and low.difference.clear != 0


def _headline(audit: Audit, model: ModelAudit) -> str:
    if not model.learned:
        name, result = printable(model.name), audit.results.get(model.name)
        who = f"{name} is not" if len(audit.models) == 1 else "No model is"
        if len(audit.models) == 1 and result is not None and result.failed:
            return f"{name} {result.failed}"
        return f"{who} clearly better than always predicting the most frequent class"
    if model.low is not None:
        return _low_degree(model.low)
    column, least = printable(audit.column), f"{audit.how.smallest_group} nodes or more"
    accuracy = f"accuracy is {percent(model.accuracy.value)} %"
    if len(model.curve) == 1:
        same = printable(model.curve[0].label)
        return f"All evaluated nodes have the same {column} ({same}); {accuracy}"
    gap = model.by_accuracy
    if gap is None:
        return f"There are no two groups of {least} to compare; {accuracy}"
    groups = {group.label: group for group in model.groups if not group.pooled}
    worst, best = groups[gap.worst], groups[gap.best]
    if gap.difference.value == 0:
        often = f"right equally often, {percent(best.accuracy.value)} % of the time"
        return f"All groups by {column} of {least} are {often}"
    return (
        f"Nodes with {column} {printable(gap.worst)}, {_share(worst.share)} of all, are right "
        f"{percent(worst.accuracy.value)} % of the time and those with {printable(gap.best)} "
        f"{percent(best.accuracy.value)} %; "
        f"{'this is not chance' if gap.difference.low > 0 else 'this may be chance'}"
    )


def _share(share: float) -> str:
    """``25 %``; never 0 % of some, nor 100 % of fewer than all."""
    if 0 < share < 1:
        return "under 1 %"
    return "over 99 %" if 99 < share < 100 else f"{share:.0f} %"


def _low_degree(low: LowAgainstRest, who: str | None = None) -> str:
    """Whether low-degree nodes, called ``who``, are wrong more or less often than the rest."""
    if who is None:
        who = f"Nodes with at most {plural(int(low.at_most), 'neighbor')}"
        if low.at_most == 0:
            who = "Nodes without neighbors"
        who += f", {_share(low.share)} of all,"
    wrong, rest = f"{percent(low.error.value)} %", f"{percent(low.rest_error.value)} %"
    if low.error.value == low.rest_error.value:
        return f"{who} are wrong just as often as the rest ({wrong})"
    if not low_degree_significant(low):
        return (
            f"{who} are wrong {wrong} of the time and the rest {rest}; the difference is not "
            "significant: it may be chance"
        )
    how = f"{'less' if low.difference.value < 0 else 'more'} often than the rest"
    if low.difference.value > 0 and math.isfinite(low.ratio.value) and low.ratio.value >= 1.05:
        return (
            f"{who} are wrong {low.ratio.value:.1f} times as often as the rest; this is not chance"
        )
    return f"{who} are wrong {how} ({wrong} against {rest}); this is not chance"


def _on_model(audit: Audit, model: ModelAudit, in_headline: bool) -> list[str]:
    """Accuracy, the bias against chance, the trend, and the warnings."""
    name, result = printable(model.name), audit.results.get(model.name)
    right = f"{name} is right on {percent(model.accuracy.value)} % of {plural(model.nodes, 'node')}"
    failure = None if result is None else result.failure_of(name)
    if failure is not None:
        said = [f"{failure} {NOT_USED}"]
    elif not model.learned:
        said = [
            f"{right}; always predicting the most frequent class would be right on "
            f"{percent(model.majority)} %: it has not learned, or what it learned does not hold "
            f"for these nodes. {NOT_USED}"
        ]
    else:
        said = [f"{right}."]
        if not in_headline and model.low is not None:
            said.append(f"{_low_degree(model.low, 'Its low-degree nodes')}.")
        said += _bias(audit, model, in_headline)
        said += _trend(audit, model)
    return said + [f"{warning[0].upper()}{warning[1:]}" for warning in model.warnings]


def _bias(audit: Audit, model: ModelAudit, explain: bool) -> list[str]:
    """The bias, and what shuffling the degrees says about it."""
    test, net = model.permutation, model.net_variance
    groups = _groups_noun(audit)
    if not math.isfinite(test.seen):
        return []
    what = f" (the variance of the average loss over {net.groups} {groups})" if explain else ""
    bias = f"Its bias{what} is {number(test.seen)}"
    if not test.draws:
        why = f"each node has a {groups[:-1]} of its own"
        if net.single < net.groups:
            why = "all losses are the same"
        return [f"{bias}; shuffling the {groups} among the nodes cannot change it, as {why}."]
    significant = test.p <= SIGNIFICANT
    said = [
        f"{bias}; with the {groups} shuffled among the nodes it is {number(test.mean)} on average "
        f"({p_text(test.p, test.draws)}), so by this test it "
        f"{'is more than chance' if significant else 'may be chance'}."
    ]
    if significant and net.value == 0:
        said.append(
            f"Without the noise within each {groups[:-1]} nothing is left of it: the spread of the "
            f"losses, not their average, may differ between {groups}."
        )
    return said


def _trend(audit: Audit, model: ModelAudit) -> list[str]:
    if model.slope is None:
        return []
    slope = model.slope.loss
    loss = "Loss" if model.loss_kind == "cross entropy" else "Error"
    if math.isnan(slope.low):
        least = audit.how.smallest_group
        return [
            f"There are too few nodes for a trend with {printable(audit.column)}: it takes {least} "
            f"nodes or more, and with losses of 0 and 1, {least} right and {least} wrong ones."
        ]
    if not slope.clear:
        return [f"{loss} shows no clear trend with {printable(audit.column)}."]
    way, change = ("falls", -slope) if slope.value < 0 else ("rises", slope)
    return [
        f"{loss} {way} by {number(change.value)} with each doubling of "
        f"{doubled(audit, model.slope.scale)} "
        f"(95 % interval {number(change.low)} to {number(change.high)})."
    ]


def _why_tests_differ(audit: Audit, first: ModelAudit) -> list[str]:
    """Why the test of the bias and the one behind the headline disagree, where they do.

    The headline (of the model ``first``, and the same sentence on other models) asks about two
    groups of nodes, the bias about all single degrees.
    """
    differing = []
    for model in audit.models:
        if model.low is not None:
            found = low_degree_significant(model.low)
        elif model is first and model.by_accuracy is not None:
            found = model.by_accuracy.difference.low > 0
        else:
            continue
        tested = model.learned and model.permutation.draws
        if tested and found != (model.permutation.p <= SIGNIFICANT):
            differing.append(model)
    if not differing:
        return []
    net = differing[0].net_variance
    single = f", {net.single} of them with one node," if net.single else ""
    names = join_words([printable(model.name) for model in differing])
    whom = f" for {names}" if len(audit.models) > 1 else ""
    asks = (
        "whether the worst and the best group differ in accuracy (by an interval that holds for "
        "all pairs of groups)"
    )
    if differing[0].low is not None:
        tests = [p_text(model.low.p) for model in differing if model.low is not None]
        asks = (
            "whether the low-degree nodes, taken together, are wrong more or less often than the "
            f"rest (Fisher's exact test, {join_words(tests)})"
        )
    return [
        f"The two tests of chance disagree{whom}, which is no contradiction, as they ask "
        f"different questions. One asks {asks}, and it decides the headline. The other, of "
        f"the bias, asks whether the average losses of {net.groups} {_groups_noun(audit)}{single} "
        "differ by more than chance, each counting the same however few its nodes."
    ]


def _groups_noun(audit: Audit) -> str:
    return "degrees" if audit.column in ("degree", "in-degree") else "groups"
