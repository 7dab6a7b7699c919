"""The tables of a reproduction and all its figures as CSV, made from the results document alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import product
from typing import Any

import pandas as pd

from ..balancing import ABLATION_NORMALIZATIONS
from ..reporting.formatting import join_words
from .agreement import RULE, published_figures, verdicts
from .plan import BASELINES, FIGURES, HETEROPHILY, OWN, PAPER_DATASETS
from .summary import CHOICE_WORDS, claim_text
from .table_formats import Table
from .tuning_gains import tuning_gains

METHOD_ORDER = ("gcn", *BASELINES, *OWN)
QUICK_SIGN = "†"
EFFECTIVENESS_HEAD = (
    *("graph", "method", "accuracy", "paper", "verdict", "bias", "paper", "verdict"),
    *("calibrated bias", "low-degree accuracy", "settings chosen"),
)
DIGITS = {
    **{"accuracy": 2, "bias": 3, "calibrated_bias": 3},
    **{"low_degree_accuracy": 1, "high_degree_accuracy": 1, "validation_accuracy": 2},
}
Cell = Mapping[str, Any]


def _notes(table: str, cells: Sequence[Cell] = ()) -> list[str]:
    """How the figures of a table were computed, and known differences from the paper.

    A note about some graphs ("only") is left out where none of them is among the cells.
    """
    text = files(__package__).joinpath("table_notes.json").read_text(encoding="utf-8")
    graphs = {cell["dataset"] for cell in cells}
    nodes = "the paper's 1,000 test nodes" if graphs & {*PAPER_DATASETS} else "the test nodes"
    notes = []
    for note in json.loads(text)[table]:
        if isinstance(note, str):
            notes.append(note.replace("{rule}", RULE).replace("{nodes}", nodes))
        elif graphs & {*note["only"]}:
            notes.append(note["note"])
    return notes


def tables(results: Mapping[str, Any]) -> list[Table]:
    """Return all tables that have a row."""
    made = [
        _datasets(results),
        *(_effectiveness(results, choice) for choice in CHOICE_WORDS),
        *(_effectiveness(results, choice, heterophily=True) for choice in CHOICE_WORDS),
        _efficiency(results),
        *(_ablation(results, choice) for choice in CHOICE_WORDS),
        fair(results),
        tuning(results),
        claims(results),
    ]
    return [table for table in made if table.rows]


def _datasets(results: Mapping[str, Any]) -> Table:
    names = ("nodes", "edges", "features", "classes", "median_degree")
    rows = []
    for row in results["datasets"]:
        paper, shown = row["paper"] or {}, []
        for name in names:
            ours, theirs = row["ours"][name], paper.get(name)
            shown.append(f"{ours:,}" if theirs in (None, ours) else f"{ours:,} (paper {theirs:,})")
        rows.append((row["graph"], *shown, row["verdict"]))
    head = ("graph", *(name.replace("_", " ") for name in names), "verdict")
    return Table("datasets", "Table 1: statistics of the graphs", head, rows, _notes("datasets"))


def _effectiveness(results: Mapping[str, Any], choice: str, heterophily: bool = False) -> Table:
    cells = [
        cell
        for cell in results["cells"]
        if cell["protocol"] == "paper"
        and not cell["variant"]
        and (cell["dataset"] == HETEROPHILY) == heterophily
    ]
    rows = [_row(cell, cell["title"], choice, cell["paper"]) for cell in ordered(cells)]
    name = "heterophily" if heterophily else "effectiveness"
    title = "Chameleon, a heterophilous graph" if heterophily else "Table 3: effectiveness"
    title = f"{title}, {CHOICE_WORDS[choice]}"
    notes = [*_notes(name, cells), *_quick_note(cells)]
    return Table(f"{name}-{choice}", title, EFFECTIVENESS_HEAD, rows, notes)


def _row(cell: Cell, label: str, choice: str, paper: Mapping[str, Any] | None) -> tuple[str, ...]:
    chosen, paper = cell["chosen"][choice], paper or {}
    judged = {} if chosen is None else verdicts("paper", chosen, paper)
    row = [cell["graph"], label + _quick_sign(cell)]
    for name in ("accuracy", "bias"):
        theirs = paper.get(name)
        printed = theirs and " ± ".join(f"{each:.{DIGITS[name]}f}" for each in theirs)
        row += [mean_and_std(chosen, name), printed or "–", judged.get(name, "")]
    if chosen is None:
        row[2] = state(cell)
    row += [mean_and_std(chosen, name) for name in ("calibrated_bias", "low_degree_accuracy")]
    return (*row, chosen_values(chosen))


def _ablation(results: Mapping[str, Any], choice: str) -> Table:
    cells = {cell["name"]: cell for cell in results["cells"] if cell["protocol"] == "paper"}
    wanted = any(cell["variant"] for cell in cells.values())
    rows = []
    for dataset in dict.fromkeys(cell["dataset"] for cell in cells.values() if wanted):
        for method in OWN:
            for normalization in ABLATION_NORMALIZATIONS:
                own = normalization == "doubly-stochastic"
                name = f"rawlsgcn/paper/{dataset}/{method}" + ("" if own else f"/{normalization}")
                if name in cells and dataset != HETEROPHILY:
                    label = f"{cells[name]['title']}, {normalization}"
                    paper = published_figures(dataset, method, normalization)
                    rows.append(_row(cells[name], label, choice, paper))
    title = f"Ablation: four normalizations, {CHOICE_WORDS[choice]}"
    notes = _notes("ablation", list(cells.values()))
    return Table(f"ablation-{choice}", title, EFFECTIVENESS_HEAD, rows, notes)


def _efficiency(results: Mapping[str, Any]) -> Table:
    cells = [cell for cell in results["cells"] if cell["protocol"] == "efficiency"]
    figures = {
        "parameters": ("parameters", "{:,.0f}"),
        "memory_mb": ("peak_memory_mb", "{:,.0f}"),
        "training_seconds": ("training_seconds", "{:,.3f}"),
    }
    rows = []
    for cell in ordered(cells):
        row = [f"{cell['title']} ({cell['variant']})" if cell["variant"] else cell["title"]]
        chosen, paper = cell["chosen"]["validation"], cell["paper"] or {}
        if chosen is None:
            rows.append((*row, state(cell), *[""] * 10))
            continue
        for name, (ours, form) in figures.items():
            theirs = "–" if paper.get(name) is None else form.format(paper[name])
            row += [form.format(chosen[ours]), theirs, chosen["verdict"][name]]
        rows.append((*row, f"{chosen['preparing_seconds']:,.3f}", chosen["device"]))
    head = (
        *("method", "parameters", "paper", "verdict", "memory (MB)", "paper", "verdict"),
        *("training (s)", "paper", "verdict", "preparing (s)", "device"),
    )
    title = f"Table 4: efficiency on {join_words([*dict.fromkeys(c['graph'] for c in cells)])}"
    return Table("efficiency", title, head, rows, _notes("efficiency"))


def fair(results: Mapping[str, Any]) -> Table:
    """Return the comparison in which every method is tuned in the same way."""
    cells = [cell for cell in results["cells"] if cell["protocol"] == "fair"]
    figures = list(DIGITS)[:-1]
    rows = []
    for cell in ordered(cells):
        chosen = cell["chosen"]["validation"]
        shown = [mean_and_std(chosen, name) for name in figures]
        if chosen is None:
            shown[0] = state(cell)
        label = cell["title"] + _quick_sign(cell)
        rows.append((cell["graph"], label, *shown, chosen_values(chosen)))
    head = ("graph", "method", *(name.replace("_", " ") for name in figures), "settings chosen")
    title = "The fair comparison: rate and weight decay chosen by validation accuracy"
    return Table("fair", title, head, rows, [*_notes("fair"), *_quick_note(cells)])


def tuning(results: Mapping[str, Any]) -> Table:
    """Return how much of the gain in accuracy is the tuning, and how much the method."""
    forms = {
        **dict.fromkeys(("graph", "title"), "{}"),
        **dict.fromkeys(("gcn", "tuned_gcn", "accuracy"), "{:.1f}"),
        **dict.fromkeys(("by_tuning", "by_method"), "{:+.1f}"),
        "bias_ratio": "{:.2f}",
    }
    gains = tuning_gains(results)
    columns = [gains[name].map(form.format) for name, form in forms.items()]
    rows = list(zip(*columns, strict=True))
    head = (
        *("graph", "method", "GCN, the paper's decay", "GCN, tuned", "method, tuned"),
        *("gained by tuning", "gained by the method", "calibrated bias over tuned GCN's"),
    )
    return Table(
        "tuning", "Gains in accuracy by tuning and by method", head, rows, _notes("tuning")
    )


def claims(results: Mapping[str, Any]) -> Table:
    """Return the paper's claims with all their tests."""
    rows = []
    for claim in results["claims"]:
        protocol = claim["protocol"]
        under = f"paper, by {claim['choice']}" if protocol == "paper" else protocol
        held = sum(test["outcome"] == "holds" for test in claim["tests"])
        count = f"{held} of {len(claim['tests'])} hold"
        rows.append((claim_text(claim), under, "all", count, "", "", claim["outcome"]))
        for test in claim["tests"]:
            p = [test[name] for name in ("p_seeds", "p_nodes")]
            shown = ["" if each is None else f"{each:.3f}" for each in p]
            label = f"  {test['method']}"
            rows.append((label, under, test["graph"], test["figure"], *shown, test["outcome"]))
    head = ("claim", "protocol", "graph", "result", "p (seeds)", "p (nodes)", "outcome")
    return Table("claims", "The paper's claims, tested", head, rows, _notes("claims"))


