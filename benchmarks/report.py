"""The results of the benchmark: a table for the terminal, JSON, a Markdown page and a plot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table

from rawlsgcn._core.atomic_files import atomic_file

from .scale.page import summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture


def table(figures: list[dict[str, Any]]) -> Table:
    """Return one row for each measurement: ours, the rival's, the ratio and the goal."""
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    shown.add_column("what", overflow="fold", ratio=3)
    shown.add_column("ours (s)", justify="right", no_wrap=True)
    shown.add_column("rival (s)", justify="right", no_wrap=True)
    shown.add_column("ratio", justify="right", no_wrap=True)
    shown.add_column("goal", overflow="fold", ratio=1)
    for figure in figures:
        shown.add_row(
            f"{figure['name']} — {figure['rival_name']}",
            seconds(figure["ours"]["median"]),
            seconds(figure["rival"]["median"]),
            ratio(figure["ratio"]),
            figure["goal"],
        )
    return shown


def seconds(value: float) -> str:
    return f"{value:.4f}" if value < 0.1 else f"{value:.3f}" if value < 10 else f"{value:,.1f}"


def ratio(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def markdown(results: dict[str, Any]) -> str:
    """Return the section of one run; all numbers are those of ``results``."""
    host = results["machine"]
    where = host["gpu"] or "CPU"
    lines = [
        f"## {where}: {', '.join(results['parts'])}",
        "",
        f"`{results['command']}` on {host['processor']}, {host['threads']} threads"
        + (f", {host['gpu']}" if host["gpu"] else "")
        + f"; torch {host['torch']}, Python {host['python']}"
        + (", with compiled kernels" if host.get("compiled") else "")
        + ". Medians of "
        f"{results['repeats']} repetitions or more, least and most in brackets, seconds.",
        "",
    ]
    figures = results["figures"] + _speedups(results["figures"])
    groups = dict.fromkeys(figure["group"] for figure in figures)
    for group in groups:
        rows = [figure for figure in figures if figure["group"] == group]
        lines += [
            f"### {group.capitalize()}",
            "",
            f"| what | ours | rival | ratio ({rows[0]['of']}) | goal |",
            "| --- | --- | --- | --- | --- |",
        ]
        for row in rows:
            lines.append(
                f"| {row['name']} | {_spread(row['ours'])} | {_spread(row['rival'])}: "
                f"{row['rival_name']} | {ratio(row['ratio'])} | {row['goal']} |"
            )
        lines += ["", *_notes(rows)]
    if results["training_scaling"]:
        lines += [
            "### Training at scale",
            "",
            "Five runs of RawlsGCN-Grad on synthetic graphs, 100 features.",
            "",
            "| edges | training nodes | prepare (s) | epoch (s) | microseconds per edge |",
            "| --- | --- | --- | --- | --- |",
        ]
        for row in results["training_scaling"]:
            lines.append(
                f"| {row['edges']:,} | {row['training_nodes']} | {row['prepare_seconds']:.3f} "
                f"| {seconds(row['epoch_seconds'])} | {row['microseconds_per_edge']:.4f} |"
            )
        lines.append("")
    return "\n".join(lines)


def _speedups(figures: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Smoothing on several cores beside the same on one; a goal is set for two."""
    alone = {row["name"]: row for row in figures if row["group"] == "smoothing, on one core"}
    both = [
        (row, alone[row["name"]])
        for row in figures
        if row["group"] == "smoothing" and row["name"] in alone
    ]
    return [
        {
            "group": f"smoothing, on {row['threads']} cores and on one",
            "name": row["name"],
            "ours": row["ours"],
            "rival": one["ours"],
            "rival_name": "the same on one core",
            "of": "rival / ours",
            "ratio": one["ours"]["median"] / row["ours"]["median"],
            "goal": "at least 1.6" if row["threads"] == 2 and row["goal"] else "",
            "core_nanoseconds": row.get("core_nanoseconds", []) if row["goal"] else [],
        }
        for row, one in both
    ]


def _spread(value: dict[str, Any]) -> str:
    return f"{seconds(value['median'])} ({seconds(value['low'])} to {seconds(value['high'])})"


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    notes = []
    for row in rows:
        if "prepare_seconds" in row:
            first = row.get("first_prepare_seconds")
            once = "" if first is None else f", the first time {first:.3f} s"
            notes.append(f"- {row['name']}: preparation {row['prepare_seconds']:.3f} s{once}")
        if "nanoseconds_per_nonzero" in row:
            note = f"- {row['nonzeros']:,} nonzeros: {row['nanoseconds_per_nonzero']:.1f} ns each"
            if "extra_memory_mb" in row:
                note += f"; {row['extra_memory_mb']:,.0f} MB beyond the graph, whose CSR form "
                note += f"takes {row['csr_mb']:,.0f} MB"
            notes.append(note)
        if "step_nanoseconds_per_arc" in row:
            notes.append(
                f"- {row['arcs']:,} arcs: {row['step_nanoseconds_per_arc']:.1f} ns for each in a "
                f"step, from files to files {seconds(row['seconds'])} s and a peak of "
                f"{row['peak_memory_mb']:,.0f} MB; {row['rival_name']}: a peak of "
                f"{row['rival_peak_memory_mb']:,.0f} MB"
            )
        if row["group"].endswith("cores and on one") and row["core_nanoseconds"]:
            pairs = zip(row["rival"]["samples"], row["ours"]["samples"], strict=True)
            each = [
                f"{one / both:.2f} with cores {apart:.0f} ns apart"
                for (one, both), apart in zip(pairs, row["core_nanoseconds"], strict=True)
            ]
            notes.append(f"- {row['name']}, each repetition: {', '.join(each)}")
    return [*notes, ""] if notes else []


def plot(results: dict[str, Any]) -> Picture | None:
    """Plot the cost of balancing and of an epoch against the size of the graph."""
    from matplotlib.figure import Figure as Picture

    balance = [row for row in results["figures"] if row["group"].startswith("balance at scale")]
    training = results["training_scaling"]
    if not balance or not training:
        return None
    picture = Picture(figsize=(10, 4), layout="constrained")
    left, right = picture.subplots(1, 2)
    for threads, style in zip(dict.fromkeys(row["threads"] for row in balance), "-:", strict=False):
        rows = [row for row in balance if row["threads"] == threads]
        left.plot(
            [row["nonzeros"] for row in rows],
            [row["ratio"] for row in rows],
            f"o{style}",
            color="#0072b2",
            label="on one core, as scipy" if threads == 1 else f"on {threads} cores",
        )
    left.legend(frameon=False)
    left.set(
        xscale="log",
        ylim=(0, None),
        xlabel="nonzeros",
        ylabel="our time / one scipy product",
        title="Balancing to 1e-6",
    )
    for kind, color in zip(
        dict.fromkeys(row["training_nodes"] for row in training),
        ("#d55e00", "#009e73"),
        strict=False,
    ):
        rows = [row for row in training if row["training_nodes"] == kind]
        edges = [row["edges"] for row in rows]
        times = [row["epoch_seconds"] for row in rows]
        right.plot(edges, times, "o-", color=color, label=f"training nodes: {kind}")
    right.set(
        xscale="log",
        yscale="log",
        xlabel="edges (both directions)",
        ylabel="seconds per epoch, five runs",
        title="Training, RawlsGCN-Grad",
    )
    right.legend(frameon=False)
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    return picture


def write(results: dict[str, Any], folder: Path) -> None:
    """Add a run to results-DEVICE.json; earlier runs whose parts were all measured again go.

    The plot and RESULTS.md are written again.
    """
    from rawlsgcn.reporting.figures import save

    kind = "cuda" if results["machine"]["gpu"] else "cpu"
    runs: list[dict[str, Any]] = []
    for run in (results, *reversed(_kept(folder, kind))):
        if not set(run["parts"]) <= {part for later in runs for part in later["parts"]}:
            runs.insert(0, run)
    with atomic_file(folder / f"results-{kind}.json") as temporary:
        temporary.write_text(json.dumps(runs, indent=1) + "\n", encoding="utf-8")
    picture = plot(results)
    if picture is not None:
        save(picture, folder / f"scaling-{kind}.png")
    with atomic_file(folder / "RESULTS.md") as temporary:
        temporary.write_text(page(folder), encoding="utf-8")


def page(folder: Path) -> str:
    """Return RESULTS.md, drawn from all results-DEVICE.json files of a folder."""
    introduction = "# Speed\n\nRatios against a named rival in the same run, by `make bench`.\n"
    sections = []
    earlier = False
    for kind in ("cpu", "cuda"):
        runs = _kept(folder, kind)
        earlier |= any(run["command"].startswith("rawlsgcn bench") for run in runs)
        sections += [markdown(run) for run in runs]
        if (folder / f"scaling-{kind}.png").is_file():
            sections.append(f"![How cost grows with size](scaling-{kind}.png)\n")
    commands = summary(folder.parent / "results" / "scale")
    if commands:
        sections += [
            "## The commands on shards\n",
            "`python -m benchmarks.scale`: whole commands, 100 features, five epochs on six "
            "nodes in ten;\n[results/scale](../results/scale/README.md) has all sizes, rivals and "
            "the exact command lines.\n",
            *commands,
        ]
    if earlier:
        introduction += (
            "\n`rawlsgcn bench` is the earlier name of `python -m benchmarks`: the runs that show "
            "it were made before the benchmarks moved out of the package.\n"
        )
    return "\n".join([introduction, *sections])


def _kept(folder: Path, kind: str) -> list[dict[str, Any]]:
    file = folder / f"results-{kind}.json"
    if not file.is_file():
        return []
    kept: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return kept
