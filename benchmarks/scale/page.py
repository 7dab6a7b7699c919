"""The page and the plot of the records: seconds, memory and cost per arc of every command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rawlsgcn._core.atomic_files import atomic_file
from rawlsgcn._core.memory import size_text

from .phases import PHASES
from .projection import Machines, Size, projection
from .records import read_records

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


def write(out: Path) -> None:
    """Write README.md and scale.png from all records of a folder."""
    from rawlsgcn.reporting.figures import save

    records = read_records(out)
    on_cpu = [record for record in records if record["device"] == "cpu"]
    if on_cpu:
        save(plot(on_cpu), out / "scale.png")
    with atomic_file(out / "README.md") as temporary:
        temporary.write_text(page(records, _readings(out)), encoding="utf-8")


def _readings(out: Path) -> list[dict[str, Any]]:
    """The records of reading CSV files, by their length."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in out.glob("csv-*.json")]
    return sorted(found, key=lambda record: int(record["rows"]))


def page(records: list[dict[str, Any]], readings: list[dict[str, Any]]) -> str:
    """Return the page."""
    lines = [
        "# The commands from 10⁵ to 10⁸ arcs",
        "",
        "Made by `python -m benchmarks.scale`. Every command is a process of its own: its time is",
        "that of the whole process, its memory the peak of what was resident. The graphs are drawn",
        "from the block model, ten arcs a node, 100 features, six nodes in ten for training.",
        "",
    ]
    for device in dict.fromkeys(record["device"] for record in records):
        group = [record for record in records if record["device"] == device]
        lines += _section(device, group)
    if any(record["device"] == "cpu" for record in records):
        lines += ["![Seconds and cost per arc](scale.png)", ""]
    full = [r for r in records if r["device"] == "cpu" and len(r["phases"]) == len(PHASES)]
    if full:
        lines += [
            "## Projection",
            "",
            f"Not measured: arithmetic from the record of {full[-1]['arcs']:,} arcs, as if all",
            "cores added up. What is bound by memory takes longer.",
            "",
            *projection(full[-1], Size(), Machines()),
            "",
        ]
    if readings:
        lines += [
            "## Reading edge lists",
            "",
            "| rows of CSV | file | seconds | memory | command | machine | made by |",
            "| --- | --- | --- | --- | --- | --- | --- |",
        ]
    for record in readings:
        memory = size_text(2**20 * record["peak_memory_mb"])
        lines.append(
            f"| {record['rows']:,} | {size_text(record['bytes'])} | {record['seconds']:.1f} | "
            f"{memory} | `{record['command']}` | {record['machine']['processor']} | "
            f"`{record['made_by']}` |"
        )
    return "\n".join([*lines, ""]) if readings else "\n".join(lines)


def summary(out: Path) -> list[str]:
    """Return a table of the largest record of each device in a folder: seconds and memory."""
    largest = {record["device"]: record for record in read_records(out)}
    if not largest:
        return []
    names = ("shard", "balance", "smooth", "train")
    lines = [
        f"| machine | nodes | arcs | {' | '.join(names)} | together | resident | on the device |",
        "| --- |" + " --- |" * (len(names) + 5),
    ]
    for record in largest.values():
        spent = [record["phases"][name] for name in names]
        seconds = [each["seconds"] for each in spent]
        resident = size_text(2**20 * max(each["peak_memory_mb"] for each in spent))
        gpu = record["machine"]["gpu"]
        device = size_text(max(_device_bytes(each) for each in spent)) if gpu else "-"
        lines.append(
            f"| {gpu or record['machine']['processor']} | "
            f"{record['nodes']:,} | {record['arcs']:,} | "
            f"{' | '.join(f'{each:.1f} s' for each in seconds)} | {sum(seconds):.0f} s | "
            f"{resident} | {device} |"
        )
    return [*lines, ""]


def _device_bytes(phase: dict[str, Any]) -> float:
    """The peak of a command on a GPU."""
    return float(phase.get("device_peak_bytes", 2**20 * (phase.get("device_memory_mb") or 0)))


