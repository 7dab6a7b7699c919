"""A killed run goes on from its last stage, ends in the same files and leaves nothing behind."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.graphs.shards.feature_files import FeatureFiles
from rawlsgcn.graphs.shards.shard_writer import ShardWriter
from rawlsgcn.graphs.shards.shards import Shards
from rawlsgcn.graphs.streaming import build_shards
from rawlsgcn.graphs.streaming import synthetic_shards as module
from rawlsgcn.graphs.streaming.build_shards import WAITING
from rawlsgcn.graphs.streaming.synthetic_shards import synthetic_shards
from rawlsgcn.graphs.streaming.unfinished import unfinished_folder


def draw(folder: Path, **changes: Any) -> Shards:
    settings: dict[str, Any] = {"num_nodes": 2000, "average_degree": 8, "features": 30}
    return synthetic_shards(folder, 3, **(settings | changes))


def contents(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def killed(*arguments: Any, **options: Any) -> None:
    raise KeyboardInterrupt


#: What is interrupted, and the stages that need not be done again.
INTERRUPTED = [
    (build_shards, "sort_arcs", set()),
    (ShardWriter, "write_nodes", {"arcs", "features"}),
    (FeatureFiles, "add", {"arcs"}),
    (ShardWriter, "finish", {"arcs", "features"}),
    (build_shards, "_move_files", {"arcs", "features"}),
    (build_shards, "Shards", set()),
]


@pytest.mark.parametrize(("where", "name", "kept"), INTERRUPTED)
def test_an_interrupted_run_goes_on(
    where: Any, name: str, kept: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw(tmp_path / "whole")
    folder = tmp_path / "shards"
    with monkeypatch.context() as patch:
        patch.setattr(where, name, killed)
        with pytest.raises(KeyboardInterrupt):
            draw(folder)
    with monkeypatch.context() as patch:
        for stage, function in (("arcs", "_arcs"), ("features", "_features")):
            if stage in kept:
                patch.setattr(module, function, killed)
        draw(folder)
    assert contents(folder) == contents(tmp_path / "whole")
    assert {path.name for path in tmp_path.iterdir()} == {"whole", "shards"}


def test_another_command_begins_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(ShardWriter, "finish", killed)
        with pytest.raises(KeyboardInterrupt):
            draw(tmp_path / "shards", seed=1)
    draw(tmp_path / "shards", seed=2)
    draw(tmp_path / "whole", seed=2)
    assert contents(tmp_path / "shards") == contents(tmp_path / "whole")
    assert {path.name for path in tmp_path.iterdir()} == {"whole", "shards"}


def test_a_kill_after_the_swap_leaves_the_finished_folder_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of the unfinished folder are linked into the finished one."""
    folder, real = tmp_path / "shards", shutil.rmtree

    def killed_at_the_end(path: Path, **options: Any) -> None:
        if path.name == ".shards-unfinished":
            raise KeyboardInterrupt
        real(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", killed_at_the_end)
        with pytest.raises(KeyboardInterrupt):
            draw(folder)
    before = contents(folder)
    assert (tmp_path / ".shards-unfinished").exists()
    with monkeypatch.context() as patch:
        patch.setattr(ShardWriter, "finish", killed)
        with pytest.raises(KeyboardInterrupt):
            draw(folder)
    assert contents(folder) == before
    draw(folder)
    assert contents(folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["shards"]


def test_a_disk_without_links_moves_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(build_shards.os, "link", refuse)
    draw(tmp_path / "moved")
    monkeypatch.undo()
    draw(tmp_path / "linked")
    assert contents(tmp_path / "moved") == contents(tmp_path / "linked")
    assert {path.name for path in tmp_path.iterdir()} == {"moved", "linked"}


def test_an_unfinished_folder_that_is_damaged_is_an_error_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(ShardWriter, "finish", killed)
        with pytest.raises(KeyboardInterrupt):
            draw(tmp_path / "shards")
    (tmp_path / ".shards-unfinished" / "shards" / "00001-row_start.npy").unlink()
    with pytest.raises(RawlsError, match="cannot write into"):
        draw(tmp_path / "shards")
    assert len(draw(tmp_path / "shards")) == 3


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="kills with SIGKILL")
def test_kills_at_any_moment_change_nothing(tmp_path: Path) -> None:
    options = "--dataset synthetic --nodes 60000 --average-degree 8 --num-features 60 --count 3"
    command = [sys.executable, "-m", "rawlsgcn", "shard", *options.split(), "--memory"]
    refused = [*command, "1MB", "--out", str(tmp_path / "none")]
    said = subprocess.run(refused, capture_output=True, text=True, check=False).stderr
    command.append(said.split("--memory ")[1].split(")")[0])  # the least, so that runs are many
    started = time.monotonic()
    subprocess.run([*command, "--out", str(tmp_path / "whole")], check=True)
    seconds = time.monotonic() - started
    for number in range(5):
        run = subprocess.Popen([*command, "--out", str(tmp_path / "shards")])
        time.sleep(seconds * (0.5 + 0.1 * number))
        run.send_signal(signal.SIGKILL)
        run.wait()
        if (tmp_path / "shards").exists():
            assert contents(tmp_path / "shards") == contents(tmp_path / "whole")
    subprocess.run([*command, "--out", str(tmp_path / "shards")], check=True)
    assert contents(tmp_path / "shards") == contents(tmp_path / "whole")
    assert {path.name for path in tmp_path.iterdir()} == {"whole", "shards"}


def test_a_run_waits_for_another_and_leaves_its_files_alone(tmp_path: Path) -> None:
    """The other one removes the folder at its end, while this one waits for its lock."""
    expected = contents(draw(tmp_path / "alone").folder)
    other = ExitStack()
    other.enter_context(unfinished_folder(tmp_path / "s", {"other": 1}, lambda: None))
    hidden = tmp_path / ".s-unfinished"
    said: list[str] = []

    def watch(done: int, total: int, what: str) -> None:
        said.append(what)
        if what == WAITING and said.count(WAITING) == 3:
            assert (hidden / "command.json").exists()
            other.close()

    assert contents(draw(tmp_path / "s", progress=watch).folder) == expected
    assert said.count(WAITING) == 3
    assert not hidden.exists()
