"""The benchmark of the commands at scale: its page, its projection, and what the docs say of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
pytest.importorskip("benchmarks", reason="not run from a clone")
from benchmarks.scale import page, projection  # noqa: E402
from benchmarks.scale.phases import PHASES, Folders, digest, phases, written  # noqa: E402
from benchmarks.scale.records import read_records  # noqa: E402
from rawlsgcn._core.errors import RawlsError  # noqa: E402

KEPT = ROOT / "results" / "scale"


def record(arcs: int) -> dict[str, Any]:
    spent = {"seconds": arcs / 1e6, "processor_seconds": 1.0, "peak_memory_mb": 1000.0}
    return {
        "nodes": arcs // 10,
        "arcs": arcs,
        "features": 100,
        "device": "cpu",
        "machine": {"processor": "P", "threads": 2, "gpu": None, "torch": "2"},
        "made_by": "python -m benchmarks.scale",
        "phases": {name: dict(spent) for name in PHASES},
        "rivals": {},
    }


def test_the_page_of_the_kept_records_is_theirs() -> None:
    written_page = (KEPT / "README.md").read_text(encoding="utf-8")
    assert written_page == page.page(read_records(KEPT), page._readings(KEPT))


def test_the_page_names_the_command_of_every_row() -> None:
    records = [
        record(arcs) | {"made_by": made} for arcs, made in ((10, "a"), (100, "a"), (999, "b"))
    ]
    lines = page.page(records, []).splitlines()
    assert "- 10; 100 arcs: `a`" in lines
    assert "- 999 arcs: `b`" in lines


def test_ten_million_nodes_took_what_the_docs_say() -> None:
    kept = json.loads((KEPT / "100000000-cpu.json").read_text(encoding="utf-8"))
    used = [kept["phases"][name] for name in ("shard", "balance", "smooth", "train")]
    seconds = sum(phase["seconds"] for phase in used)
    memory = max(phase["peak_memory_mb"] for phase in used) * 2**20 / 1e9
    text = " ".join((ROOT / "docs" / "scale.md").read_text(encoding="utf-8").split())
    said = re.search(r"train take (\d+) s together on two cores, at most ([\d.]+) GB", text)
    assert said is not None
    assert (said[1], said[2]) == (f"{seconds:.0f}", f"{memory:.1f}")
    assert seconds < 2400
    assert memory < 8
    assert all(phase["after_a_kill"]["killed"] for phase in used)


def test_half_of_the_machines_take_twice_the_time_to_compute() -> None:
    lines = {
        count: projection.projection(
            record(10**8), projection.Size(), projection.Machines(count=count)
        )
        for count in (8, 16)
    }
    smooth = {
        count: next(line for line in each if "| smooth" in line) for count, each in lines.items()
    }
    assert smooth[8] != smooth[16]
    # 100 s for 1e8 arcs on two cores: 2e11 arcs on 512 cores are 781 s.
    assert "| 13 min |" in smooth[16]
    assert "| 26 min |" in smooth[8]


def test_every_phase_has_a_command_and_an_answer(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    assert tuple(phases(1000, folders, "8GB", "cpu", 2)) == PHASES
    folders.shards.mkdir()
    (folders.shards / "00000-scale.npy").write_bytes(b"1")
    (folders.shards / "00000-x.npy").write_bytes(b"2")
    assert written("balance", folders) == [folders.shards / "00000-scale.npy"]
    assert written("shard", folders) == [folders.shards / "00000-x.npy"]
    assert digest(written("shard", folders)) != digest(written("balance", folders))


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "100-cpu.json").write_text("{}")
    with pytest.raises(RawlsError, match="is not a record of this benchmark"):
        read_records(tmp_path)
