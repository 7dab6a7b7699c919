"""The pool: what is trained, and how a member is made of its runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import torch
from torch import Tensor

from ..._core.errors import RawlsError
from ..._core.progress import ProgressCallback, no_progress
from ...methods import Method, Settings, find_method
from ...methods.ensemble import EnsembleRun, joined_states
from ...training import Job, TrainedRun
from ...training.whole_graph import PartialProgress
from .selection import Judge, Losses, greedy_weights

RATES = (0.05, 0.01, 0.005)
DECAYS = (5e-4, 5e-5, 0.0)
#: Of students, and of the model of the adjacency matrix, which is otherwise too sure of itself.
LABEL_SMOOTHING = 0.1
#: A member is the mean of the runs of its best settings, each with so many seeds. All settings are
#: tried with the first seed, only the best ones with the others.
BEST_SETTINGS, RUNS_OF_SETTING = 3, 2
#: Steps in which the progress of a run is reported.
_STEPS = 1000
TrainRuns = Callable[[Method, Sequence[Job], ProgressCallback], list[TrainedRun]]


@dataclass(frozen=True)
class Candidate:
    """What a member is trained as: a method, and the settings that differ from its defaults.

    ``instead`` is trained in its place if the model shall be used on another graph.
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
    """A trained member of the pool: the mean of the best of the runs that were ``trained``.

    The settings of these runs are ``runs``, their weights ``states``.
    """

    candidate: Candidate
    probabilities: Tensor
    runs: tuple[Settings, ...]
    states: tuple[dict[str, Tensor], ...]
    losses: Losses
    trained: int
    seconds: float
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """A short name for tables."""
        return self.candidate.name


@dataclass(frozen=True, eq=False)
class WeightedMean:
    """Members, the first chosen one first, with weights that sum to one."""

    weights: dict[Member, float]

    @classmethod
    def best(cls, members: Sequence[Member], judge: Judge) -> WeightedMean:
        """Choose members and their weights by the validation nodes: see :func:`greedy_weights`."""
        chosen = greedy_weights([each.probabilities for each in members], judge)
        return cls({members[place]: weight for place, weight in chosen.items()})

    @cached_property
    def probabilities(self) -> Tensor:
        """The weighted mean of the members' class probabilities, (nodes, classes)."""
        each = [weight * member.probabilities for member, weight in self.weights.items()]
        return torch.stack(each).sum(0)

    def runs(self) -> list[EnsembleRun]:
        """The runs of all members as those of an ensemble, each with its weight."""
        return [
            EnsembleRun(member.candidate.method, settings, weight / len(member.runs))
            for member, weight in self.weights.items()
            for settings in member.runs
        ]

    def state(self) -> dict[str, Tensor]:
        """The weights of the networks of these runs."""
        return joined_states(state for member in self.weights for state in member.states)


def grid(candidate: Candidate) -> list[Settings]:
    """Every rate with every decay."""
    return [candidate.settings(lr=lr, weight_decay=decay) for lr, decay in product(RATES, DECAYS)]


def seeds_of(seed: int) -> list[int]:
    """The seeds of the runs of a search: those of another search are others."""
    return [RUNS_OF_SETTING * seed + run for run in range(RUNS_OF_SETTING)]


def ranked(members: Iterable[Member]) -> list[Member]:
    """The members, the one with the lowest loss first."""
    return sorted(members, key=lambda each: each.losses.rank)


def require_members(members: Sequence[Member], failed: Iterable[str] = ()) -> None:
    """Raise an error if there is nothing to choose from: the first reason, if there is one."""
    if not members:
        diverged = (
            "nothing can be chosen: training diverged with every model; look for features that "
            "are very large"
        )
        raise RawlsError(next(iter(failed), diverged))


def train_member(
    candidate: Candidate,
    settings: Sequence[Settings],
    train: TrainRuns,
    judge: Judge,
    seeds: Sequence[int],
    *,
    again: Sequence[int] = (),
    best: int = BEST_SETTINGS,
    progress: ProgressCallback = no_progress,
) -> Member | None:
    """Train a candidate with each of the settings and ``seeds``, and make a member of the best.

    The member is the mean of the ``best`` runs, whose settings alone are trained with the seeds
    ``again`` too; None if training diverged with every setting. ``train`` may train fewer runs than
    it is asked for, the first ones.
    """
    method, started = find_method(candidate.method), time.perf_counter()
    jobs = [Job(each, seed) for each in settings for seed in seeds]
    share, later = _STEPS * len(jobs), _STEPS * best * len(again)
    runs = train(method, jobs, PartialProgress(progress, 0, share, share + later))
    kept = judge.best(runs, best)
    if kept and again:
        more = [Job(jobs[place].settings, seed) for place in kept for seed in again]
        further = train(method, more, PartialProgress(progress, share, later, share + later))
        kept += [len(runs) + place for place in sorted(judge.best(further, len(further)))]
        jobs, runs = jobs[: len(runs)] + more, runs + further
    if not kept:
        return None
    chosen = [runs[place] for place in kept]
    mean = torch.stack([run.logits.softmax(-1) for run in chosen]).mean(0)
    return Member(
        candidate,
        mean,
        tuple(jobs[place].settings for place in kept),
        tuple(run.state for run in chosen),
        judge.losses(mean),
        len(runs),
        time.perf_counter() - started,
        chosen[0].notes,
    )
