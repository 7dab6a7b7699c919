"""The rival of ``auto``: a GCN tuned with as many runs, and the mean of its best six."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from torch import Tensor

from ..._core.progress import ProgressCallback, no_progress
from ...methods import Inputs, Settings, find_method
from ...methods.ensemble import EnsembleRun
from ...training import Job, train_runs
from .judge import Judge
from .pool import RATES, RUNS_OF_SETTING

DECAYS = (5e-3, 5e-4, 5e-5, 0.0)
WIDTHS, DROPOUTS = (64, 256), (0.5, 0.8)
#: Runs that the answer is the mean of.
BEST_RUNS = 6


class TunedGCN(NamedTuple):
    """The runs with the highest validation accuracy, their weights, and how many were trained."""

    runs: list[EnsembleRun]
    states: list[dict[str, Tensor]]
    trained: int


def gcn_settings() -> list[Settings]:
    """Every rate with every decay, width and dropout."""
    return [
        find_method("gcn").configure(
            {"lr": lr, "weight_decay": decay, "hidden_channels": width, "dropout": dropout}
        )
        for width, dropout, lr, decay in product(WIDTHS, DROPOUTS, RATES, DECAYS)
    ]


def work_of_gcn() -> float:
    """The work of :func:`train_gcn`, in runs of the usual width."""
    usual = find_method("gcn").defaults.hidden_channels
    # About half of a run's time grows with the width.
    each = [(1 + settings.hidden_channels / usual) / 2 for settings in gcn_settings()]
    return RUNS_OF_SETTING * sum(each)


def train_gcn(
    inputs: Inputs, judge: Judge, seed: int, progress: ProgressCallback = no_progress
) -> TunedGCN | None:
    """Train the GCN with every setting and two seeds; None if every run diverged."""
    jobs = [
        Job(settings, RUNS_OF_SETTING * seed + run)
        for settings in gcn_settings()
        for run in range(RUNS_OF_SETTING)
    ]
    runs, _ = train_runs(find_method("gcn"), inputs, jobs, progress=progress)
    best = judge.best(runs, BEST_RUNS)
    if not best:
        return None
    each = [EnsembleRun("gcn", jobs[place].settings, 1 / len(best)) for place in best]
    return TunedGCN(each, [runs[place].state for place in best], len(jobs))
