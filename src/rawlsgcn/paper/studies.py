"""The results of each cell, kept in an Optuna study with one trial for each grid point.

A worker enqueues a point that nobody has trained, with the point's key as a user attribute, asks
for the next trial of the queue, and tells its value when its figures are written. Of two workers
that enqueue the same point the first trial counts, and the other is pruned before it is trained.

A running trial whose worker has died (:mod:`.heartbeats`) is marked as failed, and its point is
enqueued again. If the worker was only slow, its result is ignored.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._core.errors import RawlsError, missing_extra
from .heartbeats import abandoned, this_worker
from .plan import Cell, Point, score

try:
    import optuna
    from optuna.distributions import BaseDistribution, CategoricalDistribution
    from optuna.exceptions import UpdateFinishedTrialError
    from optuna.trial import TrialState
except ImportError as error:
    raise missing_extra("reproducing the paper", "reproduce") from error

optuna.logging.set_verbosity(optuna.logging.ERROR)


@dataclass(frozen=True)
class Claim:
    """A grid point that this process trains, and its trial."""

    study: optuna.Study
    trial: optuna.Trial
    point: Point


@dataclass(frozen=True)
class StudyContent:
    """What a study holds, by the key of the grid point.

    ``failed`` has the reason and the time of the latest failure; ``waiting`` are enqueued.
    """

    records: dict[str, dict[str, Any]]
    nodes: dict[str, dict[str, Any]]
    running: set[str]
    waiting: set[str]
    failed: dict[str, tuple[str, float]]
    quick: bool


class Studies:
    """The studies under one storage URL, which processes on several machines may share."""

    def __init__(self, url: str) -> None:
        # The driver that the extra installs, whichever SQLAlchemy would choose by itself.
        self.url = re.sub(r"^postgres(ql)?://", "postgresql+psycopg2://", url)
        self._storage = _open(self.url)
        self._opened: dict[str, optuna.Study] = {}

    def check(self, cells: Sequence[Cell], resume: bool) -> None:
        """Raise an error for studies made with other settings, or where ``resume`` is needed."""
        for cell, kept in self._fingerprints(cells):
            if kept != cell.fingerprint:
                raise RawlsError(_mismatch(cell, kept, _without_password(self.url)))
            if not resume:
                raise RawlsError(
                    f"{_without_password(self.url)} already has results of these cells: add "
                    "--resume to continue with them, or choose another --out or --storage"
                )

    def existing(self, cells: Sequence[Cell]) -> list[Cell]:
        """Return the cells that have a study made by this version with the same settings."""
        return [cell for cell, kept in self._fingerprints(cells) if kept == cell.fingerprint]

    def _fingerprints(self, cells: Sequence[Cell]) -> Iterator[tuple[Cell, dict[str, Any]]]:
        summaries = optuna.get_all_study_summaries(self._storage, include_best_trial=False)
        kept = {each.study_name: each.user_attrs.get("fingerprint") for each in summaries}
        for cell in cells:
            if (fingerprint := kept.get(cell.name)) is not None:
                yield cell, fingerprint

    def _study(self, cell: Cell) -> optuna.Study:
        """Open a cell's study; its settings and way of searching are fixed when it is created."""
        if cell.name not in self._opened:
            study = self._opened[cell.name] = optuna.create_study(
                storage=self._storage,
                study_name=cell.name,
                direction="maximize",
                load_if_exists=True,
                sampler=optuna.samplers.RandomSampler(),  # all values come from the queue
            )
            # Also where another process was stopped between creating the study and this.
            known = study.user_attrs
            for name, value in (("quick", cell.quick), ("fingerprint", cell.fingerprint)):
                if name not in known:
                    study.set_user_attr(name, value)
        return self._opened[cell.name]

    def read(self, cell: Cell) -> StudyContent:
        """Read a cell's study, and mark its abandoned trials as failed."""
        study = self._study(cell)
        content = StudyContent({}, {}, set(), set(), {}, bool(study.user_attrs.get("quick")))
        for trial in study.get_trials(deepcopy=False):
            attributes = trial.user_attrs
            key = attributes.get("point")
            if key is None:
                continue
            if trial.state == TrialState.COMPLETE:
                content.records[key] = attributes["record"]
                if "nodes" in attributes:
                    content.nodes[key] = attributes["nodes"]
            elif trial.state == TrialState.WAITING:
                content.waiting.add(key)
            elif trial.state == TrialState.RUNNING:
                if abandoned(trial):
                    _tell(study, trial.number, TrialState.FAIL)
                else:
                    content.running.add(key)
            elif "reason" in attributes and trial.datetime_complete is not None:
                content.failed[key] = attributes["reason"], trial.datetime_complete.timestamp()
        return content

    def claim(self, cell: Cell, limit: int, since: float) -> list[Claim]:
        """Claim up to ``limit`` points that nobody trained, is training, or saw fail ``since``."""
        claims: list[Claim] = []
        while len(claims) < limit:
            content = self.read(cell)
            taken = {*content.records, *content.running}
            taken |= {key for key, (_, when) in content.failed.items() if when >= since}
            points = cell.points(content.quick, content.records)
            point = next((each for each in points if each.key not in taken), None)
            if point is None:
                break
            study = self._study(cell)
            if point.key not in content.waiting:
                study.enqueue_trial(
                    dict(point.values), user_attrs={"point": point.key, "worker": this_worker()}
                )
            claim = _ask(study, cell)
            if claim is not None:
                claims.append(claim)
        return claims

    def finish(
        self, claim: Claim, record: Mapping[str, Any], nodes: Mapping[str, Any] | None
    ) -> bool:
        """Store a point's figures; False where the trial had been given up as abandoned."""
        kept = {"record": dict(record)} | ({} if nodes is None else {"nodes": dict(nodes)})
        value = score(record, "validation_accuracy")
        return _keep(claim.trial, **kept) and _tell(
            claim.study, claim.trial, TrialState.COMPLETE, value
        )

    def beat(self, claims: Sequence[Claim]) -> None:
        """Write a heartbeat into running trials."""
        for claim in claims:
            _keep(claim.trial, worker=this_worker())

    def fail(self, claim: Claim, reason: str | None = None) -> None:
        """End a trial that could not be trained; without a ``reason`` it may be trained again."""
        if reason is None or _keep(claim.trial, reason=reason):
            _tell(claim.study, claim.trial, TrialState.FAIL)


