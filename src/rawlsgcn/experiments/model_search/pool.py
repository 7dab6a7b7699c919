"""The pool and its rival, a tuned GCN: what is trained, and how a member is made of its runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor

from ..._core.progress import ProgressCallback, no_progress
from ...methods import Inputs, Method, Settings, find_method
from ...methods.ensemble import EnsembleRun
from ...training import Job, TrainedRun, train_runs
from ...training.whole_graph import PartialProgress
from .selection import Judge, greedy_weights

RATES = (0.05, 0.01, 0.005)
DECAYS = (5e-4, 5e-5, 0.0)
#: What the GCN to compare with is tuned over, besides the rates; it is the mean of its best runs.
RIVAL_DECAYS, RIVAL_WIDTHS, RIVAL_DROPOUTS = (5e-3, 5e-4, 5e-5, 0.0), (64, 256), (0.5, 0.8)
RIVAL_RUNS = 6
#: Of students, and of the model of the adjacency matrix, which is otherwise too sure of itself.
LABEL_SMOOTHING = 0.1
#: A member is the mean of the runs of its best settings, each with so many seeds. All settings are
#: tried with the first seed, only the best ones with the others.
BEST_SETTINGS, RUNS_OF_SETTING = 3, 2
#: Steps in which the progress of a run is reported.
_STEPS = 1000
TrainRuns = Callable[[Method, Sequence[Job], ProgressCallback], list[TrainedRun]]
"""Trains runs of a method: its arguments are the method, the jobs and the progress."""


@dataclass(frozen=True)
class Candidate:
    """What a member is trained as.

    Attributes:
        name: A short name for tables.
        method: The name of the method.
        changes: The settings in which it differs from the method's defaults.
        transferable: Whether the trained model can be used on another graph.
        student: Whether it learns from pseudo-labels too.
        instead: What is trained in its place if the model shall be used on another graph.
    """

    name: str
    method: str
    changes: dict[str, Any]
    transferable: bool = True
    student: bool = False
    instead: Candidate | None = None

    @property
    def compares_features(self) -> bool:
        """Whether it needs features that nodes have in common."""
        return "min_degree" in self.changes or self.changes.get("features") == "tf-idf"

    def settings(self, **changes: Any) -> Settings:
        """Return the settings of its runs, with further changes."""
        return find_method(self.method).configure({**self.changes, **changes})


_LIFTED = {"min_degree": 10}
_TF_IDF = {"features": "tf-idf"}
_ADJACENCY = {"inputs": "adjacency", "label_smoothing": LABEL_SMOOTHING}
_OWN = Candidate("own and balanced", "smoothed-mlp", {"inputs": "both"})
GCN = Candidate("GCN", "gcn", {})
#: What is trained, in this order; the reasons are in docs/auto.md.
POOL = (
    GCN,
    Candidate("smoothed", "smoothed-mlp", {"normalization": "renormalized"}),
    Candidate("balanced", "smoothed-mlp", {}),
    Candidate("balanced, tf-idf", "smoothed-mlp", _TF_IDF),
    Candidate("adjacency", "smoothed-mlp", _ADJACENCY, transferable=False, instead=_OWN),
    Candidate("lifted", "smoothed-mlp", _LIFTED),
    Candidate("lifted, tf-idf", "smoothed-mlp", _LIFTED | _TF_IDF),
)


@dataclass(frozen=True, eq=False)
class Member:
    """A trained member of the pool.

    Attributes:
        candidate: What it was trained as.
        probabilities: Its class probabilities, (nodes, classes): the mean of its runs.
        runs: The settings of the runs that it consists of.
        states: Their weights.
        loss: The calibrated cross entropy on the validation nodes.
        rank: What members are ordered by, see :meth:`Judge.rank`.
        trained: The number of runs that were trained for it.
        seconds: What the training took.
        notes: Remarks for the user about how it was trained.
    """

    candidate: Candidate
    probabilities: Tensor
    runs: tuple[Settings, ...]
    states: tuple[dict[str, Tensor], ...]
    loss: float
    rank: tuple[float, float]
    trained: int
    seconds: float
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        candidate: Candidate,
        kept: Sequence[tuple[Job, TrainedRun]],
        judge: Judge,
        trained: int,
        started: float,
    ) -> Member:
        """The mean of those ``kept`` of the runs that were ``trained`` since ``started``."""
        jobs, runs = zip(*kept, strict=True)
        mean = torch.stack([run.logits.softmax(-1) for run in runs]).mean(0)
        return cls(
            candidate,
            mean,
            tuple(job.settings for job in jobs),
            tuple(run.state for run in runs),
            judge.loss(mean),
            judge.rank(mean[judge.nodes].double()),
            trained,
            time.perf_counter() - started,
            runs[0].notes,
        )

    @property
    def name(self) -> str:
        """A short name for tables."""
        return self.candidate.name

    @property
    def parameters(self) -> int:
        """The numbers that must be kept for it."""
        return sum(tensor.numel() for state in self.states for tensor in state.values())

    def ensemble_runs(self, weight: float) -> list[EnsembleRun]:
        """Its runs as a part of an ensemble, in which it has the given weight."""
        share = weight / len(self.runs)
        return [EnsembleRun(self.candidate.method, settings, share) for settings in self.runs]


@dataclass(frozen=True, eq=False)
class WeightedMean:
    """Members, the first chosen one first, with weights that sum to one."""

    members: tuple[Member, ...]
    weights: tuple[float, ...]

    @classmethod
    def best(cls, members: Sequence[Member], judge: Judge) -> WeightedMean:
        """Choose members and their weights by the validation nodes: see :func:`greedy_weights`."""
        chosen = greedy_weights([each.probabilities for each in members], judge)
        return cls(tuple(members[place] for place in chosen), tuple(chosen.values()))

    @property
    def probabilities(self) -> Tensor:
        """The weighted mean of the members' class probabilities, (nodes, classes)."""
        pairs = zip(self.members, self.weights, strict=True)
        return torch.stack([weight * member.probabilities for member, weight in pairs]).sum(0)

    def weight(self, member: Member) -> float:
        """The weight of a member; 0 if it is not among them."""
        return dict(zip(self.members, self.weights, strict=True)).get(member, 0.0)

    def runs(self) -> list[EnsembleRun]:
        """The runs of all members, each with its weight."""
        pairs = zip(self.members, self.weights, strict=True)
        return [run for member, weight in pairs for run in member.ensemble_runs(weight)]

    def states(self) -> list[dict[str, Tensor]]:
        """The weights of the networks of these runs."""
        return [state for member in self.members for state in member.states]


