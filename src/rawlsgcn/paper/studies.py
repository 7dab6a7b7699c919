"""The results of each cell, kept in an Optuna study with one trial for each grid point.

A worker enqueues a point that nobody has trained, with the point's key as a user attribute, asks
for the next trial of the queue, and tells its value when its figures are written. Of two workers
that enqueue the same point the first trial counts, and the other is pruned before it is trained.

A running trial whose worker has ended (see :mod:`.heartbeats`) is marked as failed, and its point
is enqueued again. If the worker was only slow, its result is ignored.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from .._core.errors import RawlsError, missing_extra
from .heartbeats import abandoned, this_worker
from .plan import Cell, score

try:
    import optuna
    from optuna.distributions import BaseDistribution, CategoricalDistribution
    from optuna.exceptions import UpdateFinishedTrialError
    from optuna.trial import TrialState
except ImportError as error:
    raise missing_extra("reproducing the paper", "reproduce") from error

optuna.logging.set_verbosity(optuna.logging.ERROR)


@dataclass(frozen=True)
class StudyContent:
    """What a study holds, by the key of the grid point.

    ``failed`` has the reason and the time of the latest failure; ``waiting`` are enqueued.
    """

    quick: bool
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    nodes: dict[str, str] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)
    waiting: set[str] = field(default_factory=set)
    failed: dict[str, tuple[str, float]] = field(default_factory=dict)


class Studies:
    """The studies under one storage URL, which processes on several machines may share."""

    def __init__(self, url: str) -> None:
        # The driver that the extra installs, whichever SQLAlchemy would choose by itself.
        url = re.sub(r"^postgres(ql)?://", "postgresql+psycopg2://", url)
        self._storage, self._shown = _open(url), _without_password(url)
        self._opened: dict[str, optuna.Study] = {}

    def check(self, cells: Sequence[Cell], resume: bool) -> None:
        """Raise an error for studies made with other settings, or where ``resume`` is needed."""
        for cell, kept in self._fingerprints(cells):
            if kept != cell.fingerprint:
                raise RawlsError(_mismatch(cell, kept, self._shown))
            if not resume:
                raise RawlsError(
                    f"{self._shown} already has results of these cells: add --resume to continue "
                    "with them, or choose another --out or --storage"
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
        content = StudyContent(bool(study.user_attrs.get("quick")))
        for trial in study.get_trials(deepcopy=False):
            attributes, state = trial.user_attrs, trial.state
            key = attributes.get("point")
            if key is None:
                continue
            if state == TrialState.COMPLETE:
                content.records[key] = attributes["record"]
                if "nodes" in attributes:
                    content.nodes[key] = attributes["nodes"]
            elif state == TrialState.WAITING:
                content.waiting.add(key)
            elif state == TrialState.RUNNING and abandoned(trial):
                _end(study, trial.number, TrialState.FAIL)
            elif state == TrialState.RUNNING:
                content.running.add(key)
            elif "reason" in attributes and trial.datetime_complete is not None:
                content.failed[key] = attributes["reason"], trial.datetime_complete.timestamp()
        return content

    def claim(self, cell: Cell, limit: int, since: float) -> list[optuna.Trial]:
        """Claim up to ``limit`` points that nobody trained, is training, or saw fail ``since``."""
        study, claimed = self._study(cell), list[optuna.Trial]()
        while len(claimed) < limit:
            content = self.read(cell)
            taken = {*content.records, *content.running}
            taken |= {key for key, (_, when) in content.failed.items() if when >= since}
            points = cell.points(content.quick, content.records)
            point = next((each for each in points if each.key not in taken), None)
            if point is None:
                break
            if point.key not in content.waiting:
                attributes = {"point": point.key, "worker": this_worker()}
                study.enqueue_trial(dict(point.values), user_attrs=attributes)
            if (trial := _ask(study, cell)) is not None:
                claimed.append(trial)
        return claimed


def _ask(study: optuna.Study, cell: Cell) -> optuna.Trial | None:
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
            taken |= other.state == TrialState.COMPLETE or (earlier and not abandoned(other))
    if taken:
        _end(study, trial.number, TrialState.PRUNED)
    return None if taken else trial


def finish(trial: optuna.Trial, record: Mapping[str, Any], nodes: str | None) -> bool:
    """Store a point's figures; False where the trial had been given up as abandoned."""
    kept = {"record": dict(record)} | ({} if nodes is None else {"nodes": nodes})
    with suppress(UpdateFinishedTrialError):
        for name, value in kept.items():
            trial.set_user_attr(name, value)
        reached = score(record, "validation_accuracy")
        return _end(trial.study, trial.number, TrialState.COMPLETE, reached)
    return False


def fail(trial: optuna.Trial, reason: str | None = None) -> None:
    """End a trial that could not be trained; without a ``reason`` it may be trained again."""
    with suppress(UpdateFinishedTrialError):
        if reason is not None:
            trial.set_user_attr("reason", reason)
        _end(trial.study, trial.number, TrialState.FAIL)


def _end(study: optuna.Study, number: int, state: TrialState, value: float | None = None) -> bool:
    """End a trial; False where it had ended otherwise before."""
    try:
        return study.tell(number, value, state, skip_if_finished=True).state == state
    except UpdateFinishedTrialError:
        return False


def _open(url: str) -> optuna.storages.RDBStorage:
    # SQLite lets one process write at a time: the others wait for it.
    options = {"connect_args": {"timeout": 120}} if url.startswith("sqlite") else {}
    shown, attempts = _without_password(url), 10
    while True:
        try:
            return optuna.storages.RDBStorage(url, engine_kwargs=options)
        except ImportError as error:
            raise missing_extra(f"the storage {shown}", "reproduce") from error
        except Exception as error:
            attempts -= 1
            signs = ("already exists", "duplicate key", "unique constraint")
            if attempts and any(sign in str(error).lower() for sign in signs):
                time.sleep(0.2)  # another process created the tables at the same time
                continue
            reason = " ".join(str(error).partition("(Background on")[0].split())
            raise RawlsError(
                f"the storage {shown} cannot be used ({reason or type(error).__name__}): give "
                "--storage a URL such as sqlite:///studies.db or postgresql://user@host/database"
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
