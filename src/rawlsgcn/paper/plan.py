"""What is run: every cell of the paper's tables and of the fair comparison, in order of work."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import Any

from .._core.errors import RawlsError, unknown_name
from .._core.version import __version__
from ..balancing import ABLATION_NORMALIZATIONS
from ..experiments.tuning import LEARNING_RATES, default_grid
from ..graphs.catalog import SYNTHETIC, datasets
from ..graphs.splits import EVALUATE
from ..methods import MAIN_METHODS, Convolutional, find_method, method_names

PARTS = (
    *("datasets", "effectiveness", "heterophily", "efficiency", "ablation", "figures", "fair"),
)
PAPER_DATASETS = (
    *("cora-ml", "citeseer", "coauthor-cs", "coauthor-physics", "amazon-computers"),
    *("amazon-photo", "chameleon"),
)
"""The seven graphs of the paper's tables, whatever else the catalog has."""
MAIN = MAIN_METHODS
BASELINES = ("demo-net", "dsgcn", "tail-gnn", "advfair", "redress")
OWN = ("rawlsgcn-graph", "rawlsgcn-grad")
# These were run with their authors' settings (the paper's appendix); nothing is searched.
NOT_SEARCHED = ("gcn", "demo-net", "tail-gnn")
HETEROPHILY, EFFICIENCY_GRAPH = "chameleon", "amazon-photo"
DECAYS = (5e-4, 5e-5, 5e-6, 0.0)
FAIR_EPOCHS = 200


@dataclass(frozen=True)
class Point:
    """One combination of a grid, with the seeds that it is trained with: a trial."""

    values: Mapping[str, Any]
    seeds: tuple[int, ...]

    @property
    def key(self) -> str:
        return json.dumps([dict(self.values), self.seeds], sort_keys=True)


@dataclass(frozen=True)
class Cell:
    """A method on a graph under a protocol: one study, whose trials are the points of a grid.

    ``variant`` tells apart what has the same method: a normalization of the ablation, or the
    number of epochs in Table 4. With ``quick`` the grid is searched with the first seed, and all
    seeds are run at the values found.
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
        """The study's name; in the fair protocol all nodes are judged, which needs no mention."""
        parts = ["rawlsgcn", self.protocol, self.dataset, self.method, self.variant]
        if self.evaluate == "all" and self.protocol != "fair":
            parts.append("all nodes")
        return "/".join(part for part in parts if part)

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What must be the same for a study to be gone on with, in the form that JSON keeps."""
        settings = find_method(self.method).configure(self.changes)
        made = {
            "rawlsgcn": __version__,
            "settings": asdict(settings),
            "grid": {name: list(values) for name, values in self.grid.items()},
            "seeds": list(self.seeds),
        }
        kept: dict[str, Any] = json.loads(json.dumps(made))
        return kept

    @property
    def together(self) -> bool:
        """Whether the points are trained as one (the GCN family) or one by one."""
        return self.protocol != "efficiency" and isinstance(find_method(self.method), Convolutional)

    def combinations(self) -> list[dict[str, Any]]:
        return [
            dict(zip(self.grid, values, strict=True)) for values in product(*self.grid.values())
        ]

    def points(self, quick: bool, done: Mapping[str, Mapping[str, Any]]) -> list[Point]:
        """The trials that this cell needs, given the records of those that are done.

        A quick search ends with the values found on the first seed, by validation accuracy and by
        test accuracy; which these are is known once the search is done. Where every run of the
        search diverged there is nothing to end with.
        """
        if not quick or len(self.seeds) == 1:
            return [Point(values, self.seeds) for values in self.combinations()]
        search = [Point(values, self.seeds[:1]) for values in self.combinations()]
        records = [done.get(point.key) for point in search]
        found = [record for record in records if record is not None]
        if len(found) < len(search):
            return search
        ends = [best(found, by) for by in ("validation_accuracy", "accuracy")]
        points = [Point(end["values"], self.seeds) for end in ends if end is not None]
        chosen = {point.key: point for point in points}
        return [*search, *chosen.values()]


def diverged(record: Mapping[str, Any]) -> bool:
    """Whether a run of a record ended in NaN or infinity, which its accuracy need not show.

    A node is classified whatever its logits are, but its loss is no number then: the bias of such
    a run is none, or the calibrated bias if it happened at validation nodes.
    """
    figures = ("accuracy", "validation_accuracy", "bias", "calibrated_bias")
    return any(None in record["runs"].get(name, ()) for name in figures)


def best(records: Iterable[Mapping[str, Any]], by: str) -> Mapping[str, Any] | None:
    """The record with the highest mean of a figure, among equals the first of the grid.

    A record with a diverged run cannot be the best; None where there is no other.
    """
    whole = [record for record in records if not diverged(record)]
    return max(whole, key=lambda record: score(record, by), default=None)


def score(record: Mapping[str, Any], by: str) -> float:
    """The mean of a figure over a record's runs; -1 where one of them diverged."""
    runs = record["runs"][by]
    return -1.0 if diverged(record) else float(sum(runs) / len(runs))