def ordered(cells: Sequence[Cell]) -> list[Cell]:
    """Sort cells by graph, and the methods in the paper's order."""
    graphs = list(dict.fromkeys(cell["dataset"] for cell in cells))
    place = {name: index for index, name in enumerate(METHOD_ORDER)}
    return sorted(
        cells, key=lambda cell: (graphs.index(cell["dataset"]), place.get(cell["method"], 99))
    )


def _quick_sign(cell: Cell) -> str:
    return f" {QUICK_SIGN}" if cell["searched"] == "first seed" else ""


def _quick_note(cells: Sequence[Cell]) -> list[str]:
    if any(map(_quick_sign, cells)):
        return [f"{QUICK_SIGN} searched with the first seed, then run with all seeds."]
    return []


def state(cell: Cell) -> str:
    """Say why a cell has no figures."""
    return f"failed: {cell['reason']}" if cell["status"] == "failed" else str(cell["status"])


def mean_and_std(trial: Mapping[str, Any] | None, name: str) -> str:
    """Format a figure over the runs of a trial; nothing for no trial."""
    if trial is None:
        return ""
    figure, digits = trial[name], DIGITS[name]
    if figure["mean"] is None:
        return f"diverged ({figure['runs'].count(None)} of {len(figure['runs'])} runs)"
    mean = f"{figure['mean']:.{digits}f}"
    return f"{mean} ± {figure['std']:.{digits}f}" if len(figure["runs"]) > 1 else mean


