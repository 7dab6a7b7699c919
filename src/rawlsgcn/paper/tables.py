"""The tables that are shown, made from the results document alone, in every format alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..balancing import ABLATION_NORMALIZATIONS
from . import notes, printed
from .gains import tuning_gains
from .plan import HETEROPHILY, OWN
from .verdict import judged

METHOD_ORDER = (
    *("gcn", "demo-net", "dsgcn", "tail-gnn", "advfair", "redress"),
    *("rawlsgcn-graph", "rawlsgcn-grad"),
)
CHOICE_WORDS = {
    "validation": "chosen by validation accuracy",
    "test": "chosen by mean test accuracy, as the paper seems to have done",
}
QUICK_MARK = "†"


@dataclass(frozen=True)
class Table:
    """A table as text; ``verdicts`` are the columns that hold one."""

    key: str
    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    notes: list[str] = field(default_factory=list)

    @property
    def verdicts(self) -> list[int]:
        return [place for place, name in enumerate(self.head) if name == "verdict"]


def tables(results: Mapping[str, Any]) -> list[Table]:
    """All tables that have a row."""
    made = [_datasets(results)]
    for choice in CHOICE_WORDS:
        made.append(_effectiveness(results, choice, heterophily=False))
    for choice in CHOICE_WORDS:
        made.append(_effectiveness(results, choice, heterophily=True))
    made.append(_efficiency(results))
    for choice in CHOICE_WORDS:
        made.append(_ablation(results, choice))
    made += [fair(results), tuning(results), claims(results)]
    return [table for table in made if table.rows]


def _datasets(results: Mapping[str, Any]) -> Table:
    names = ("nodes", "edges", "features", "classes", "median_degree")
    rows = []
    for row in results["datasets"]:
        shown = []
        for name in names:
            ours, paper = row["ours"][name], (row["paper"] or {}).get(name)
            same = paper is None or ours == paper
            shown.append(f"{ours:,}" if same else f"{ours:,} (paper {paper:,})")
        rows.append((row["graph"], *shown, row["verdict"]))
    head = ("graph", *(name.replace("_", " ") for name in names), "verdict")
    return Table("datasets", "Table 1: statistics of the graphs", head, rows, notes.DATASETS)


def _effectiveness(results: Mapping[str, Any], choice: str, heterophily: bool) -> Table:
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
    more = notes.HETEROPHILY if heterophily else notes.EFFECTIVENESS
    return Table(
        f"{name}-{choice}", f"{title}, {CHOICE_WORDS[choice]}", HEAD, rows, [*more, *_marks(cells)]
    )


HEAD = (
    *("graph", "method", "accuracy", "paper", "verdict", "bias", "paper", "verdict"),
    *("calibrated bias", "low-degree accuracy", "settings chosen"),
)


def _row(
    cell: Mapping[str, Any], label: str, choice: str, paper: Mapping[str, Any] | None
) -> tuple[str, ...]:
    chosen = cell["chosen"][choice]
    paper = paper or {}
    mark = f" {QUICK_MARK}" if cell["searched"] == "first seed" else ""
    if chosen is None:
        empty = (state(cell), pair(paper.get("accuracy"), 2), "", "", pair(paper.get("bias"), 3))
        return (cell["graph"], label + mark, *empty, "", "", "", "")
    verdicts = judged(chosen, paper)
    return (
        cell["graph"],
        label + mark,
        spread(chosen["accuracy"], 2),
        pair(paper.get("accuracy"), 2),
        verdicts["accuracy"],
        spread(chosen["bias"], 3),
        pair(paper.get("bias"), 3),
        verdicts["bias"],
        spread(chosen["calibrated_bias"], 3),
        spread(chosen["low_degree_accuracy"], 1),
        values(chosen["values"]),
    )


def _ablation(results: Mapping[str, Any], choice: str) -> Table:
    cells = {cell["name"]: cell for cell in results["cells"] if cell["protocol"] == "paper"}
    wanted = any(cell["variant"] for cell in cells.values())
    rows = []
    for dataset in dict.fromkeys(cell["dataset"] for cell in cells.values() if wanted):
        for method in OWN:
            for form in ABLATION_NORMALIZATIONS:
                own = form == "doubly-stochastic"
                name = f"rawlsgcn/paper/{dataset}/{method}" + ("" if own else f"/{form}")
                if name in cells and dataset != HETEROPHILY:
                    cell = cells[name]
                    label = f"{cell['title']}, {form}"
                    paper = printed.figures(dataset, method, form)
                    rows.append(_row(cell, label, choice, paper))
    title = f"Ablation: four normalisations, {CHOICE_WORDS[choice]}"
    return Table(f"ablation-{choice}", title, HEAD, rows, notes.ABLATION)


def _efficiency(results: Mapping[str, Any]) -> Table:
    cells = [cell for cell in results["cells"] if cell["protocol"] == "efficiency"]
    rows = []
    for cell in ordered(cells):
        label = f"{cell['title']} ({cell['variant']})" if cell["variant"] else cell["title"]
        chosen, paper = cell["chosen"]["validation"], cell["paper"] or {}
        if chosen is None:
            rows.append((label, state(cell), *[""] * 10))
            continue
        row = [label]
        for name, ours, form in (
            ("parameters", chosen["parameters"], "{:,.0f}"),
            ("memory_mb", chosen["peak_memory_mb"], "{:,.0f}"),
            ("training_seconds", chosen["training_seconds"], "{:,.3f}"),
        ):
            theirs = paper.get(name)
            shown = "–" if theirs is None else form.format(theirs)
            row += [form.format(ours), shown, chosen["verdict"][name]]
        rows.append((*row, f"{chosen['preparing_seconds']:,.3f}", chosen["device"]))
    head = (
        *("method", "parameters", "paper", "verdict", "memory (MB)", "paper", "verdict"),
        *("training (s)", "paper", "verdict", "preparing (s)", "device"),
    )
    return Table("efficiency", "Table 4: efficiency on Amazon-Photo", head, rows, notes.EFFICIENCY)


def fair(results: Mapping[str, Any]) -> Table:
    """Every method with the same freedom."""
    cells = [cell for cell in results["cells"] if cell["protocol"] == "fair"]
    figures = (
        *(("accuracy", 2), ("bias", 3), ("calibrated_bias", 3)),
        *(("low_degree_accuracy", 1), ("high_degree_accuracy", 1)),
    )
    rows = []
    for cell in ordered(cells):
        chosen = cell["chosen"]["validation"]
        mark = f" {QUICK_MARK}" if cell["searched"] == "first seed" else ""
        shown = [state(cell), *[""] * len(figures)]
        if chosen is not None:
            shown = [spread(chosen[name], digits) for name, digits in figures]
            shown.append(values(chosen["values"]))
        rows.append((cell["graph"], cell["title"] + mark, *shown))
    head = ("graph", "method", *(name.replace("_", " ") for name, _ in figures), "settings chosen")
    title = "The fair comparison: rate and weight decay chosen by validation accuracy"
    return Table("fair", title, head, rows, [*notes.FAIR, *_marks(cells)])


def tuning(results: Mapping[str, Any]) -> Table:
    """How much of the gain in accuracy is the tuning, and how much the method."""
    rows = [
        (
            *(gain.graph, gain.title, f"{gain.before:.1f}", f"{gain.tuned:.1f}", f"{gain.own:.1f}"),
            *(f"{gain.by_tuning:+.1f}", f"{gain.by_method:+.1f}", f"{gain.bias_ratio:.2f}"),
        )
        for gain in tuning_gains(results)
    ]
    head = (
        *("graph", "method", "GCN, the paper's decay", "GCN, tuned", "method, tuned"),
        *("gained by tuning", "gained by the method", "calibrated bias over tuned GCN's"),
    )
    return Table("tuning", "What is the method and what is the tuning", head, rows, notes.TUNING)


def claims(results: Mapping[str, Any]) -> Table:
    rows = []
    for claim in results["claims"]:
        protocol = claim["protocol"]
        under = f"paper, by {claim['choice']}" if protocol == "paper" else protocol
        held = sum(test["outcome"] == "holds" for test in claim["tests"])
        count = f"{held} of {len(claim['tests'])} hold"
        rows.append((claim["claim"], under, "all", count, "", "", claim["outcome"]))
        for test in claim["tests"]:
            label = f"  {test['method']}"
            chance = [_chance(test[name]) for name in ("p_seeds", "p_nodes")]
            rows.append((label, under, test["graph"], test["figure"], *chance, test["outcome"]))
    head = ("claim", "protocol", "graph", "found", "p (seeds)", "p (nodes)", "outcome")
    return Table("claims", "The paper's claims, tested", head, rows, notes.CLAIMS)


def ordered(cells: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """By graph, and the methods in the paper's order."""
    graphs = list(dict.fromkeys(cell["dataset"] for cell in cells))
    known = dict(zip(METHOD_ORDER, range(len(METHOD_ORDER)), strict=True))
    return sorted(
        cells, key=lambda cell: (graphs.index(cell["dataset"]), known.get(cell["method"], 99))
    )


def _marks(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    if any(cell["searched"] == "first seed" for cell in cells):
        return [f"{QUICK_MARK} searched with the first seed, then run with all seeds."]
    return []


def state(cell: Mapping[str, Any]) -> str:
    """Why a cell has no figures."""
    return f"failed: {cell['reason']}" if cell["status"] == "failed" else str(cell["status"])


def spread(figure: Mapping[str, Any], digits: int) -> str:
    if figure["mean"] is None:
        return f"diverged ({figure['runs'].count(None)} of {len(figure['runs'])} runs)"
    mean = f"{figure['mean']:.{digits}f}"
    return f"{mean} ± {figure['std']:.{digits}f}" if len(figure["runs"]) > 1 else mean


def pair(printed_figure: Sequence[float] | None, digits: int) -> str:
    if printed_figure is None:
        return "–"
    return f"{printed_figure[0]:.{digits}f} ± {printed_figure[1]:.{digits}f}"


def values(chosen: Mapping[str, Any]) -> str:
    words = {"lr": "rate", "weight_decay": "decay", "alpha": "α"}
    return ", ".join(f"{words.get(name, name)} {value:g}" for name, value in chosen.items()) or "–"


def _chance(p: float | None) -> str:
    return "" if p is None else f"{p:.3f}"
