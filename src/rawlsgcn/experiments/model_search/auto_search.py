"""``auto``: the best classifier for a graph out of a pool, chosen by its validation nodes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real

from torch import Tensor
from torch_geometric.data import Data

from ..._core.argument_checks import whole_number
from ..._core.errors import RawlsError
from ..._core.progress import ProgressCallback
from ..._core.random_state import kept_random_state
from ..._core.text import plural
from ..._core.threads import fork_safe_threads
from ...graphs.notes import GraphFacts
from ...graphs.splits import evaluate_on, missing_classes
from ...methods import Inputs, Settings
from ..fitting import checked, prepare_inputs
from .answer import SearchState
from .pool import (
    BEST_SETTINGS,
    LABEL_SMOOTHING,
    POOL,
    RUNS_OF_SETTING,
    Candidate,
    Member,
    WeightedMean,
    grid,
    runs_on_graph,
    train_member,
    train_rival,
    work_of_rival,
)
from .result import AutoResult
from .selection import Judge
from .students import MOST_ROWS, SHARES, PseudoLabels
from .time_estimate import Cost, TimeEstimate

#: Members that get students, and how many of its best settings a student is trained with.
WITH_STUDENTS, SETTINGS_OF_STUDENT = 2, 2
#: With fewer validation nodes than this a note says so.
FEW_NODES = 30


@fork_safe_threads()
def auto(
    graph: Data | str,
    *,
    seed: int = 0,
    device: str = "auto",
    evaluate: str = "test",
    transferable: bool = False,
    baseline: bool = False,
    time_limit: float | None = None,
    progress: ProgressCallback | None = None,
) -> AutoResult:
    """Train a pool of models and return the best, chosen by the validation nodes.

    The pool has a GCN and MLPs on smoothed features (:mod:`rawlsgcn.methods.smoothed_mlp`). They
    are judged by their cross entropy on the validation nodes after temperature scaling. The best
    are trained again as students, on their own confident predictions for nodes of every degree.
    The answer is a weighted mean of members, with the weights that lower that loss most.

    Args:
        graph: A torch_geometric ``Data``, a networkx graph, or the name of a dataset.
        seed: Decides everything random: the same seed gives the same answer.
        device: ``"cpu"``, ``"cuda"``, or ``"auto"`` for a GPU if there is one.
        evaluate: ``"test"``, or ``"all"`` for every labeled node outside training and validation.
        transferable: Leave out models that cannot be used on another graph.
        baseline: Compare with a GCN that is tuned with as many runs as the whole pool; otherwise
            with the GCN of the pool. See ``result.baseline``.
        time_limit: Start nothing new after so many seconds, and use what there is by then. The
            answer then depends on the speed of the machine.
        progress: Called with the seconds spent, the estimated seconds in total (0 while they are
            not known) and what is trained.

    Returns:
        A result like that of :func:`rawlsgcn.fit`, of one run, with a :attr:`leaderboard`.

    Raises:
        RawlsError: If the graph or an argument is not valid, or the graph has no labeled validation
            nodes.

    Example:
        >>> import rawlsgcn as rg
        >>> best = rg.auto(rg.synthetic(300), time_limit=1)
        >>> best.leaderboard.columns[0]
        'member'
    """
    seed = whole_number(seed, "seed")
    if seed >= 2**62:
        raise RawlsError(f"a seed must be less than 2^62, {seed} is not")
    is_number = isinstance(time_limit, Real) and not isinstance(time_limit, bool)
    if time_limit is not None and not (is_number and time_limit > 0):
        raise RawlsError(f"time_limit must be a positive number of seconds, not {time_limit!r}")
    clean = evaluate_on(checked(graph), evaluate)
    nodes = (clean.val_mask & (clean.y >= 0)).nonzero().view(-1)
    inputs = prepare_inputs(clean, Settings(), device)
    search = Search(clean, inputs, Judge(nodes, clean.y[nodes]), seed)
    if len(nodes) < FEW_NODES:
        search.notes.append(
            f"everything is chosen by {plural(len(nodes), 'validation node')}, too few to tell "
            "good models apart: use more."
        )
    search.notes += missing_classes(clean)
    deadline = math.inf if time_limit is None else search.began + float(time_limit)
    with kept_random_state():
        search.run(search.candidates(transferable), baseline, deadline, progress)
        try:
            return search.result()
        except KeyboardInterrupt:  # all is trained: only a second one ends it
            if search.interrupted:
                raise
            return search.result()


@dataclass
class Search(SearchState):
    """One call of ``auto``: the members so far, and what is left to do."""

    estimate: TimeEstimate = field(init=False)
    interrupted: bool = False

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
    ) -> None:
        """Train the members, then students of the best, then the GCN to compare with."""
        self.estimate = TimeEstimate(progress, self._costs(candidates, baseline), deadline)
        try:
            for candidate in candidates:
                self._train_member(candidate, grid(candidate), self.inputs, candidate.method)
            if not self.members and self.failed:
                raise RawlsError(next(iter(self.failed)))
            if not self.members:
                raise RawlsError(
                    "nothing can be chosen: training diverged with every model; look for features "
                    "that are very large"
                )
            self.teacher = WeightedMean.best(self.members, self.judge)
            self._train_students(self.teacher.probabilities)
            if baseline:
                train = partial(train_rival, self.inputs, self.judge, self.seed)
                self.gcn = self._train("GCN to compare with", "gcn", train)
        except KeyboardInterrupt:
            if not self.members:
                raise
            self.interrupted = True
            self.notes.append(
                "training was interrupted: the answer is the best of what was finished by then "
                f"({plural(len(self.members), 'model')})."
            )

    def _costs(self, candidates: Sequence[Candidate], baseline: bool) -> list[Cost]:
        """What the steps cost: as many runs as they train, of a student on more rows."""
        again = BEST_SETTINGS * (RUNS_OF_SETTING - 1)
        costs = [Cost(each.method, len(grid(each)) + again) for each in candidates]
        labeled = max(1, len(self.inputs.train))
        for share in SHARES:
            rows = labeled + min(MOST_ROWS, share * (self.inputs.num_nodes - labeled))
            work = SETTINGS_OF_STUDENT * rows / labeled
            costs += WITH_STUDENTS * [Cost("student", work)]
        return costs + baseline * [Cost("gcn", work_of_rival())]

    def _train_students(self, probabilities: Tensor) -> None:
        degree = self.inputs.degree.cpu()
        ordered = sorted(self.members, key=lambda member: member.rank)
        best = [member for member in ordered if member.candidate.method != "gcn"]
        for share in SHARES:
            labels = PseudoLabels.of(
                probabilities, degree, self.inputs.train.cpu(), share, self.seed
            )
            inputs = labels.inputs(self.inputs)
            for member in best[:WITH_STUDENTS]:
                candidate = replace(
                    member.candidate,
                    name=f"{member.name}, student {share:.0%}",
                    changes=member.candidate.changes | {"label_smoothing": LABEL_SMOOTHING},
                    student=True,
                )
                tried = dict.fromkeys((run.lr, run.weight_decay) for run in member.runs)
                best_settings = list(tried)[:SETTINGS_OF_STUDENT]
                settings = [
                    candidate.settings(lr=lr, weight_decay=decay) for lr, decay in best_settings
                ]
                self._train_member(candidate, settings, inputs, "student", seeds=1)

    def _train_member(
        self,
        candidate: Candidate,
        settings: list[Settings],
        inputs: Inputs,
        kind: str,
        seeds: int = RUNS_OF_SETTING,
    ) -> None:
        how = (candidate, settings, runs_on_graph(inputs), self.judge, self.seed)
        member = self._train(candidate.name, kind, partial(train_member, *how, seeds=seeds))
        self.members += [] if member is None else [member]

    def _train(self, name: str, kind: str, train: Callable[..., Member | None]) -> Member | None:
        """Do one step, unless the time is over and there is something to choose from."""
        if self.members and time.perf_counter() > self.estimate.deadline:
            self.skipped.append(name)
            self.estimate.skip(kind)
            return None
        self.estimate.begin(name, kind)
        member = None
        try:
            member = train(progress=self.estimate.within)
            if member is None:
                self.notes.append(f"{name}: training diverged with every setting.")
        except RawlsError as error:  # its input cannot be made of this graph
            self.failed.setdefault(str(error), []).append(name)
        self.estimate.end()
        return member
