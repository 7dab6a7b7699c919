"""Where results are kept: an Optuna study for each cell, a trial for each point of its grid.

A point is asked for by adding a running trial that names its owner, in one transaction; of
several such trials of a point the first counts and the others step back. It is told when its
figures are written. What a dead process had asked for is taken over; nothing told is repeated.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._core.errors import RawlsError, missing_extra
from .plan import Cell, Point, score
from .workers import BEAT_SECONDS, dead, this_process

try:
    import optuna
    from optuna.distributions import CategoricalDistribution
    from optuna.exceptions import DuplicatedStudyError, UpdateFinishedTrialError
    from optuna.study import StudyDirection
    from optuna.trial import TrialState, create_trial
except ImportError as error:
    raise missing_extra("reproducing the paper", "reproduce") from error

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

optuna.logging.set_verbosity(optuna.logging.ERROR)


@dataclass(frozen=True)
class Claim:
    """A point that this process works on."""

    trial_id: int
    point: Point


@dataclass(frozen=True)
class Kept:
    """What a study holds: the records by the key of their point, and the latest failures."""

    records: dict[str, dict[str, Any]]
    nodes: dict[str, dict[str, Any]]
    running: set[str]
    failed: dict[str, tuple[str, float]]
    quick: bool


class Store:
    """The studies under one storage URL, which processes on several machines may share."""

    def __init__(self, url: str) -> None:
        # The driver that the extra brings, whichever SQLAlchemy would take by itself.
        scheme, split, rest = url.partition("://")
        plain = scheme in ("postgresql", "postgres")
        self.url = url = f"postgresql+psycopg2{split}{rest}" if plain else url
        # SQLite lets one process write at a time: the others wait for it.
        waits = {"connect_args": {"timeout": 120}} if url.startswith("sqlite") else {}
        self.storage = _opened(url, waits)
        self._studies: dict[str, int] = {}

    def check(self, cells: Sequence[Cell], resume: bool) -> None:
        """Refuse studies of another version, with other settings, or not meant to be gone on."""
        made = {study.study_name: study for study in self.storage.get_all_studies()}
        for cell in cells:
            if cell.name not in made:
                continue
            kept = made[cell.name].user_attrs.get("fingerprint")
            if kept is not None and kept != cell.fingerprint:
                raise RawlsError(_mismatch(cell, kept, _hidden(self.url)))
            if not resume and kept is not None:
                raise RawlsError(
                    f"{_hidden(self.url)} already holds results of this: add --resume to go on "
                    "with them, or choose another --out or --storage"
                )

    def matching(self, cells: Sequence[Cell]) -> list[Cell]:
        """Those of ``cells`` that have a study made by this version with these settings."""
        made = {study.study_name: study for study in self.storage.get_all_studies()}
        return [
            cell
            for cell in cells
            if cell.name in made
            and made[cell.name].user_attrs.get("fingerprint") == cell.fingerprint
        ]

    def _study(self, cell: Cell) -> int:
        """The cell's study, made where there is none; how it searches is settled then."""
        if cell.name not in self._studies:
            try:
                study = self.storage.create_new_study([StudyDirection.MAXIMIZE], cell.name)
            except DuplicatedStudyError:
                study = self.storage.get_study_id_from_name(cell.name)
            # Also where another process was stopped between making the study and this.
            attributes = self.storage.get_study_user_attrs(study)
            if "quick" not in attributes:
                self.storage.set_study_user_attr(study, "quick", cell.quick)
            if "fingerprint" not in attributes:
                self.storage.set_study_user_attr(study, "fingerprint", cell.fingerprint)
            self._studies[cell.name] = study
        return self._studies[cell.name]

    def kept(self, cell: Cell) -> Kept:
        """What the cell's study holds now."""
        study = self._study(cell)
        quick = bool(self.storage.get_study_user_attrs(study).get("quick"))
        kept = Kept({}, {}, set(), {}, quick)
        for trial in self.storage.get_all_trials(study, deepcopy=False):
            key = trial.user_attrs.get("point")
            if key is None:
                continue
            if trial.state == TrialState.COMPLETE:
                kept.records[key] = trial.user_attrs["record"]
                if "nodes" in trial.user_attrs:
                    kept.nodes[key] = trial.user_attrs["nodes"]
            elif trial.state == TrialState.RUNNING and not _abandoned(trial):
                kept.running.add(key)
            elif "reason" in trial.user_attrs and trial.datetime_complete is not None:
                kept.failed[key] = trial.user_attrs["reason"], trial.datetime_complete.timestamp()
        return kept

    def claim(self, cell: Cell, kept: Kept, limit: int, since: float) -> list[Claim]:
        """Ask for at most ``limit`` points that nobody has done, is doing or saw fail ``since``."""
        taken = {*kept.records, *kept.running}
        taken |= {key for key, (_, when) in kept.failed.items() if when >= since}
        claims: list[Claim] = []
        for point in cell.points(kept.quick, kept.records):
            if len(claims) == limit:
                break
            if point.key not in taken:
                claim = self._ask(cell, point)
                claims += [] if claim is None else [claim]
        return claims

    def _ask(self, cell: Cell, point: Point) -> Claim | None:
        study = self._study(cell)
        mine = create_trial(
            state=TrialState.RUNNING,
            params=dict(point.values),
            distributions={
                name: CategoricalDistribution(tuple(values)) for name, values in cell.grid.items()
            },
            user_attrs={"point": point.key, "owner": this_process(), "beat": time.time()},
        )
        trial_id = self.storage.create_new_trial(study, template_trial=mine)
        number = self.storage.get_trial(trial_id).number
        first = True
        for trial in self.storage.get_all_trials(study, deepcopy=False):
            if trial.user_attrs.get("point") != point.key or trial.number == number:
                continue
            if trial.state == TrialState.COMPLETE:
                first = False
            elif trial.state == TrialState.RUNNING and trial.number < number:
                if _abandoned(trial):
                    other = self.storage.get_trial_id_from_study_id_trial_number(
                        study, trial.number
                    )
                    self._end(other, TrialState.FAIL)
                else:
                    first = False
        if not first:
            self._end(trial_id, TrialState.PRUNED)
            return None
        return Claim(trial_id, point)

    def finish(
        self, claim: Claim, record: Mapping[str, Any], nodes: Mapping[str, Any] | None
    ) -> bool:
        """Tell a point's figures; False where it had been taken over in the meantime."""
        try:
            self.storage.set_trial_user_attr(claim.trial_id, "record", dict(record))
            if nodes is not None:
                self.storage.set_trial_user_attr(claim.trial_id, "nodes", dict(nodes))
        except UpdateFinishedTrialError:
            return False
        value = score(record, "validation_accuracy")
        return self._end(claim.trial_id, TrialState.COMPLETE, value)

    def fail(self, claim: Claim, reason: str) -> None:
        """Record that a point could not be trained, and why."""
        try:
            self.storage.set_trial_user_attr(claim.trial_id, "reason", reason)
        except UpdateFinishedTrialError:
            return
        self._end(claim.trial_id, TrialState.FAIL)

    def release(self, claim: Claim) -> None:
        """Give a point back undone."""
        self._end(claim.trial_id, TrialState.FAIL)

    def _end(self, trial_id: int, state: TrialState, value: float | None = None) -> bool:
        try:
            values = None if value is None else [value]
            return self.storage.set_trial_state_values(trial_id, state, values)
        except UpdateFinishedTrialError:
            return False

    @contextmanager
    def beating(self, claims: Sequence[Claim]) -> Iterator[None]:
        """While it lasts, say every now and then that the claims' owner is alive."""
        stop = threading.Event()

        def beat() -> None:
            while not stop.wait(BEAT_SECONDS):
                for claim in claims:
                    try:
                        self.storage.set_trial_user_attr(claim.trial_id, "beat", time.time())
                    except UpdateFinishedTrialError:
                        continue
                    except Exception:
                        break  # a storage out of reach for a moment: the next beat tries again

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


