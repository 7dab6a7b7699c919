"""Fixtures of the paper's tests: a tiny plan that has been run, and processes to be killed."""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("optuna")

from rawlsgcn.paper.plan import Plan
from rawlsgcn.paper.reproduction import reproduce

TINY = Plan(
    parts=("effectiveness", "fair", "ablation"),
    datasets=("synthetic",),
    methods=("gcn", "rawlsgcn-graph", "rawlsgcn-grad", "redress"),
    seeds=(0, 1),
    quick=True,
    changes={"epochs": 1},
    values=2,
)


@pytest.fixture(scope="session")
def tiny() -> Plan:
    """Two values of each grid, two seeds, one epoch, on the synthetic graph."""
    return TINY


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tiny plan, run without interruption."""
    out = tmp_path_factory.mktemp("paper") / "out"
    reproduce(TINY, out, device="cpu", command="rawlsgcn reproduce <all> & more")
    return out


@pytest.fixture(scope="session")
def results(finished: Path) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads((finished / "results.json").read_text(encoding="utf-8"))
    return kept


@pytest.fixture(scope="session")
def figures() -> Callable[[dict[str, Any]], list[Any]]:
    """A function that returns the cells and claims of results without what they cost."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            costs = ("seconds", "peak_memory_mb")
            return {name: plain(each) for name, each in value.items() if name not in costs}
        return [plain(each) for each in value] if isinstance(value, list) else value

    return lambda results: [plain(results["cells"]), plain(results["claims"])]


class Child:
    """A process that does something and ends; a fork, because loading torch takes long."""

    def __init__(self, action: Callable[[], object]) -> None:
        sys.stdout.flush()
        self.pid = os.fork()
        if not self.pid:
            status = 1
            try:
                action()
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        self.status: int | None = None

    def ended(self) -> bool:
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status is not None

    def wait(self) -> int:
        if self.status is None:
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.status

    def kill(self) -> None:
        if not self.ended():
            os.kill(self.pid, signal.SIGKILL)
            self.wait()


@pytest.fixture(scope="session")
def child() -> type[Child]:
    return Child
