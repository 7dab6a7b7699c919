"""The search of ``auto``: what it trains, in which order, and what it has trained so far."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from torch_geometric.data import Data

from ..._core.errors import RawlsError
from ..._core.progress import ProgressCallback
from ..._core.text import plural
from ...graphs.notes import GraphFacts
from ...methods import Inputs, Method, Settings, find_method
from ...training import Job, TrainedRun, train_runs
from .pool import (
    BEST_SETTINGS,
    LABEL_SMOOTHING,
    POOL,
    RUNS_OF_SETTING,
    Candidate,
    Member,
    WeightedMean,
    grid,
    ranked,
    require_members,
    seeds_of,
    train_member,
)
from .selection import Judge
from .students import MOST_ROWS, SHARES, confident_nodes, pseudo_labeled
from .time_estimate import TimeEstimate
from .tuned_gcn import BEST_RUNS, TUNED_GCN, tuned_gcn_settings

#: Members that get students, and how many of its best settings a student is trained with.
WITH_STUDENTS, SETTINGS_OF_STUDENT = 2, 2


class Step(NamedTuple):
    """A member to be trained: its kind, by which its time is estimated, and what of."""

    kind: str
    candidate: Candidate
    settings: list[Settings]
    inputs: Inputs
    options: dict[str, Any]


@dataclass
class Search:
    """One call of ``auto``, and what it has trained so far.

    ``gcn`` is the GCN that was tuned with as many runs as the pool; ``skipped`` are the members
    for which there was no time, ``failed`` those that cannot be trained on this graph, by reason.
    """

    graph: Data
    inputs: Inputs
    judge: Judge
    seed: int
    members: list[Member] = field(default_factory=list)
    teacher: WeightedMean | None = None
    gcn: Member | None = None
    notes: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    failed: dict[str, list[str]] = field(default_factory=dict)
    began: float = field(default_factory=time.perf_counter)

    def candidates(self, transferable: bool) -> list[Candidate]:
        """What is trained on this graph."""
        structural = GraphFacts.of(self.graph).structural_features
        if transferable and structural:
            raise RawlsError(
                "a graph without node features gives no model for another graph: leave out "
                "transferable (--transferable), or give features"
            )
        usable = [each.instead if transferable and each.instead else each for each in POOL]
        return [each for each in usable if not (each.compares_features and structural)]

    def run(
        self,
        candidates: Sequence[Candidate],
        baseline: bool,
        deadline: float,
        progress: ProgressCallback | None,
    ) -> bool:
        """Train the members, students of the best and a GCN; return whether it was interrupted."""
        self.estimate = TimeEstimate(progress, self._costs(candidates, baseline), deadline)
        try:
            for step in self._steps(candidates, baseline):
                self._train(step)
        except KeyboardInterrupt:
            if not self.members:
                raise
            self.notes.append(
                "training was interrupted: the answer is the best of what was finished by then "
                f"({plural(len(self.members), 'model')})."
            )
            return True
        return False

    def _train(self, step: Step) -> None:
        """Do a step, unless the time is over and there is something to choose from."""
        name, inputs = step.candidate.name, step.inputs
        if self.members and time.perf_counter() > self.estimate.deadline:
            self.skipped.append(name)
            self.estimate.skip(step.kind)
            return

        def train(
            method: Method, jobs: Sequence[Job], progress: ProgressCallback
        ) -> list[TrainedRun]:
            return train_runs(method, inputs, jobs, progress=progress)[0]

        with self.estimate.step(name, step.kind) as progress:
            how = {"progress": progress, **step.options}
            try:
                made = train_member(step.candidate, step.settings, train, self.judge, **how)
            except RawlsError as error:  # its input cannot be made of this graph
                self.failed.setdefault(str(error), []).append(name)
                return
        if made is None:
            self.notes.append(f"{name}: training diverged with every setting.")
        elif step.candidate is TUNED_GCN:
            self.gcn = made
        else:
            self.members.append(made)

    def _steps(self, candidates: Sequence[Candidate], baseline: bool) -> Iterator[Step]:
        seeds = seeds_of(self.seed)
        once, both = {"seeds": seeds[:1]}, {"seeds": seeds[:1], "again": seeds[1:]}
        for each in candidates:
            yield Step(each.method, each, grid(each), self.inputs, both)
        require_members(self.members, self.failed)
        self.teacher = WeightedMean.best(self.members, self.judge)
        teacher, inputs = self.teacher.probabilities, self.inputs
        best = [each for each in ranked(self.members) if each.candidate.method != "gcn"]
        for share in SHARES:
            degree, train = inputs.degree.cpu(), inputs.train.cpu()
            nodes = confident_nodes(teacher, degree, train, share, self.seed)
            labeled = pseudo_labeled(inputs, teacher, nodes)
            for member in best[:WITH_STUDENTS]:
                student, settings = student_of(member, share)
                yield Step("student", student, settings, labeled, once)
        if baseline:
            how = {"seeds": seeds, "best": BEST_RUNS}
            yield Step(TUNED_GCN.method, TUNED_GCN, tuned_gcn_settings(), self.inputs, how)

    def _costs(
        self, candidates: Sequence[Candidate], baseline: bool
    ) -> Iterator[tuple[str, float]]:
        """What the steps cost: as many runs as they train, of a student on more rows."""
        again = BEST_SETTINGS * (RUNS_OF_SETTING - 1)
        for each in candidates:
            yield each.method, len(grid(each)) + again
        labeled = max(1, len(self.inputs.train))
        for share in SHARES:
            rows = labeled + min(MOST_ROWS, share * (self.inputs.num_nodes - labeled))
            for _ in range(WITH_STUDENTS):
                yield "student", SETTINGS_OF_STUDENT * rows / labeled
        if baseline:
            usual = find_method(TUNED_GCN.method).defaults.hidden_channels
            widths = [settings.hidden_channels / usual for settings in tuned_gcn_settings()]
            # About half of a run's time grows with the width.
            yield "gcn", RUNS_OF_SETTING * sum((1 + width) / 2 for width in widths)


def student_of(member: Member, share: float) -> tuple[Candidate, list[Settings]]:
    """The student of a member by a share of pseudo-labels, with the member's best settings."""
    student = replace(
        member.candidate,
        name=f"{member.name}, student {share:.0%}",
        changes=member.candidate.changes | {"label_smoothing": LABEL_SMOOTHING},
        student=True,
    )
    tried = list(dict.fromkeys((run.lr, run.weight_decay) for run in member.runs))
    best = tried[:SETTINGS_OF_STUDENT]
    return student, [student.settings(lr=lr, weight_decay=decay) for lr, decay in best]
