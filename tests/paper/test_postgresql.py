"""Two processes on one PostgreSQL storage share the studies and do no cell twice."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState

from rawlsgcn.paper.plan import Plan
from rawlsgcn.paper.reproduction import reproduce, unfinished


def program(name: str) -> str:
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    found = shutil.which(name, path=os.pathsep.join([*map(str, places), os.environ["PATH"]]))
    if found is None:
        pytest.skip(f"PostgreSQL is not installed: there is no {name}")
    return found


@pytest.fixture
def postgresql() -> Iterator[str]:
    """A server of its own on loopback; it refuses to run as root, so root runs it as nobody."""
    pytest.importorskip("psycopg2", reason="psycopg2, PostgreSQL's driver, is not installed")
    initdb, server = program("initdb"), program("postgres")
    folder = Path(tempfile.mkdtemp(prefix="rawlsgcn-postgresql-"))
    user: dict[str, Any] = {}
    if os.getuid() == 0:
        shutil.chown(folder, "nobody")
        user = {"user": "nobody", "extra_groups": []}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = folder / "data"
    words = [initdb, "-D", data, "-U", "rawlsgcn", "-A", "trust", "-E", "UTF8", "--no-sync"]
    made = subprocess.run(words, capture_output=True, text=True, cwd=folder, check=False, **user)
    assert made.returncode == 0, made.stderr
    words = [server, "-D", data, "-k", folder, "-h", "127.0.0.1", "-p", str(port), "-F"]
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen(words, stdout=log, stderr=log, cwd=folder, **user)
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert running.poll() is None, (folder / "log").read_text()
            time.sleep(0.05)
        yield f"postgresql://rawlsgcn@127.0.0.1:{port}/postgres"
    finally:
        running.send_signal(signal.SIGINT)  # a fast shutdown, which waits for no client
        running.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
def test_two_processes_share_a_study(
    tmp_path: Path,
    tiny: Plan,
    results: dict[str, Any],
    postgresql: str,
    child: Any,
    figures: Any,
) -> None:
    def work(name: str) -> None:
        reproduce(tiny, tmp_path / name, storage=postgresql, resume=True, device="cpu")

    processes = [child(lambda name=name: work(name)) for name in ("one", "two")]
    assert [process.wait() for process in processes] == [0, 0]

    storage = postgresql.replace("://", "+psycopg2://")
    done: Counter[tuple[str, str]] = Counter()
    workers = set()
    for name in optuna.get_all_study_names(storage):
        for trial in optuna.load_study(study_name=name, storage=storage).trials:
            if trial.state == TrialState.COMPLETE:
                done[name, trial.user_attrs["point"]] += 1
                workers.add(trial.user_attrs["worker"]["pid"])
            else:
                # The second trial of a point, where both enqueued it, was pruned before it was
                # trained, or nobody has asked for it.
                assert trial.state in (TrialState.PRUNED, TrialState.WAITING)
                assert "record" not in trial.user_attrs
    assert set(done.values()) == {1}
    assert workers == {process.pid for process in processes}
    again = reproduce(tiny, tmp_path / "three", storage=postgresql, resume=True, device="cpu")
    assert unfinished(again, tiny) == ([], [])
    assert figures(again) == figures(results)
