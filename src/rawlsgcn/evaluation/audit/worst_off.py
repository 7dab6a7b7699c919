"""Who is worst off: low degrees, the group with the least accuracy, the nodes with most loss."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..degree_bias import SMALLEST_GROUP
from .findings import Estimate, GroupAudit, GroupGap, LowAgainstRest, WorstNodes
from .intervals import LEVEL, difference, difference_ends, normal_quantile, ratio, wilson
from .resampling import in_blocks, poisson

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
PERCENTS = (1.0, 5.0, 10.0)


def low_against_rest(low: Bools, low_degree: float, right: Floats) -> LowAgainstRest | None:
    """Compare the quarter of ``low`` degree with all other nodes: a comparison fixed in advance.

    ``low_degree`` is the degree up to which they are; None where there are no others or either
    side is too small.
    """
    from scipy.stats import fisher_exact

    nodes = np.array([low.sum(), (~low).sum()])
    if nodes.min() < SMALLEST_GROUP:
        return None
    wrong = np.array([(1 - right[low]).sum(), (1 - right[~low]).sum()])
    error, rest = (Estimate.of(wrong / nodes, wilson(wrong, nodes), k, by=100) for k in (0, 1))
    table = np.round([wrong, nodes - wrong]).astype(np.int64)
    return LowAgainstRest(
        at_most=math.floor(low_degree),
        nodes=int(nodes[0]),
        share=100 * float(low.mean()),
        error=error,
        rest_error=rest,
        difference=difference(error, rest),
        ratio=ratio(error, rest),
        p=float(fisher_exact(table).pvalue),
    )


def worst_and_best(groups: Sequence[GroupAudit]) -> GroupGap | None:
    """Compare the accuracy of the worst group with the best, of the groups that are large enough.

    The largest of several shares looks larger than it is. So the interval is that of the largest
    difference of any two groups, each group's interval being widened until those of all pairs hold
    at once (Bonferroni). None for fewer than two large groups.
    """
    named = [group for group in groups if not group.too_small and not group.pooled]
    if len(named) < 2:
        return None
    pairs = len(named) * (len(named) - 1) / 2
    by = normal_quantile(1 - (1 - LEVEL) / pairs) / normal_quantile(LEVEL)
    value, low, high = np.array(
        [[each.accuracy.value, each.accuracy.low, each.accuracy.high] for each in named]
    ).T
    low = np.maximum(value - by * (value - low), 0.0)
    high = np.minimum(value + by * (high - value), 100.0)
    wide = (value, low, high)
    ends = difference_ends([end[:, None] for end in wide], wide)
    different = ~np.eye(len(named), dtype=bool)
    worst, *_, best = np.argsort(value, kind="stable").tolist()
    return GroupGap(
        named[worst].label,
        named[best].label,
        Estimate(float(value[best] - value[worst]), *(float(end[different].max()) for end in ends)),
        float(value[worst] / value[best]) if value[best] > 0 else math.nan,
    )


def worst_nodes(loss: Floats, low: Bools | None, draws: int, seed: int) -> list[WorstNodes]:
    """Compute the mean loss of the worst 1, 5 and 10 per cent (conditional value at risk).

    The worst α n of the nodes may end within a node; it then counts in part. The intervals are
    percentiles of Poisson bootstrap draws. ``low`` are the low-degree nodes, if these are to be
    counted. A share of less than one node is left out.
    """
    order = np.argsort(-loss, kind="stable")
    nodes = len(loss)
    # In a draw the worst α n come from the worst 2 α n or so; no need to draw the others.
    reach = min(nodes, int(1.5 * PERCENTS[-1] / 100 * nodes) + 200)
    top = loss[order[:reach]].astype(np.float32).astype(np.float64)

    def draw(rng: np.random.Generator, size: int) -> Floats:
        weights = poisson(rng, (size, reach)).astype(np.float64)
        upto, total = np.cumsum(weights, 1), np.cumsum(weights * top, 1)
        return np.stack([_tail(upto, total, top, p / 100 * nodes) for p in PERCENTS], 1)

    drawn = in_blocks(draw, draws, reach, (seed, 6))
    ends = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    ones = np.arange(1.0, reach + 1)[None]
    sums, everything = np.cumsum(loss[order[:reach]])[None], float(loss.sum())
    findings = []
    for (low_end, high_end), percent in zip(ends.T.tolist(), PERCENTS, strict=True):
        size = percent / 100 * nodes
        if size < 1:
            continue
        mean = float(_tail(ones, sums, loss[order[:reach]], size)[0])
        whole = math.ceil(size)
        last = loss[order[whole - 1]]
        share = math.nan
        if low is not None:  # each of several equal losses is as likely to be among the worst
            worse, tied = loss > last, loss == last
            left = whole - int(worse.sum())
            share = (float(low[worse].sum()) + left * float(low[tied].mean())) / whole
        findings.append(
            WorstNodes(
                percent,
                whole,
                Estimate(mean, low_end, high_end),
                100 * mean * size / everything if everything > 0 else math.nan,
                100 * share,
                math.nan if low is None else 100 * float(low.mean()),
            )
        )
    return findings


def _tail(upto: Floats, total: Floats, loss: Floats, size: float) -> Floats:
    """The mean of the first ``size`` of each row, from cumulated weights and weighted losses."""
    rows = np.arange(len(upto))
    last = np.minimum((upto < size).sum(1), upto.shape[1] - 1)
    short = size - upto[rows, last]  # negative: the last node counts in part
    mean: Floats = (total[rows, last] + short * loss[last]) / size
    return mean
