r"""The verdict on a cell: what we got beside what the paper prints.

With our mean m and the printed one m', their standard deviations s and s' over n and n' = 5 runs,
:math:`d = |m - m'|` and the standard error of that difference
:math:`e = \sqrt{s^2 / (n - 1) + s'^2 / (n' - 1)}` (the deviations are those of the population):

- **disagreement is shown** where :math:`d > \max(2 \sqrt{s^2 + s'^2}, \text{margin})`, the margin
  being 1.0 point of accuracy or 15 % of the printed bias. The cell is *better* (accuracy higher, or
  bias lower) or *differs*.
- **agreement is shown** where :math:`d + 2e \le \Delta`: not even the end of the difference's
  interval is as far off as a difference that matters, which is 2.0 points of accuracy, or a
  factor of two between the biases, :math:`\Delta = \min(m, m')`. The cell is *reproduced*.
- else the spread is too wide to tell the two apart, and the cell is *inconclusive*.

Hence no reproduced cell is off by more than two points or a factor of two, whatever its spread; and
one run alone, whose spread is not known, reproduces nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

REPRODUCED, BETTER, DIFFERS, INCONCLUSIVE = "reproduced", "better", "differs", "inconclusive"
DIVERGED, NEW = "diverged", "new"
"""``diverged``: a run of ours ended in NaN or infinity. ``new``: the paper prints no number there
(out of memory, or not one of its cells)."""
PRINTED_VERDICTS = (REPRODUCED, BETTER, DIFFERS, INCONCLUSIVE, DIVERGED)
"""What a figure that the paper prints can be called."""

ACCURACY_POINTS = 1.0
BIAS_SHARE = 0.15
DEVIATIONS = 2.0
RELEVANT_POINTS = 2.0
RELEVANT_FACTOR = 2.0
ERRORS = 2.0
PRINTED_RUNS = 5

RULE = (
    f"Verdicts: better or differs where ours is more than {DEVIATIONS:g} combined standard "
    f"deviations and more than {ACCURACY_POINTS:.1f} point of accuracy or "
    f"{100 * BIAS_SHARE:g} % of bias away from the printed figure; reproduced where it is not, and "
    f"the difference with {ERRORS:g} of its standard errors is at most {RELEVANT_POINTS:.1f} "
    f"points of accuracy or a factor of {RELEVANT_FACTOR:g} of bias; inconclusive where the "
    "spread is too wide to show either; new where the paper prints no number."
)
"""The rule in a sentence, for notes beside tables."""

Figure = tuple[float | None, float | None]


def accuracy(ours: Figure, paper: Sequence[float] | None, runs: int = PRINTED_RUNS) -> str:
    """Judge a mean accuracy and its deviation over ``runs`` runs, in per cent."""
    if paper is None:
        return NEW
    return _verdict(ours, paper, runs, ACCURACY_POINTS, RELEVANT_POINTS, higher_is_better=True)


def bias(ours: Figure, paper: Sequence[float] | None, runs: int = PRINTED_RUNS) -> str:
    """Judge a mean bias and its deviation over ``runs`` runs."""
    if paper is None:
        return NEW
    relevant = (RELEVANT_FACTOR - 1) * min(paper[0], paper[0] if ours[0] is None else ours[0])
    return _verdict(ours, paper, runs, BIAS_SHARE * paper[0], relevant, higher_is_better=False)


def _verdict(
    ours: Figure,
    paper: Sequence[float],
    runs: int,
    margin: float,
    relevant: float,
    higher_is_better: bool,
) -> str:
    mean, deviation = ours
    if mean is None or deviation is None or not math.isfinite(mean + deviation):
        return DIVERGED
    printed, printed_deviation = paper
    away = mean - printed
    if abs(away) > max(DEVIATIONS * math.hypot(deviation, printed_deviation), margin):
        return BETTER if (away > 0) == higher_is_better else DIFFERS
    if runs < 2:
        return INCONCLUSIVE
    error = math.hypot(
        deviation / math.sqrt(runs - 1), printed_deviation / math.sqrt(PRINTED_RUNS - 1)
    )
    return REPRODUCED if abs(away) + ERRORS * error <= relevant else INCONCLUSIVE


def exactly(ours: float | None, paper: float | None) -> str:
    """For counts: of parameters, nodes, edges."""
    if paper is None:
        return NEW
    return REPRODUCED if ours == paper else DIFFERS


def cost(ours: float, paper: float | None) -> str:
    """For seconds and memory, which depend on the machine: within 15 %, or less, or more."""
    if paper is None:
        return NEW
    if abs(ours - paper) <= BIAS_SHARE * paper:
        return REPRODUCED
    return BETTER if ours < paper else DIFFERS


def judged(chosen: Mapping[str, Any], paper: Mapping[str, Any]) -> dict[str, str]:
    """The verdicts on accuracy and bias."""
    return {
        name: rule(
            (chosen[name]["mean"], chosen[name]["std"]), paper.get(name), len(chosen[name]["runs"])
        )
        for name, rule in (("accuracy", accuracy), ("bias", bias))
    }


def verdicts(
    protocol: str, chosen: Mapping[str, Any], paper: Mapping[str, Any] | None
) -> dict[str, str]:
    """The verdicts on what a protocol compares with the paper; the fair one is not in it."""
    if protocol == "fair":
        return {}
    if protocol == "efficiency":
        printed_cell = paper or {}
        return {
            "parameters": exactly(chosen["parameters"], printed_cell.get("parameters")),
            "memory_mb": cost(chosen["peak_memory_mb"], printed_cell.get("memory_mb")),
            "training_seconds": cost(
                chosen["training_seconds"], printed_cell.get("training_seconds")
            ),
        }
    return judged(chosen, paper or {})


def judged_again(results: dict[str, Any]) -> dict[str, Any]:
    """The same figures with the verdicts of today's rule, whatever the rule was when kept."""
    for cell in results["cells"]:
        for chosen in cell["chosen"].values():
            if chosen is not None:
                chosen["verdict"] = verdicts(cell["protocol"], chosen, cell["paper"])
    return results