def _opened(url: str, options: dict[str, Any]) -> optuna.storages.RDBStorage:
    for attempt in range(10):
        try:
            return optuna.storages.RDBStorage(url, engine_kwargs=options)
        except ImportError as error:
            raise missing_extra(f"the storage {_hidden(url)}", "reproduce") from error
        except Exception as error:
            if _made_meanwhile(error) and attempt < 9:
                time.sleep(0.2)
                continue
            reason = " ".join(str(error).partition("(Background on")[0].split())
            raise RawlsError(
                f"the storage {_hidden(url)} cannot be used ({reason or type(error).__name__}): "
                "give --storage a URL such as sqlite:///studies.db or "
                "postgresql://user@host/database"
            ) from error
    raise AssertionError("the last attempt returns or raises")


def _made_meanwhile(error: Exception) -> bool:
    """Whether another process made the tables at the same time: they are there now."""
    text = str(error).lower()
    return any(sign in text for sign in ("already exists", "duplicate key", "unique constraint"))


def _abandoned(trial: FrozenTrial) -> bool:
    return dead(trial.user_attrs.get("owner"), trial.user_attrs.get("beat"))


def _mismatch(cell: Cell, kept: Mapping[str, Any], where: str) -> str:
    wanted = cell.fingerprint
    end = "choose another --out or --storage"
    if kept.get("rawlsgcn") != wanted["rawlsgcn"]:
        return (
            f"the study {cell.name} in {where} was made by rawlsgcn {kept.get('rawlsgcn')}, "
            f"this is {wanted['rawlsgcn']}: {end}"
        )
    changed = [name for name in ("seeds", "grid", "settings") if kept.get(name) != wanted[name]]
    return (
        f"the study {cell.name} in {where} was made with other {' and '.join(changed)}: "
        f"use the same, or {end}"
    )


def _hidden(url: str) -> str:
    """A storage's URL without its password."""
    scheme, split, rest = url.partition("://")
    user, at, host = rest.rpartition("@")
    return f"{scheme}{split}{user.partition(':')[0]}{at}{host}"
