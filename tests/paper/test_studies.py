"""Studies: what is finished stays, what was killed is done again, nothing is done twice."""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.paper import workers
from rawlsgcn.paper.heartbeats import GRACE_SECONDS
from rawlsgcn.paper.plan import Cell, Plan
from rawlsgcn.paper.reproduction import reproduce, unfinished
from rawlsgcn.paper.studies import Studies, fail, finish

RECORD = {"values": {}, "runs": {"validation_accuracy": [1.0], "accuracy": [1.0]}}


def url(out: Path) -> str:
    return f"sqlite:///{out / 'studies.db'}"


def complete(storage: str) -> list[tuple[str, str, Any]]:
    """Study, point and time of every finished trial."""
    return [
        (name, trial.user_attrs["point"], trial.datetime_complete)
        for name in optuna.get_all_study_names(storage)
        for trial in optuna.load_study(study_name=name, storage=storage).trials
        if trial.state == TrialState.COMPLETE
    ]


@pytest.mark.slow
def test_killed_at_random_it_ends_with_the_same_table(
    tmp_path: Path, tiny: Plan, finished: Path, results: dict[str, Any], child: Any, figures: Any
) -> None:
    out, rng, before = tmp_path / "out", random.Random(0), []
    for _ in range(8):
        process = child(lambda: reproduce(tiny, out, resume=True, device="cpu"))
        wait = time.monotonic() + rng.uniform(0.1, 1.2)
        while time.monotonic() < wait and not process.ended():
            time.sleep(0.01)
        process.kill()
        if (out / "studies.db").exists():
            now = complete(url(out))
            assert set(before) <= set(now)  # nothing that was finished is lost
            before = now
    again = reproduce(tiny, out, resume=True, device="cpu")
    now = complete(url(out))
    assert set(before) <= set(now)
    points = Counter((name, point) for name, point, _ in now)
    assert set(points.values()) == {1}  # no trial twice
    assert set(points) == {(name, point) for name, point, _ in complete(url(finished))}
    assert figures(again) == figures(results)


