"""What is run: every cell of the paper's tables and of the fair comparison, in order of work."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import Any

from .._core import __version__
from .._core.errors import RawlsError, unknown_name
from ..balancing import ABLATION_NORMALIZATIONS
from ..experiments.tuning import LEARNING_RATES, WEIGHT_DECAYS, paper_grid
from ..graphs.catalog import SYNTHETIC, datasets
from ..graphs.splits import EVALUATE
from ..methods import MAIN_METHODS, Convolutional, find_method, method_names

PARTS = (
    *("datasets", "effectiveness", "heterophily", "efficiency", "ablation", "figures", "fair"),
    "significance",
)
"""The parts of the paper, and two more: a fair comparison, and tests of significance."""
PAPER_DATASETS = (
    *("cora-ml", "citeseer", "coauthor-cs", "coauthor-physics", "amazon-computers"),
    *("amazon-photo", "chameleon"),
)
"""The seven graphs of the paper's tables, whatever else the catalog has."""
OWN = ("rawlsgcn-graph", "rawlsgcn-grad")
MAIN = MAIN_METHODS
BASELINES = ("demo-net", "dsgcn", "tail-gnn", "advfair", "redress")
# These were run with their authors' settings (the paper's appendix); nothing is searched.
NOT_SEARCHED = ("gcn", "demo-net", "tail-gnn")
HETEROPHILY, EFFICIENCY_GRAPH = "chameleon", "amazon-photo"
FAIR_EPOCHS = 200
FIGURES = (
    *("accuracy", "bias", "calibrated_bias", "low_degree_accuracy", "high_degree_accuracy"),
    *("validation_accuracy",),
)
"""The figures of a trial, each with one number for every seed."""
CHOICES = {"validation": "validation_accuracy", "test": "accuracy"}
"""How settings are chosen: by validation accuracy, or by test accuracy as the paper seems to."""


@dataclass(frozen=True)
class Point:
    """One combination of a grid, with the seeds that it is trained with: a trial."""

    values: Mapping[str, Any]
    seeds: tuple[int, ...]

    @property
    def key(self) -> str:
        """Values and seeds as text, by which a study finds the point."""
        return json.dumps([dict(self.values), self.seeds], sort_keys=True)

    @classmethod
    def from_key(cls, key: str) -> Point:
        """Return the point that has this key."""
        values, seeds = json.loads(key)
        return cls(values, tuple(seeds))


@dataclass(frozen=True)
class Cell:
    """A method on a graph under a protocol: one study, whose trials are the points of a grid.

    ``variant`` distinguishes cells of the same method: a normalization of the ablation, or the
    number of epochs in Table 4. With ``quick`` the grid is searched with the first seed, and all
    seeds are run at the best values.
    """

    protocol: str
    dataset: str
    method: str
    variant: str = ""
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    quick: bool = False
    evaluate: str = "test"

    @property
    def name(self) -> str:
        """The study's name, which says where not the paper's test nodes are evaluated."""
        words = ["rawlsgcn", self.protocol, self.dataset, self.method, self.variant]
        if self.evaluate == "all" and self.protocol != "fair":
            words.append("all nodes")
        return "/".join(word for word in words if word)

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What must be equal for a study to be continued, as JSON keeps it."""
        made = {
            "rawlsgcn": __version__,
            "settings": asdict(find_method(self.method).configure(self.changes)),
            "grid": dict(self.grid),
            "seeds": self.seeds,
        }
        fingerprint: dict[str, Any] = json.loads(json.dumps(made))
        return fingerprint

    @property
    def stacked(self) -> bool:
        """Whether the points are trained together (the GCN family) or one by one."""
        return self.protocol != "efficiency" and isinstance(find_method(self.method), Convolutional)

    def combinations(self) -> list[dict[str, Any]]:
        """Return all combinations of the grid's values."""
        return [
            dict(zip(self.grid, values, strict=True)) for values in product(*self.grid.values())
        ]

    def points(self, quick: bool, done: Mapping[str, Mapping[str, Any]]) -> list[Point]:
        """Return the trials that this cell needs, given the records of those that are done.

        A quick search ends with the best values of the first seed, by validation accuracy and by
        test accuracy, once all of them are known; and with none where every run diverged.
        """
        if not quick or len(self.seeds) == 1:
            return [Point(values, self.seeds) for values in self.combinations()]
        search = [Point(values, self.seeds[:1]) for values in self.combinations()]
        records = [done[point.key] for point in search if point.key in done]
        if len(records) < len(search):
            return search
        ends = [best(records, by) for by in CHOICES.values()]
        points = [Point(end["values"], self.seeds) for end in ends if end is not None]
        return [*search, *{point.key: point for point in points}.values()]


def diverged(record: Mapping[str, Any]) -> bool:
    """Return whether a run of a record ended in NaN or infinity, which accuracy need not show.

    A node is classified whatever its logits are, but its loss is no number then: the bias of such
    a run is None, or the calibrated bias if it happened at validation nodes.
    """
    figures = ("accuracy", "validation_accuracy", "bias", "calibrated_bias")
    return any(None in record["runs"].get(name, ()) for name in figures)


def best(records: Iterable[Mapping[str, Any]], by: str) -> Mapping[str, Any] | None:
    """Return the record with the highest mean of a figure, among equals the first of the grid.

    A record with a diverged run cannot be the best; None where there is no other.
    """
    whole = [record for record in records if not diverged(record)]
    return max(whole, key=lambda record: score(record, by), default=None)


