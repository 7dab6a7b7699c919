"""Two 'machines', network namespaces with a cable between them: the same answers as one process."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "two_machines.py"
ROW_TRAINING = ROOT / "tests" / "training" / "smoothed" / "test_row_training.py"


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


tool = loaded(TOOL) if TOOL.exists() else None
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(tool is None, reason="not run from a clone"),
    pytest.mark.skipif(tool is not None and bool(tool.missing()), reason="needs namespaces"),
]


def test_gradients_are_those_of_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tool is not None
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests"))  # the script imports a module of it
    with tool.TwoMachines() as machines:
        machines.torchrun([str(ROW_TRAINING), str(tmp_path)])
    rows = loaded(ROW_TRAINING)
    one = rows.share_of_two(rows.DistributedContext())
    for rank in range(2):
        two = np.load(tmp_path / f"{rank}.npz")
        assert np.abs(two["gradients"] - one["gradients"]).max() < 1e-10
        assert abs(int(two["own"]) - one["own"] / 2) <= 10


def test_a_worker_lost_in_each_phase_changes_nothing(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, str(TOOL), "--nodes", "60000"],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)},
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for phase in ("balance", "smooth", "train"):
        assert f"two machines: {phase}, 1 worker killed" in ran.stdout