def chosen_values(trial: Mapping[str, Any] | None) -> str:
    """Format the values of a grid that a trial has; nothing for no trial."""
    if trial is None:
        return ""
    words = {"lr": "rate", "weight_decay": "decay", "alpha": "α"}
    values = trial["values"].items()
    return ", ".join(f"{words.get(name, name)} {value:g}" for name, value in values) or "–"


def cells_csv(results: Mapping[str, Any]) -> str:
    """Return one line for each figure, ours and the paper's, in full precision."""
    about = ("protocol", "dataset", "method", "variant", "status", "searched")
    ours = {"memory_mb": "peak_memory_mb"}
    costs = ("parameters", "memory_mb", "training_seconds", "preparing_seconds")
    lines = []
    for cell, choice in product(results["cells"], CHOICE_WORDS):
        chosen, paper = cell["chosen"][choice], cell["paper"] or {}
        line = [*(cell[name] for name in about), choice]
        if chosen is None:
            lines.append(line)
            continue
        line.append(" ".join(f"{name}={value}" for name, value in chosen["values"].items()))
        verdict = chosen["verdict"].get
        for name in FIGURES:
            figure, theirs = chosen[name], paper.get(name) or (None, None)
            lines.append([*line, name, figure["mean"], figure["std"], *theirs, verdict(name)])
        for name in costs if cell["protocol"] == "efficiency" else ():
            figure = chosen[ours.get(name, name)]
            lines.append([*line, name, figure, None, paper.get(name), None, verdict(name)])
    numbers = ("mean", "std", "paper_mean", "paper_std")
    head = [*about, "chosen_by", "settings", "figure", *numbers, "verdict"]
    # Where nothing was chosen the rest of the line is empty.
    records = [dict(zip(head, line, strict=False)) for line in lines]
    return pd.DataFrame(records, columns=head, dtype=object).to_csv(index=False)