@pytest.mark.slow
def test_a_finished_plan_is_not_run_again(
    finished: Path, tiny: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(workers, "train_points", never)
    before = complete(url(finished))
    results = reproduce(tiny, finished, resume=True, device="cpu")
    assert unfinished(results, tiny) == ([], [])
    assert complete(url(finished)) == before


def test_a_claim_is_held_by_one_and_taken_over_from_the_dead(tmp_path: Path, child: Any) -> None:
    cell = Cell("paper", "synthetic", "rawlsgcn-graph", grid={"lr": (0.1, 0.2)}, seeds=(0,))
    ours, other = Studies(url(tmp_path)), Studies(url(tmp_path))
    (first,) = ours.claim(cell, 1, 0)
    # A second worker enqueued the same point at the same time: it gets the other one.
    first.study.enqueue_trial(first.params, user_attrs={"point": first.user_attrs["point"]})
    (second,) = other.claim(cell, 1, 0)
    assert first.user_attrs["point"] != second.user_attrs["point"]
    assert other.claim(cell, 2, 0) == []
    assert finish(first, RECORD, None)
    fail(second)

    process = child(lambda: Studies(url(tmp_path)).claim(cell, 2, 0) and None)
    assert process.wait() == 0  # it died while it held the second point
    (taken,) = ours.claim(cell, 2, 0)
    assert taken.user_attrs["point"] == second.user_attrs["point"]
    states = [trial.state for trial in taken.study.trials]
    assert states.count(TrialState.PRUNED) == 1  # the duplicate
    assert states.count(TrialState.FAIL) == 2  # given back, and abandoned
    assert states.count(TrialState.WAITING) == 0


def test_a_worker_elsewhere_is_given_up_when_its_heartbeat_stops(tmp_path: Path) -> None:
    cell = Cell("paper", "synthetic", "gcn", seeds=(0,))
    studies = Studies(url(tmp_path))
    (claim,) = studies.claim(cell, 1, 0)
    worker = {"machine": "another", "pid": 2**31 - 1, "heartbeat": time.time()}
    claim.set_user_attr("worker", worker)
    assert studies.claim(cell, 1, 0) == []
    worker["heartbeat"] -= 2 * GRACE_SECONDS
    claim.set_user_attr("worker", worker)
    assert len(studies.claim(cell, 1, 0)) == 1
    assert not finish(claim, RECORD, None)


def test_what_is_left_in_the_queue_is_trained_once(tmp_path: Path) -> None:
    """A worker that was killed between enqueueing a point and asking for it."""
    cell = Cell("paper", "synthetic", "rawlsgcn-graph", grid={"lr": (0.1, 0.2)}, seeds=(0,))
    studies = Studies(url(tmp_path))
    (claim,) = studies.claim(cell, 1, 0)
    points = cell.points(False, {})
    for point in (points[1], points[1], points[0]):
        claim.study.enqueue_trial(dict(point.values), user_attrs={"point": point.key})
    (other,) = studies.claim(cell, 7, 0)
    claimed = {trial.user_attrs["point"] for trial in (claim, other)}
    assert claimed == {point.key for point in points}


def test_what_was_given_up_cannot_be_finished(tmp_path: Path) -> None:
    cell = Cell("paper", "synthetic", "gcn", seeds=(0,))
    studies = Studies(url(tmp_path))
    (claim,) = studies.claim(cell, 1, 0)
    fail(claim)
    assert not finish(claim, RECORD, None)
    assert not studies.read(cell).records


@pytest.mark.slow
def test_a_failure_is_recorded_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Plan(
        parts=("effectiveness",),
        datasets=("synthetic",),
        methods=("gcn", "rawlsgcn-graph"),
        seeds=(0,),
        changes={"epochs": 1},
        values=1,
    )
    real = workers.train_points

    def broken(cell: Cell, *rest: Any) -> Any:
        if cell.method == "gcn":
            raise RuntimeError("out of\nmemory")
        return real(cell, *rest)

    monkeypatch.setattr(workers, "train_points", broken)
    results = reproduce(plan, tmp_path / "out", device="cpu")
    cells = {cell["method"]: cell for cell in results["cells"]}
    assert cells["gcn"]["status"] == "failed"
    assert cells["gcn"]["reason"] == "out of memory"
    assert cells["rawlsgcn-graph"]["status"] == "finished"
    assert "failed: out of memory" in (tmp_path / "out" / "tables.md").read_text()
    monkeypatch.setattr(workers, "train_points", real)  # mended, it is tried again
    results = reproduce(plan, tmp_path / "out", device="cpu", resume=True)
    assert unfinished(results, plan) == ([], [])


def test_without_time_nothing_begins_and_the_rest_is_named(tmp_path: Path, tiny: Plan) -> None:
    results = reproduce(tiny, tmp_path / "out", device="cpu", budget=0)
    failed, left = unfinished(results, tiny)
    assert not failed
    assert left == [cell["name"] for cell in results["cells"]]


@pytest.mark.slow
def test_several_workers_share_the_work(
    tmp_path: Path, results: dict[str, Any], figures: Any
) -> None:
    plan = Plan(
        parts=("effectiveness",),
        datasets=("synthetic",),
        methods=("gcn", "rawlsgcn-graph"),
        seeds=(0, 1),
        changes={"epochs": 1},
        values=2,
    )
    shared = reproduce(plan, tmp_path / "out", device="cpu", workers=2)
    alone = {cell["name"]: cell for cell in figures(results)[0]}
    assert figures(shared)[0] == [alone[cell["name"]] for cell in shared["cells"]]
    points = Counter((name, point) for name, point, _ in complete(url(tmp_path / "out")))
    assert set(points.values()) == {1}


def test_bad_input_is_an_error_before_any_work(
    tmp_path: Path, tiny: Plan, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    with pytest.raises(RawlsError, match="did not write"):
        reproduce(tiny, other, device="cpu")
    assert [path.name for path in other.iterdir()] == ["thesis.txt"]

    before = (finished / "results.json").read_bytes()
    with pytest.raises(RawlsError, match="--resume"):
        reproduce(tiny, finished, device="cpu")
    changed = Plan(**{**vars(tiny), "changes": {"epochs": 3}})
    with pytest.raises(RawlsError, match="other settings"):
        reproduce(changed, finished, device="cpu", resume=True)
    fewer = Plan(**{**vars(tiny), "seeds": (0,)})
    with pytest.raises(RawlsError, match="other seeds"):
        reproduce(fewer, finished, device="cpu", resume=True)
    monkeypatch.setattr("rawlsgcn.paper.plan.__version__", "9.9")
    with pytest.raises(RawlsError, match=r"this is 9\.9"):
        reproduce(tiny, finished, device="cpu", resume=True)
    monkeypatch.undo()
    assert (finished / "results.json").read_bytes() == before

    new = tmp_path / "new"
    where = "postgresql://me:secret@127.0.0.1:9/none"
    with pytest.raises(RawlsError, match="cannot be used") as caught:
        reproduce(tiny, new, device="cpu", storage=where)
    assert "secret" not in str(caught.value)
    with pytest.raises(RawlsError, match="cannot be used"):
        reproduce(tiny, new, device="cpu", storage="nonsense")
    assert not new.exists()

    def unreachable(name: str, **_: Any) -> None:
        raise RawlsError(f"{name} cannot be downloaded")

    monkeypatch.setattr("rawlsgcn.paper.reproduction.load", unreachable)
    missing = Plan(datasets=("cora-ml",))
    with pytest.raises(RawlsError, match="nothing was run"):
        reproduce(missing, new, device="cpu", root=tmp_path / "nowhere")
    assert not new.exists()
