"""``rawlsgcn doctor``: what it reports, and that it reports also where something is broken."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from rawlsgcn._core import __version__, kernels
from rawlsgcn.cli import app, doctor


def test_it_reports_versions_kernels_threads_gpu_and_data(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["doctor", "--data-root", str(tmp_path), "--json", "-"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["rawlsgcn"] == __version__
    assert report["python"].split()[0] == ".".join(map(str, sys.version_info[:3]))
    assert (report["torch"], report["numpy"]) == (torch.__version__, np.__version__)
    assert {"torch_geometric", "scipy", "gpu", "extras"} <= set(report)
    assert report["threads"].startswith(f"{torch.get_num_threads()} of ")
    assert (report["kernels"] == "compiled, in use") is (kernels.missing_reason() is None)
    assert report["datasets"] == report["problems"] == []
    assert "No problem" in result.stderr


def test_it_names_the_datasets_that_are_on_disk(tmp_path: Path) -> None:
    raw = tmp_path / "cora_ml" / "raw"
    raw.mkdir(parents=True)
    (raw / "cora_ml.npz").write_bytes(b"")
    report, _ = doctor.examine(tmp_path)
    assert report["datasets"] == ["cora-ml"]
    missing, _ = doctor.examine(tmp_path / "none")
    assert missing["data_root"].endswith("(no such folder)")


def test_it_says_why_the_kernels_are_not_in_use() -> None:
    with kernels.without_kernels():
        report, problems = doctor.examine()
    assert report["kernels"].startswith("not in use, numpy and torch compute the same")
    assert report["kernels"].endswith("they are switched off here")
    assert not problems  # everything works, slower


def test_a_torch_that_cannot_be_imported_is_a_problem_and_not_a_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert "Problem: torch cannot be imported" in result.stdout
    assert "Traceback" not in result.output


def test_the_name_of_the_user_is_not_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    report, _ = doctor.examine(tmp_path / "data")
    assert report["data_root"] == "~/data (no such folder)"


def test_the_extras_are_those_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        "torch>=2.8",
        "faiss-cpu>=1.8; extra == 'ann'",
        "rawlsgcn[report]; extra == 'cli'",
        "typer>=0.20; extra == 'cli'",
        "no-such-package>=1; extra == 'report'",
        "rawlsgcn[cli,report]; extra == 'all'",
        "pytest>=8; extra == 'dev'",
    ]
    monkeypatch.setattr(doctor, "requires", lambda name: lines)
    extras = doctor.examine()[0]["extras"]
    assert extras["cli"] == "installed"
    assert extras["report"] == "without no-such-package"
    assert set(extras) == {"ann", "cli", "report"}