def _section(device: str, records: list[dict[str, Any]]) -> list[str]:
    host = records[-1]["machine"]
    where = host["gpu"] or f"{host['processor']}, {host['threads']} threads"
    names = list(records[-1]["phases"])
    lines = [
        f"## {'GPU' if host['gpu'] else 'CPU'}",
        "",
        f"{where}; torch {host['torch']}.",
        "",
        *_made_by(records),
        "",
        "| arcs | " + " | ".join(names) + " | all |",
        "| --- |" + " --- |" * (len(names) + 1),
    ]
    for record in records:
        spent = [record["phases"][name] for name in names]
        cells = [f"{s['seconds']:.1f} s, {size_text(2**20 * s['peak_memory_mb'])}" for s in spent]
        lines.append(
            f"| {record['arcs']:,} | {' | '.join(cells)} | "
            f"{sum(s['seconds'] for s in spent):.0f} s |"
        )
    lines += ["", "Nanoseconds of the whole command per arc:", ""]
    lines += ["| arcs | " + " | ".join(names) + " |", "| --- |" + " --- |" * len(names)]
    for record in records:
        cells = [f"{_per_arc(record, name):,.0f}" for name in names]
        lines.append(f"| {record['arcs']:,} | {' | '.join(cells)} |")
    lines += ["", *_rivals(records), *_kills(records)]
    return lines


def _made_by(records: list[dict[str, Any]]) -> list[str]:
    """The command of every row, each command once."""
    commands: dict[str, list[str]] = {}
    for record in records:
        commands.setdefault(record["made_by"], []).append(f"{record['arcs']:,}")
    return [f"- {'; '.join(arcs)} arcs: `{made}`" for made, arcs in commands.items()]


def _per_arc(record: dict[str, Any], phase: str) -> float:
    return float(record["phases"][phase]["seconds"] / record["arcs"] * 1e9)


def _rivals(records: list[dict[str, Any]]) -> list[str]:
    if not any(record["rivals"] for record in records):
        return []
    lines = [
        "Rivals on the same shards, their reading of the graph not counted:",
        "",
        "| arcs | rival | seconds | memory |",
        "| --- | --- | --- | --- |",
    ]
    for record in records:
        for rival in record["rivals"].values():
            memory = size_text(2**20 * rival["peak_memory_mb"])
            lines.append(
                f"| {record['arcs']:,} | {rival['title']} | {rival['seconds']:.1f} | {memory} |"
            )
    return [*lines, ""]


def _kills(records: list[dict[str, Any]]) -> list[str]:
    rows = [
        (record["arcs"], name, phase["after_a_kill"])
        for record in records
        for name, phase in record["phases"].items()
        if phase.get("after_a_kill", {}).get("killed")
    ]
    if not rows:
        return []
    lines = [
        "Killed with SIGKILL and started again, the answer is the same to the last bit:",
        "",
        "| arcs | command | killed after | second run |",
        "| --- | --- | --- | --- |",
    ]
    for arcs, name, kill in rows:
        first, second = kill["killed_after_seconds"], kill["seconds"]
        lines.append(f"| {arcs:,} | {name} | {first:.1f} s | {second:.1f} s |")
    return [*lines, ""]


def plot(records: list[dict[str, Any]]) -> Picture:
    """Plot the seconds and the peak memory of each command against the number of arcs."""
    from matplotlib.figure import Figure as Picture

    picture = Picture(figsize=(10, 4), layout="constrained")
    left, right = picture.subplots(1, 2)
    arcs = [record["arcs"] for record in records]
    for name, color in zip(records[-1]["phases"], _COLORS, strict=False):
        spent = [record["phases"][name] for record in records]
        left.plot(arcs, [s["seconds"] for s in spent], "o-", color=color, label=name)
        right.plot(arcs, [s["peak_memory_mb"] / 953.7 for s in spent], "o-", color=color)
    left.set(xscale="log", yscale="log", xlabel="arcs", ylabel="seconds of the command")
    right.set(xscale="log", xlabel="arcs", ylabel="peak resident memory (GB)", ylim=(0, None))
    left.legend(frameon=False)
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    return picture