def _ask(study: optuna.Study, cell: Cell) -> Claim | None:
    """Take the next trial of the queue; None where its point is taken already."""
    grid: dict[str, BaseDistribution] = {
        name: CategoricalDistribution(tuple(values)) for name, values in cell.grid.items()
    }
    try:
        trial = study.ask(grid)
        trial.set_user_attr("worker", this_worker())
    except UpdateFinishedTrialError:  # another worker took it for abandoned
        return None
    key = trial.user_attrs.get("point")
    taken = key is None  # the queue was empty, so that Optuna created a trial of its own
    for other in study.get_trials(deepcopy=False):
        if other.user_attrs.get("point") == key and other.number != trial.number:
            earlier = other.state == TrialState.RUNNING and other.number < trial.number
            if other.state == TrialState.COMPLETE or (earlier and not abandoned(other)):
                taken = True
    if taken:
        _tell(study, trial, TrialState.PRUNED)
        return None
    return Claim(study, trial, Point.from_key(str(key)))


def _keep(trial: optuna.Trial, **attributes: Any) -> bool:
    """Keep attributes with a trial; False where it had ended before."""
    try:
        for name, value in attributes.items():
            trial.set_user_attr(name, value)
    except UpdateFinishedTrialError:
        return False
    return True


def _tell(
    study: optuna.Study,
    trial: optuna.Trial | int,
    state: TrialState,
    value: float | None = None,
) -> bool:
    """End a trial; False where it had ended otherwise before."""
    try:
        return study.tell(trial, value, state, skip_if_finished=True).state == state
    except UpdateFinishedTrialError:
        return False


def _open(url: str) -> optuna.storages.RDBStorage:
    # SQLite lets one process write at a time: the others wait for it.
    options = {"connect_args": {"timeout": 120}} if url.startswith("sqlite") else {}
    attempts = 10
    while True:
        try:
            return optuna.storages.RDBStorage(url, engine_kwargs=options)
        except ImportError as error:
            raise missing_extra(f"the storage {_without_password(url)}", "reproduce") from error
        except Exception as error:
            attempts -= 1
            signs = ("already exists", "duplicate key", "unique constraint")
            if attempts and any(sign in str(error).lower() for sign in signs):
                time.sleep(0.2)  # another process created the tables at the same time
                continue
            reason = " ".join(str(error).partition("(Background on")[0].split())
            raise RawlsError(
                f"the storage {_without_password(url)} cannot be used "
                f"({reason or type(error).__name__}): give --storage a URL such as "
                "sqlite:///studies.db or postgresql://user@host/database"
            ) from error


def _mismatch(cell: Cell, kept: Mapping[str, Any], where: str) -> str:
    wanted = cell.fingerprint
    changed = [
        f"other {name}" for name in ("seeds", "grid", "settings") if kept.get(name) != wanted[name]
    ]
    if kept.get("rawlsgcn") != wanted["rawlsgcn"]:
        changed = [f"rawlsgcn {kept.get('rawlsgcn')} (this is {wanted['rawlsgcn']})"]
    return (
        f"the study {cell.name} in {where} was made with {' and '.join(changed)}: use the same, or "
        "choose another --out or --storage"
    )


def _without_password(url: str) -> str:
    return re.sub(r"(://[^:]*):.*@", r"\1@", url)
