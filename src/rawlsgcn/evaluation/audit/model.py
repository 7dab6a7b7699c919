"""One model judged: everything that an audit says about it, from its nodes' scores."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from .calibrated import group_calibration
from .extremes import extremes
from .grouping import MOST_VALUES, Bin, Column, bins_of
from .headline import low_against_rest
from .inequality import inequality, worst_nodes
from .intervals import SMALLEST, difference
from .means import Means
from .net_variance import net_variance
from .parts import Group, ModelAudit, Point, Scaling
from .permutation import shuffled_bias
from .resampling import resampled
from .scores import Scores
from .slope import slopes
from .strata import Strata

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Settings:
    """How an audit is computed."""

    resamples: int = 1000
    seed: int = 0
    level: float = 0.95


@dataclass(frozen=True)
class Layout:
    """Where the evaluated nodes stand: ``value`` is each one's place among the fine groups (single
    degrees), ``labels`` and ``numbers`` those groups' names and values; ``bins`` are the
    table's groups and ``bin_of`` (fine groups,) says which of them a fine group lies in.
    ``bias_over`` and ``note`` are words: what the fine groups are, and what was bounded if
    anything was."""

    value: Ints
    labels: list[str]
    numbers: Floats
    bins: list[Bin]
    bin_of: Ints
    ordered: bool
    by_degree: bool
    degree: Ints
    bias_over: str
    note: str | None

    @classmethod
    def of(cls, column: Column, degree: Ints, bins: str | None) -> tuple[Layout, str]:
        """The groups of the evaluated nodes, whose ``column`` and ``degree`` are given."""
        table, member, words = bins_of(column.values, bins)
        value, bin_of = member, np.arange(len(table))
        numbers = np.array([(each.low + each.high) / 2 for each in table])
        labels = [each.label for each in table]
        single = column.single
        if single:
            present, value = np.unique(column.values, return_inverse=True)
            bin_of = np.zeros(len(present), np.int64)
            bin_of[value] = member
            numbers = present.astype(float)
            labels = [f"{each:.0f}" for each in present]
        layout = cls(
            value,
            labels,
            numbers,
            table,
            bin_of,
            column.ordered,
            column.name == "degree",
            degree,
            f"single values of {column.name}" if single else "the groups",
            _bounded(column, table, member, single),
        )
        return layout, words


def _bounded(column: Column, table: list[Bin], member: Ints, single: bool) -> str | None:
    """What is said where there are too many different values to compare them one by one."""
    if table[-1].pooled:
        alone, together = len(table) - 1, int((member == len(table) - 1).sum())
        return (
            f"{column.name} has too many different values to compare them all: the {alone} of the "
            f"most nodes stand alone, and the nodes of all others ({together:,}) are one group, "
            "which is never named worst or best."
        )
    if column.ordered and not single and bool((column.values == np.floor(column.values)).all()):
        return (
            f"{column.name} has more than {MOST_VALUES:,} different values: its bias is taken over "
            "the groups of the table, not over single values."
        )
    return None


def audit_model(scores: Scores, layout: Layout, settings: Settings) -> ModelAudit:
    """Judge one model on the evaluated nodes of ``layout``."""
    strata = replace(Strata.of(layout.value, scores.loss, scores.right), value=layout.numbers)
    drawn = resampled(strata, settings.resamples, settings.seed)
    level, zero_one = settings.level, scores.loss_kind == "zero-one"
    fine = Means(strata.sums(), drawn, level, zero_one)
    binned = Means.of(strata, drawn, layout.bin_of, level, zero_one)
    overall = Means.of(strata, drawn, np.zeros(len(strata.count), np.int64), level, zero_one)
    groups = _groups(binned, layout, scores, settings)
    headline = low_against_rest(layout.degree, scores.right, settings) if layout.by_degree else None
    low = layout.degree <= headline.at_most if headline else None
    net = net_variance(strata, settings.resamples, settings.seed, settings.level, layout.ordered)
    by_accuracy = extremes(groups, "accuracy", level, highest=100.0)
    by_loss = extremes(groups, "loss", level, highest=1.0 if zero_one else math.inf)
    return ModelAudit(
        name=scores.name,
        source=scores.source,
        form=scores.form,
        form_reason=scores.form_reason,
        loss_kind=scores.loss_kind,
        nodes=len(scores.loss),
        learned=scores.learned,
        majority=scores.majority,
        accuracy=overall.accuracy(0),
        loss=overall.loss(0),
        groups=groups,
        curve=[
            Point(
                float(layout.numbers[k]),
                label,
                int(strata.count[k]),
                fine.loss(k),
                fine.accuracy(k),
            )
            for k, label in enumerate(layout.labels)
        ],
        by_accuracy=by_accuracy,
        by_loss=by_loss,
        low=headline,
        bias=strata.bias,
        net_variance=net,
        permutation=shuffled_bias(strata, settings.resamples, settings.seed, settings.level),
        slope=slopes(strata, drawn, settings.level) if layout.ordered else None,
        worst=worst_nodes(scores.loss, low, settings.resamples, settings.seed, settings.level),
        inequality=inequality(
            binned.right.astype(np.int64),
            binned.count.astype(np.int64),
            settings.resamples,
            settings.seed,
            settings.level,
        ),
        scaling=_scaling(scores, strata, net.value, settings, layout.ordered),
        warnings=[*scores.warnings, *_cautions(scores, strata.bias)],
    )


def _groups(binned: Means, layout: Layout, scores: Scores, settings: Settings) -> list[Group]:
    node_bin = layout.bin_of[layout.value]
    rest = binned.others()
    groups = []
    for g, each in enumerate(layout.bins):
        nodes = int(binned.count[g])
        too_small = nodes < SMALLEST
        calibration = None
        if scores.confidence is not None:
            inside = node_bin == g
            calibration = group_calibration(
                scores.confidence[inside], scores.right[inside], settings.level
            )
        groups.append(
            Group(
                label=each.label,
                low=each.low,
                high=each.high,
                nodes=nodes,
                share=100 * nodes / len(scores.loss),
                right=int(binned.right[g]),
                too_small=too_small,
                accuracy=binned.accuracy(g),
                loss=binned.loss(g),
                accuracy_against_rest=difference(binned.accuracy(g), rest.accuracy(g)),
                loss_against_rest=difference(binned.loss(g), rest.loss(g)),
                calibration=calibration,
                pooled=each.pooled,
            )
        )
    return groups


def _scaling(
    scores: Scores, strata: Strata, net: float, settings: Settings, ordered: bool
) -> Scaling | None:
    if scores.calibrated_loss is None or scores.confidence is None:
        return None
    from .calibrated import calibration_error

    scaled = strata.with_loss(scores.calibrated_loss)
    after = net_variance(scaled, settings.resamples, settings.seed, settings.level, ordered)
    return Scaling(
        temperature=scores.temperature,
        outcome=scores.outcome,
        fitted_on=scores.fitted_on,
        bias=strata.bias,
        calibrated_bias=scaled.bias,
        net_variance=net,
        calibrated_net_variance=after.value,
        error=calibration_error(scores.confidence, scores.right),
        under_confident=scores.under_confident,
    )


def _cautions(scores: Scores, bias: float) -> list[str]:
    if not scores.under_confident or math.isnan(bias):
        return []
    return [
        f"the model is under-confident (temperature {scores.temperature:.2f}), and a blurred model "
        "has less bias without serving anybody better: read its bias after calibration."
    ]