def score(record: Mapping[str, Any], by: str) -> float:
    """Return the mean of a figure over a record's runs; -1 where one of them diverged."""
    runs = record["runs"][by]
    return -1.0 if diverged(record) else float(sum(runs) / len(runs))


@dataclass(frozen=True)
class Plan:
    """Which parts, graphs, methods and seeds to run; the defaults are the whole paper.

    Args:
        parts: Names of ``PARTS``.
        datasets: Names of datasets.
        methods: Names of methods; none for all of the paper.
        seeds: The seeds of each run.
        quick: Search the baselines' grids with the first seed only.
        changes: Settings of every method, to make a smaller plan.
        values: At most so many values of each grid, to make a smaller plan.
        evaluate: ``"test"``, or ``"all"`` to evaluate every labeled node outside training and
            validation, as the fair comparison always does.

    Raises:
        RawlsError: If a name is unknown, or there is nothing to run.
    """

    parts: tuple[str, ...] = PARTS
    datasets: tuple[str, ...] = PAPER_DATASETS
    methods: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    quick: bool = False
    changes: Mapping[str, Any] = field(default_factory=dict)
    values: int | None = None
    evaluate: str = "test"

    def __post_init__(self) -> None:
        for kind, names, known in (
            ("choice of nodes", [self.evaluate], EVALUATE),
            ("part of the paper", self.parts, PARTS),
            ("dataset", self.datasets, datasets()),
        ):
            for name in names:
                if name not in known:
                    raise unknown_name(kind, name, known)
        for method in self.methods:
            find_method(method)
        if not (self.parts and self.datasets and self.seeds):
            raise RawlsError("nothing to reproduce: name at least one part, dataset and seed")

    @property
    def chosen_methods(self) -> tuple[str, ...]:
        """The methods in order of work: GCN and the two methods, then the baselines."""
        known = (*MAIN, *BASELINES)
        if not self.methods:
            return tuple(name for name in known if name in method_names())
        others = tuple(name for name in sorted(set(self.methods)) if name not in known)
        return (*(name for name in known if name in self.methods), *others)

    def cells(self) -> list[Cell]:
        """Return every study, in order of work: the main methods in both protocols, then the
        baselines, the ablation (with GCN, which its methods are compared with), the baselines in
        the fair protocol, and last the timings."""
        main = [name for name in self.chosen_methods if name in MAIN]
        others = [name for name in self.chosen_methods if name not in MAIN]
        graphs = [name for name in self.datasets if name != HETEROPHILY]
        tables = [*graphs] if "effectiveness" in self.parts else []
        if "heterophily" in self.parts and HETEROPHILY in self.datasets:
            tables.append(HETEROPHILY)
        ablation = graphs if "ablation" in self.parts else []
        fair = self.datasets if "fair" in self.parts else ()
        ordered = [
            *(self._cell("paper", graph, name) for graph, name in product(tables, main)),
            *(self._cell("fair", graph, name) for graph, name in product(fair, main)),
            *(self._cell("paper", graph, name) for graph, name in product(tables, others)),
            *(
                self._cell("paper", graph, name, variant)
                for graph, name in product(ablation, main)
                for variant in (("",) if name == "gcn" else ABLATION_NORMALIZATIONS)
            ),
            *(self._cell("fair", graph, name) for graph, name in product(fair, others)),
            *self._efficiency(),
        ]
        return list({cell.name: cell for cell in ordered}.values())

    def _efficiency(self) -> list[Cell]:
        """Table 4: all seeds of the GCN family, each run timed alone; other methods once."""
        if "efficiency" not in self.parts:
            return []
        graphs = [name for name in self.datasets if name in (EFFICIENCY_GRAPH, SYNTHETIC)]
        cells = []
        for graph, name in product(graphs, self.chosen_methods):
            family = isinstance(find_method(name), Convolutional)
            seeds = self.seeds if family else self.seeds[:1]
            variants: dict[str, dict[str, Any]] = {"": {}}
            if name == "gcn":
                variants = {f"{epochs} epochs": {"epochs": epochs} for epochs in (100, 200)}
            for variant, own in variants.items():
                changes = {**own, **self.changes}
                cells.append(Cell("efficiency", graph, name, variant, {}, changes, seeds))
        return cells

    def _cell(self, protocol: str, graph: str, name: str, variant: str = "") -> Cell:
        method = find_method(name)
        own = method.defaults.normalization
        changes: dict[str, Any] = {} if variant in ("", own) else {"normalization": variant}
        grid: Mapping[str, Sequence[Any]] = {} if name in NOT_SEARCHED else paper_grid(method)
        if protocol == "fair":
            grid = {"lr": LEARNING_RATES, "weight_decay": WEIGHT_DECAYS}
            changes |= {"epochs": FAIR_EPOCHS, "patience": 0}
        return Cell(
            protocol,
            graph,
            name,
            "" if variant == own else variant,
            {key: tuple(values)[: self.values] for key, values in grid.items()},
            {**changes, **self.changes},
            self.seeds,
            self.quick and not isinstance(method, Convolutional) and bool(grid),
            "all" if protocol == "fair" else self.evaluate,
        )
