"""Measure one size: each command, its rivals, and the answer after a kill; one file of figures."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rawlsgcn._core.atomic_files import atomic_file
from rawlsgcn._core.errors import RawlsError

from .phases import DEGREE, FEATURES, Folders, digest, phases, written
from .processes import spend
from .rivals import LARGEST, NAMES


@dataclass(frozen=True)
class Options:
    """How each size is measured.

    Attributes:
        out: The folder of the records.
        work: Where graphs are written, and removed afterwards.
        memory: The limit that the commands are given.
        device: The device of the commands.
        count: The number of shards.
        kills: Whether every command is run again, killed once, and its answer compared.
        phases: The commands to run, of :func:`.phases.phases`.
        rivals: The names of rivals.
        command: The command line, for the record.
    """

    out: Path
    work: Path
    memory: str
    device: str
    count: int
    kills: bool
    phases: tuple[str, ...]
    rivals: tuple[str, ...]
    command: str


def measure(arcs: int, options: Options, say: Callable[[str], None]) -> dict[str, Any]:
    """Run the commands on a synthetic graph and keep the figures.

    Args:
        arcs: The number of arcs, about; a tenth as many nodes.
        options: How.
        say: Called with a line for each finished command.

    Returns:
        The record, which is also written to a file.

    Raises:
        RawlsError: If a command fails, or gives another answer after it was killed.
    """
    options.work.mkdir(parents=True, exist_ok=True)
    folders = Folders(options.work / f"{arcs}")
    shutil.rmtree(folders.root, ignore_errors=True)
    folders.root.mkdir()
    try:
        record = _measured(arcs, folders, options, say)
        record["rivals"] = _rivals(record["arcs"], folders, options, say)
    finally:
        shutil.rmtree(folders.root, ignore_errors=True)
    with atomic_file(options.out / f"{arcs}-{options.device}.json") as temporary:
        temporary.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return record


def _measured(
    arcs: int, folders: Folders, options: Options, say: Callable[[str], None]
) -> dict[str, Any]:
    nodes, log = arcs // DEGREE, folders.root / "log"
    commands = phases(nodes, folders, options.memory, options.device, options.count)
    figures: dict[str, Any] = {}
    for phase in options.phases:
        line, said = commands[phase], folders.root / f"{phase}.json"
        words = ["-m", "rawlsgcn", *line.split()]
        spent = spend([*words, *_asked(phase, said)], log)
        assert spent is not None
        figures[phase] = {"command": _shown(line, folders), **asdict(spent), **_own(said)}
        answer = digest(written(phase, folders))
        if options.kills:
            figures[phase]["after_a_kill"] = _again(phase, words, spent.seconds, folders, answer)
        say(f"{arcs:.0e} arcs, {phase}: {spent.seconds:.1f} s, {spent.peak_memory_mb:,.0f} MB")
    about = json.loads((folders.shards / "shards.json").read_text(encoding="utf-8"))
    return {
        "nodes": about["nodes"],
        "arcs": about["arcs"],
        "features": FEATURES,
        "training_rows": round(0.6 * about["nodes"]),
        "device": options.device,
        "machine": machine_of(options.device),
        "made_by": options.command,
        "phases": figures,
    }


def _asked(phase: str, file: Path) -> list[str]:
    """Ask a command for its own figures, if it has any that are wanted here."""
    return ["--json", str(file)] if phase in ("balance", "smooth", "train") else []


def _own(file: Path) -> dict[str, Any]:
    """The figures of a command that a whole process does not show."""
    if not file.exists():
        return {}
    figures = json.loads(file.read_text(encoding="utf-8"))
    names = {
        "seconds": "of_which_seconds",
        "iterations": "products",
        "blocks": "column_blocks",
        "accuracy": "accuracy",
        "low_degree_accuracy": "low_degree_accuracy",
        "epochs": "epochs",
        "peak_memory_mb": "device_memory_mb",
        "device_peak_bytes": "device_peak_bytes",
    }
    return {new: figures[name] for name, new in names.items() if figures.get(name) is not None}


def _again(
    phase: str, words: list[str], seconds: float, folders: Folders, answer: str
) -> dict[str, Any]:
    """Remove the answer, run the command, kill it at its half, run it again and compare."""
    _forget(phase, folders)
    log = folders.root / "log-after-a-kill"
    began = time.perf_counter()
    killed = spend(words, log, kill_after=max(1.0, seconds / 2)) is None
    before = time.perf_counter() - began
    spent = spend(words, log)
    assert spent is not None
    if digest(written(phase, folders)) != answer:
        raise RawlsError(f"{phase} gave another answer after it was killed")
    return {
        "killed": killed,
        "killed_after_seconds": before,
        "seconds": spent.seconds,
        "same_answer": True,
    }


def _forget(phase: str, folders: Folders) -> None:
    """Remove what a phase wrote."""
    if phase == "shard":
        shutil.rmtree(folders.shards)
    elif phase == "smooth":
        for folder in folders.shards.glob("smoothed-*"):
            shutil.rmtree(folder)
    elif phase == "train":
        shutil.rmtree(folders.model)
    else:
        for path in [*written(phase, folders), *([folders.page] if phase == "audit" else [])]:
            path.unlink()


def _rivals(
    arcs: int, folders: Folders, options: Options, say: Callable[[str], None]
) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for name in options.rivals:
        if arcs <= 1.1 * LARGEST[name]:
            log = folders.root / f"log-{name}"
            words = ["-m", "benchmarks.scale.rivals", name, str(folders.shards)]
            spent = spend(words, log)
            assert spent is not None
            seconds = json.loads(log.read_text(encoding="utf-8").splitlines()[-1])["seconds"]
            figures[name] = {
                "title": NAMES[name],
                "seconds": seconds,
                "peak_memory_mb": spent.peak_memory_mb,
            }
            say(f"{arcs:.0e} arcs, {NAMES[name]}: {seconds:.1f} s")
    return figures


def machine_of(device: str) -> dict[str, Any]:
    """Describe this machine."""
    import torch

    from rawlsgcn._core.machine import machine

    return machine(torch.device(device))


def _shown(line: str, folders: Folders) -> str:
    """The command without the folder of this run."""
    return "rawlsgcn " + line.replace(f"{folders.root}/", "")


def read_records(out: Path) -> list[dict[str, Any]]:
    """Read all records of a folder, by device and size.

    Raises:
        RawlsError: If a file is not such a record.
    """
    records = []
    for path in out.glob("[0-9]*.json"):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            record["phases"], record["arcs"], record["device"]
        except (ValueError, KeyError, TypeError) as error:
            raise RawlsError(f"{path} is not a record of this benchmark: delete it") from error
        records.append(record)
    return sorted(records, key=lambda record: (record["device"], record["arcs"]))
