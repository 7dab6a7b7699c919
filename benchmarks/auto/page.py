"""The tables of the evaluation as README.md, with auto.json and the picture."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rawlsgcn._core.atomic_files import atomic_file

from .picture import picture
from .records import AUTO, read_records
from .summary import METRICS, Difference, Summary, title
from .times import read_times

INTRODUCTION = """# `auto` against tuned rivals

Made by `python -m benchmarks.auto`; with `--tables-only` it writes this page again from the records
in `runs/`, one for each graph, split and model, and in `times/`. `auto.json` has all figures.

Split 0 is the paper's split; the others are drawn alike (20 training nodes of each class, 500
validation nodes). Chameleon has ten stored splits. Every figure is computed on all labeled nodes
that are neither training nor validation nodes. Accuracies are in per cent; low-degree accuracy is
that of the quarter of these nodes with the lowest degrees; calibrated bias is the variance over
degrees of the mean cross entropy after temperature scaling on the validation nodes.

- **auto**: `rawlsgcn.auto` with its default settings.
- **GCN**: this package's, tuned over rate {0.05, 0.01, 0.005} × decay {5e-3, 5e-4, 5e-5, 0} ×
  width {64, 256} × dropout {0.5, 0.8} × 2 seeds, 96 runs of 200 epochs.
- **APPNP** (10 steps, teleport 0.1), **GraphSAGE** (mean) and **GAT** (8 heads, then 1): two layers
  of torch_geometric, tuned over the same grid; dropout {0.3, 0.6} for GAT, which also drops
  attention. Where fewer runs are shown, they were drawn from this grid at random.