def grid(candidate: Candidate, **changes: Any) -> list[Settings]:
    """Every rate with every decay."""
    return [
        candidate.settings(lr=lr, weight_decay=decay, **changes)
        for lr, decay in product(RATES, DECAYS)
    ]


def runs_on_graph(inputs: Inputs) -> TrainRuns:
    """Trains runs on a graph in memory."""
    return lambda method, jobs, progress: train_runs(method, inputs, jobs, progress=progress)[0]


def train_member(
    candidate: Candidate,
    settings: Sequence[Settings],
    train: TrainRuns,
    judge: Judge,
    seed: int,
    *,
    seeds: int = RUNS_OF_SETTING,
    progress: ProgressCallback = no_progress,
) -> Member | None:
    """Train a candidate with each of the settings and make a member of its best runs.

    The member is the mean of the runs of the best three settings, which alone are trained with more
    than one of the ``seeds``; None if training diverged with every setting. ``train`` may train
    fewer runs than it is asked for, the first ones.
    """
    method, started = find_method(candidate.method), time.perf_counter()
    first = [Job(each, RUNS_OF_SETTING * seed) for each in settings]
    share, later = _STEPS * len(first), _STEPS * BEST_SETTINGS * (seeds - 1)
    part = PartialProgress(progress, 0, share, share + later)
    runs = train(method, first, part)
    chosen = judge.best(runs, BEST_SETTINGS)
    if not chosen:
        return None
    again = [
        Job(settings[place], RUNS_OF_SETTING * seed + run)
        for place in chosen
        for run in range(1, seeds)
    ]
    kept = [(first[place], runs[place]) for place in chosen]
    if again:
        part = PartialProgress(progress, share, later, share + later)
        more = train(method, again, part)
        kept += [(again[place], more[place]) for place in sorted(judge.best(more, len(more)))]
        runs += more
    return Member.of(candidate, kept, judge, len(runs), started)


def rival_settings() -> list[Settings]:
    """Every rate with every decay, width and dropout that the GCN to compare with is tuned over."""
    return [
        GCN.settings(lr=lr, weight_decay=decay, hidden_channels=width, dropout=dropout)
        for width, dropout, lr, decay in product(RIVAL_WIDTHS, RIVAL_DROPOUTS, RATES, RIVAL_DECAYS)
    ]


def work_of_rival() -> float:
    """The work of :func:`train_rival`, in runs of the usual width."""
    usual = find_method(GCN.method).defaults.hidden_channels
    # About half of a run's time grows with the width.
    each = [(1 + settings.hidden_channels / usual) / 2 for settings in rival_settings()]
    return RUNS_OF_SETTING * sum(each)


def train_rival(
    inputs: Inputs, judge: Judge, seed: int, progress: ProgressCallback = no_progress
) -> Member | None:
    """Train a GCN with as many runs as the pool; None if every run diverged."""
    started = time.perf_counter()
    seeds = [RUNS_OF_SETTING * seed + run for run in range(RUNS_OF_SETTING)]
    jobs = [Job(settings, each) for settings in rival_settings() for each in seeds]
    runs = runs_on_graph(inputs)(find_method(GCN.method), jobs, progress)
    best = judge.best(runs, RIVAL_RUNS)
    kept = [(jobs[place], runs[place]) for place in best]
    return Member.of(GCN, kept, judge, len(jobs), started) if best else None