@dataclass(frozen=True)
class Plan:
    """Which parts, graphs, methods and seeds; the defaults are the whole paper.

    ``changes`` (settings of every method) and ``values`` (at most so many of each grid) make a
    smaller plan of the same form. ``evaluate`` is "test", or "all" to judge every labelled node
    outside training and validation, as the fair comparison always does.
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
        if self.evaluate not in EVALUATE:
            raise unknown_name("choice of nodes", self.evaluate, EVALUATE)
        for part in self.parts:
            if part not in PARTS:
                raise unknown_name("part of the paper", part, (*PARTS, "all"))
        for dataset in self.datasets:
            if dataset not in datasets():
                raise unknown_name("dataset", dataset, datasets())
        for method in self.methods:
            find_method(method)
        if not (self.parts and self.datasets and self.seeds):
            raise RawlsError("nothing to reproduce: name a part, a dataset and a seed at least")

    @property
    def chosen_methods(self) -> tuple[str, ...]:
        """In order of work: GCN and the two methods, then the baselines that are there."""
        if self.methods:
            known = (*MAIN, *BASELINES)
            return tuple(sorted(set(self.methods), key=lambda m: _place(m, known)))
        there = method_names()
        return tuple(name for name in (*MAIN, *BASELINES) if name in there)

    def cells(self) -> list[Cell]:
        """Every study, in order of work: the main methods on every graph, fairly too, then the
        baselines, the ablation, the baselines with the same freedom, and last the timings."""
        main = [name for name in self.chosen_methods if name in MAIN]
        others = [name for name in self.chosen_methods if name not in MAIN]
        ordered = [
            *self._paper(main),
            *self._fair(main),
            *self._paper(others),
            *self._ablation(),
            *self._fair(others),
            *self._efficiency(),
        ]
        return list({cell.name: cell for cell in ordered}.values())

    def _graphs(self) -> list[str]:
        """The graphs of the tables of effectiveness that are asked for."""
        plain = [name for name in self.datasets if name != HETEROPHILY]
        chosen = plain if "effectiveness" in self.parts else []
        if "heterophily" in self.parts and HETEROPHILY in self.datasets:
            chosen = [*chosen, HETEROPHILY]
        return chosen

    def _paper(self, methods: Iterable[str]) -> list[Cell]:
        methods = list(methods)
        return [self._cell("paper", graph, name) for graph in self._graphs() for name in methods]

    def _ablation(self) -> list[Cell]:
        """Beside the other forms each method's own, the doubly stochastic, and GCN to hold them
        against: they are the cells of Table 3."""
        if "ablation" not in self.parts:
            return []
        own = [name for name in OWN if name in self.chosen_methods]
        cells = []
        for graph in (name for name in self.datasets if name != HETEROPHILY):
            if "gcn" in self.chosen_methods:
                cells.append(self._cell("paper", graph, "gcn"))
            for name in own:
                for form in ABLATION_NORMALIZATIONS:
                    cells.append(self._cell("paper", graph, name, variant=form))
        return cells

    def _fair(self, methods: Iterable[str]) -> list[Cell]:
        if "fair" not in self.parts:
            return []
        methods = list(methods)
        return [self._cell("fair", graph, name) for graph in self.datasets for name in methods]

    def _efficiency(self) -> list[Cell]:
        if "efficiency" not in self.parts:
            return []
        cells = []
        for graph in (name for name in self.datasets if name in (EFFICIENCY_GRAPH, SYNTHETIC)):
            for name in self.chosen_methods:
                if name == "gcn":
                    cells += [self._timed(graph, name, epochs) for epochs in (100, 200)]
                else:
                    cells.append(self._timed(graph, name))
        return cells

    def _cell(self, protocol: str, graph: str, name: str, variant: str = "") -> Cell:
        own = find_method(name).defaults.normalization
        changes: dict[str, Any] = {}
        if variant and variant != own:
            changes["normalization"] = variant
        grid: Mapping[str, Sequence[Any]] = default_grid(find_method(name))
        if name in NOT_SEARCHED:
            grid = {}
        if protocol == "fair":
            grid = {"lr": LEARNING_RATES, "weight_decay": DECAYS}
            changes |= {"epochs": FAIR_EPOCHS, "patience": 0}
        return Cell(
            protocol,
            graph,
            name,
            "" if variant == own else variant,
            {key: tuple(values)[: self.values] for key, values in grid.items()},
            {**changes, **self.changes},
            self.seeds,
            self.quick and not isinstance(find_method(name), Convolutional) and bool(grid),
            "all" if protocol == "fair" else self.evaluate,
        )

    def _timed(self, graph: str, name: str, epochs: int | None = None) -> Cell:
        """The methods of the GCN family with every seed, each run timed alone; others once."""
        variant = "" if epochs is None else f"{epochs} epochs"
        changes = {} if epochs is None else {"epochs": epochs}
        family = isinstance(find_method(name), Convolutional)
        return Cell(
            "efficiency",
            graph,
            name,
            variant,
            changes={**changes, **self.changes},
            seeds=self.seeds if family else self.seeds[:1],
        )


def _place(name: str, known: Sequence[str]) -> int:
    return known.index(name) if name in known else len(known)