The answer of each rival is the mean probability of its six best runs by validation accuracy; a run
that diverged is never among them. '-' is not measured.
"""


def write(out: Path) -> None:
    """Write README.md, auto.json and auto.png from the records of a folder."""
    from rawlsgcn.reporting.figures import save

    summary = Summary(read_records(out), read_times(out))
    drawn = picture(summary)
    with atomic_file(out / "auto.json") as temporary:
        text = json.dumps(summary.to_dict(), indent=1, allow_nan=False)
        temporary.write_text(text + "\n", encoding="utf-8")
    if drawn is not None:
        save(drawn, out / "auto.png")
    with atomic_file(out / "README.md") as temporary:
        temporary.write_text(markdown(summary, pictured=drawn is not None), encoding="utf-8")


def markdown(summary: Summary, *, pictured: bool = False) -> str:
    """Return the page; all numbers are those of the records."""
    lines = [INTRODUCTION]
    if pictured:
        lines += ["![Gain in low-degree accuracy, and ratio of biases](auto.png)", ""]
    lines += ["## Checks", "", *_checks(summary)]
    lines += ["## Means over splits", "", *_means(summary)]
    lines += ["## `auto` minus GCN", "", *_differences(summary, "gcn")]
    for rival in summary.models():
        if rival not in (AUTO, "gcn"):
            lines += [f"## `auto` minus {title(rival)}", "", *_differences(summary, rival)]
    lines += ["## What each part of `auto` brings", "", *_parts(summary)]
    lines += ["## Wall times", "", *_times(summary)]
    lines += ["## Every split", "", *_splits(summary)]
    lines += ["## Commands and machines", "", *_machines(summary)]
    return "\n".join(lines).rstrip() + "\n"


def _checks(summary: Summary) -> list[str]:
    rows = [(check.condition, check.measured, check.outcome) for check in summary.checks()]
    said = (
        "A check is measured once all seven graphs have ten splits of the models that it compares; "
        "until then the second column shows what there is. Comparisons are of means over splits."
    )
    return [said, "", *_table(("condition", "measured", "outcome"), rows)]


def _means(summary: Summary) -> list[str]:
    rows = []
    for graph in summary.graphs:
        for model in summary.models():
            records = summary.of(graph, model)
            figures = [
                _number(summary.mean(graph, model, metric), digits)
                for metric, digits in zip(METRICS, (2, 2, 4), strict=True)
            ]
            runs = sorted({record["runs"] for record in records if record["runs"] is not None})
            shown = "-" if not runs else str(runs[0]) if len(runs) == 1 else f"{runs[0]}–{runs[-1]}"
            rows.append((title(graph), title(model), *figures, shown, str(len(records) or "-")))
    header = (
        *("graph", "model", "accuracy", "low-degree accuracy", "calibrated bias"),
        *("runs", "splits"),
    )
    said = "Where a rival has fewer splits than `auto`, the paired differences below compare them."
    return [said, "", *_table(header, rows)]


def _differences(summary: Summary, rival: str) -> list[str]:
    rows = []
    for graph in summary.graphs:
        accuracy, low = (summary.difference(graph, rival, metric) for metric in METRICS[:2])
        ratio = _number(summary.bias_ratio(graph, rival), 2)
        ends = summary.bias_interval(graph, rival)
        if ends is not None:
            ratio += f" ({ends[0]:.2f} to {ends[1]:.2f})"
        splits = str(low.splits) if low is not None else "-"
        rows.append((title(graph), _interval(accuracy), _interval(low), ratio, splits))
    both = ", ".join(map(title, summary.better_at_both(rival))) or "none"
    return [
        "Mean of the paired differences over the common splits, in points, with its 95 % t "
        "interval; the ratio is that of the mean calibrated biases, with its 95 % bootstrap "
        "interval over splits.",
        "",
        *_table(("graph", "accuracy", "low-degree accuracy", "ratio of biases", "splits"), rows),
        f"Graphs where {title(rival)} is better in both accuracies: {both}.",
        "",
    ]


def _parts(summary: Summary) -> list[str]:
    """Accuracy, low-degree accuracy and bias of the parts, against the GCN of the pool."""
    rows: dict[str, list[str]] = {}
    for position, graph in enumerate(summary.graphs):
        for name, figures in summary.parts(graph).items():
            cells = rows.setdefault(name, ["-"] * len(summary.graphs))
            accuracy, low, ratio = figures
            cells[position] = f"{accuracy:+.1f} / {low:+.1f} / × {ratio:.2f}"
    said = (
        "Accuracy and low-degree accuracy in points above the GCN of the pool (12 runs), and the "
        "calibrated bias as a ratio of means; means over splits. First each member alone, then one "
        "part after another."
    )
    header = ("part", *map(title, summary.graphs))
    return [said, "", *_table(header, [(name, *cells) for name, cells in rows.items()])]


def _times(summary: Summary) -> list[str]:
    rows = [
        (
            title(record["graph"]),
            record["machine"]["gpu"] or f"{record['machine']['threads']} threads",
            _number(record["seconds"], 1),
            _number(record["search_seconds"], 1),
            _number(record["peak_memory_mb"] / 1024, 1) if record["device"] == "cpu" else "-",
        )
        for record in sorted(summary.times, key=lambda each: summary.place(each["graph"]))
    ]
    header = ("graph", "device", "whole command (s)", "of which the search (s)", "memory (GB)")
    said = (
        "Of `auto` on the paper's split, with nothing else running. The whole command is from the "
        "start of Python to the printed answer; the search is from the loaded graph to the answer. "
        "Python's bytecode of all packages was on disk, as an installation leaves it."
    )
    return [said, "", *_table(header, rows)]


def _splits(summary: Summary) -> list[str]:
    lines = ["Accuracy / low-degree accuracy / calibrated bias.", ""]
    for graph in summary.graphs:
        numbers = sorted({split for name, split, _ in summary.records if name == graph})
        rows = []
        for split in numbers:
            cells = []
            for model in summary.models():
                record = summary.records.get((graph, split, model))
                cells.append(
                    "-"
                    if record is None
                    else " / ".join(
                        _number(record[metric], digits)
                        for metric, digits in zip(METRICS, (1, 1, 4), strict=True)
                    )
                )
            rows.append((str(split), *cells))
        header = ("split", *map(title, summary.models()))
        lines += [f"### {title(graph)}", "", *_table(header, rows)]
    return lines


def _machines(summary: Summary) -> list[str]:
    records = [*summary.records.values(), *summary.times]
    commands = dict.fromkeys(f"`{record['command']}`" for record in records)
    machines = dict.fromkeys(_machine(record) for record in records)
    return [*(f"- {each}" for each in (*commands, *machines)), ""]


def _machine(record: dict[str, Any]) -> str:
    host, versions = record["machine"], record["versions"]
    where = f"{host['gpu']} beside {host['processor']}" if host["gpu"] else host["processor"]
    return (
        f"{where}, {host['threads']} threads; Python {host['python']}, "
        + ", ".join(f"{name} {version}" for name, version in versions.items())
        + (", with compiled kernels" if host["compiled"] else "")
    )


def _interval(difference: Difference | None) -> str:
    if difference is None:
        return "-"
    mean = f"{difference.mean:+.2f}"
    if difference.low is None or difference.high is None:
        return mean
    return f"{mean} ({difference.low:+.2f} to {difference.high:+.2f})"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return [*(f"| {' | '.join(cells)} |" for cells in lines), ""]
