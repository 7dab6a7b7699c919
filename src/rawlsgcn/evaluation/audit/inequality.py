"""How unequally accuracy is spread over the nodes, and how badly off the worst of them are."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from .parts import Estimate, Inequality, WorstNodes
from .resampling import poisson
from .threads import in_blocks

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
PERCENTS = (1.0, 5.0, 10.0)
_ROUNDING = 1e-12
"""A Gini coefficient that is smaller is that of equal groups."""


def inequality(right: Ints, nodes: Ints, draws: int, seed: int, level: float = 0.95) -> Inequality:
    """Gini coefficient and Lorenz curve of accuracy, every node having that of its group.

    (Of right and wrong answers themselves the Gini coefficient is 1 - accuracy and says nothing
    new.) With the groups sorted by accuracy, p_g and q_g their cumulative shares of the nodes and
    of the right answers,

        Gini = 1 - Σ_g (p_g - p_(g-1)) (q_g + q_(g-1)).

    Chance alone makes groups unequal. The interval, 2 Gini less the quantiles of the draws, takes
    that out to first order. A draw of a group is binomial.
    """
    rate, share = right / nodes, nodes / nodes.sum()
    order = np.argsort(rate, kind="stable")
    population = np.concatenate([[0.0], np.cumsum(share[order])])
    answers = np.concatenate([[0.0], np.cumsum((rate * share)[order])])
    answers = answers / answers[-1] if answers[-1] > 0 else population
    seen = _gini(rate[None], share)[0]
    rng = np.random.default_rng([seed, 5])
    drawn = _gini(rng.binomial(nodes, rate, (draws, len(nodes))) / nodes, share)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    gini = Estimate(float(seen), max(0.0, float(2 * seen - high)), max(0.0, float(2 * seen - low)))
    return Inequality(gini, population.tolist(), answers.tolist())


def _gini(rate: Floats, share: Floats) -> Floats:
    """Of every row of accuracies (rows, groups): Σ_ij s_i s_j |r_i - r_j| / (2 mean)."""
    order = np.argsort(rate, axis=1, kind="stable")
    rate, share = np.take_along_axis(rate, order, 1), share[order]
    before = np.cumsum(share, 1) - share / 2
    mean = (rate * share).sum(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        gini = (2 * (rate * share * before).sum(1) - mean) / mean
    return np.where((mean > 0) & (gini > _ROUNDING), gini, 0.0)


def worst_nodes(
    loss: Floats, low: npt.NDArray[np.bool_] | None, draws: int, seed: int, level: float = 0.95
) -> list[WorstNodes]:
    """The mean loss of the worst 1, 5 and 10 per cent (conditional value at risk).

    ``low`` marks the low-degree nodes, where these are asked about. The worst α n of the nodes may
    end within a node; it then counts in part. The intervals are percentiles of Poisson draws.
    """
    order = np.argsort(-loss, kind="stable")
    nodes = len(loss)
    # In a draw the worst α n come from the worst 2 α n or so; no need to draw the others.
    reach = min(nodes, int(1.5 * PERCENTS[-1] / 100 * nodes) + 200)
    top = loss[order[:reach]].astype(np.float32).astype(np.float64)

    def draw(rng: np.random.Generator, rows: int) -> Floats:
        weights = poisson(rng, (rows, reach)).astype(np.float64)
        upto, total = np.cumsum(weights, 1), np.cumsum(weights * top, 1)
        return np.stack([_tail(upto, total, top, p / 100 * nodes) for p in PERCENTS], 1)

    rows = min(draws, max(1, (1 << 20) // reach))
    drawn = np.concatenate(in_blocks(draw, draws, reach, (seed, 6), rows))
    ends = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
    ones = np.arange(1.0, reach + 1)[None]
    sums, everything = np.cumsum(loss[order[:reach]])[None], float(loss.sum())
    found = []
    for index, percent in enumerate(PERCENTS):
        size = percent / 100 * nodes
        if size < 1:
            continue
        mean = float(_tail(ones, sums, loss[order[:reach]], size)[0])
        whole = math.ceil(size)
        found.append(
            WorstNodes(
                percent,
                whole,
                Estimate(mean, float(ends[0, index]), float(ends[1, index])),
                100 * mean * size / everything if everything > 0 else math.nan,
                math.nan if low is None else 100 * _share(low, loss, order, whole),
                math.nan if low is None else 100 * float(low.mean()),
            )
        )
    return found


def _share(low: npt.NDArray[np.bool_], loss: Floats, order: Ints, size: int) -> float:
    """The share of ``low`` among the ``size`` worst, of nodes of equal loss each as likely."""
    last = loss[order[size - 1]]
    worse, tied = loss > last, loss == last
    left = size - int(worse.sum())
    return (float(low[worse].sum()) + left * float(low[tied].mean())) / size


def _tail(upto: Floats, total: Floats, loss: Floats, size: float) -> Floats:
    """The mean of the first ``size`` of each row, given cumulated weights and weighted losses."""
    rows = np.arange(len(upto))
    last = np.minimum((upto < size).sum(1), upto.shape[1] - 1)
    short = size - upto[rows, last]  # negative: the last node counts in part
    mean: Floats = (total[rows, last] + short * loss[last]) / size
    return mean
