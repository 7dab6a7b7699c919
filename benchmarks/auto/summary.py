"""Means, paired differences and checks of the evaluation, computed from its records."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rawlsgcn.graphs.catalog import CATALOG

from .records import AUTO
from .times import GPU_SECONDS, MEGABYTES, SECONDS
from .training import RIVALS

METRICS = ("accuracy", "low_degree_accuracy", "calibrated_bias")
SPLITS = 10
HOLDS, FAILS, MISSING = "holds", "does not hold", "not measured yet"


@dataclass(frozen=True)
class Difference:
    """The paired difference of a metric, ``auto`` minus a rival, over their common splits.

    Attributes:
        mean: The mean difference.
        low: The lower end of its 95 % t interval; None for fewer than two splits.
        high: The upper end.
        splits: The number of common splits.
    """

    mean: float
    low: float | None
    high: float | None
    splits: int


@dataclass(frozen=True)
class Check:
    """One condition: what must hold, what was measured, and the outcome."""

    condition: str
    measured: str
    outcome: str


class Summary:
    """The figures of all records.

    Args:
        records: The records, as :func:`benchmarks.auto.records.read_records` returns them.
        times: The times of ``auto``, as :func:`benchmarks.auto.times.read_times` returns them.
    """

    def __init__(
        self, records: Iterable[dict[str, Any]], times: Iterable[dict[str, Any]] = ()
    ) -> None:
        self.times = list(times)
        self.records = {(r["graph"], r["split"], r["model"]): r for r in records}
        found = {graph for graph, _, _ in self.records}
        known = [name for name in CATALOG if name in found]
        self.graphs = [*known, *sorted(found - set(known))]

    def place(self, graph: str) -> int:
        """The place of a graph in tables; those without a record last."""
        return self.graphs.index(graph) if graph in self.graphs else len(self.graphs)

    def of(self, graph: str, model: str) -> list[dict[str, Any]]:
        """The records of a model on a graph, by split."""
        chosen = [r for (g, _, m), r in self.records.items() if (g, m) == (graph, model)]
        return sorted(chosen, key=lambda record: int(record["split"]))

    def models(self) -> list[str]:
        """The models that have a record."""
        found = {model for _, _, model in self.records}
        return [model for model in (AUTO, *RIVALS) if model in found]

    def mean(self, graph: str, model: str, metric: str) -> float | None:
        """The mean of a metric over the splits that the model has; None without any."""
        values = [r[metric] for r in self.of(graph, model) if r[metric] is not None]
        return float(np.mean(values)) if values else None

    def parts(self, graph: str) -> dict[str, tuple[float, float, float]]:
        """Accuracy and low-degree accuracy above the GCN of the pool, and the ratio of biases.

        Of every member that is no student, and of the answer as parts are added.
        """
        figures: dict[str, list[list[float]]] = {}
        for record in self.of(graph, AUTO):
            members = {each["member"]: each for each in record.get("leaderboard", ())}
            steps = {each["part"]: each for each in record.get("parts", ())}
            if "GCN" not in members:
                continue
            for name, each in (members | steps).items():
                if "student" not in name or name in steps:
                    values = [each[metric] for metric in METRICS]
                    base = [members["GCN"][metric] for metric in METRICS]
                    if None not in (*values, *base):
                        figures.setdefault(name, []).append([*values, *base])
        found = {}
        for name, rows in figures.items():
            accuracy, low, bias, *base = np.mean(rows, axis=0)
            found[name] = (accuracy - base[0], low - base[1], bias / base[2])
        return found

    def pairs(self, graph: str, rival: str, metric: str) -> list[tuple[float, float]]:
        """The values of ``auto`` and of a rival on the splits that both have."""
        both = []
        for record in self.of(graph, AUTO):
            other = self.records.get((graph, record["split"], rival))
            if other is not None and None not in (record[metric], other[metric]):
                both.append((float(record[metric]), float(other[metric])))
        return both

    def difference(self, graph: str, rival: str, metric: str) -> Difference | None:
        """The paired difference with its interval; None without a common split."""
        pairs = self.pairs(graph, rival, metric)
        return t_interval([a - b for a, b in pairs]) if pairs else None

    def bias_ratio(self, graph: str, rival: str = "gcn") -> float | None:
        """The ratio of the mean calibrated biases over the common splits."""
        pairs = self.pairs(graph, rival, "calibrated_bias")
        ours, theirs = (sum(pair[i] for pair in pairs) for i in (0, 1))
        return ours / theirs if pairs and theirs > 0 else None

    def bias_interval(self, graph: str, rival: str = "gcn") -> tuple[float, float] | None:
        """The 95 % bootstrap interval of :meth:`bias_ratio` over splits; None for fewer than 3."""
        pairs = np.array(self.pairs(graph, rival, "calibrated_bias"))
        if len(pairs) < 3 or not (pairs[:, 1] > 0).all():
            return None
        drawn = np.random.default_rng(0).integers(len(pairs), size=(10_000, len(pairs)))
        ours, theirs = pairs[drawn].mean(1).T
        low, high = np.percentile(ours / theirs, [2.5, 97.5])
        return float(low), float(high)

    def complete(self, rival: str) -> bool:
        """Whether ``auto`` and a rival have ten common splits of all seven graphs."""
        return all(len(self.pairs(graph, rival, "accuracy")) >= SPLITS for graph in CATALOG)

    def runs(self, model: str) -> set[int]:
        """The numbers of runs with which a model was tuned."""
        return {r["runs"] for (_, _, m), r in self.records.items() if m == model and r["runs"]}

    def checks(self) -> list[Check]:
        """The conditions on ``auto``, on the seven graphs of the paper."""
        checks = [*self._against_gcn(), *map(self._against, RIVALS[1:])]
        checks += [self._time_on_two_cores(graph, limit) for graph, limit in SECONDS.items()]
        return [*checks, self._memory(), *self._time_on_gpu()]

    def _against_gcn(self) -> list[Check]:
        accuracy, low = (
            [d for g in CATALOG if (d := self.difference(g, "gcn", metric)) is not None]
            for metric in METRICS[:2]
        )
        ratios = [r for g in CATALOG if (r := self.bias_ratio(g)) is not None]
        number, measured = len(CATALOG), len(low)
        higher = sum(each.mean > 0 for each in accuracy)
        low_higher = sum(each.mean > 0 for each in low)
        above = sum(each.low is not None and each.low > 0 for each in low)
        gain = float(np.mean([each.mean for each in low])) if low else math.nan
        half = sum(each <= 0.5 for each in ratios)
        gained = f"{gain:+.2f} points over {measured} graphs" if low else "-"
        complete = self.complete("gcn")

        def check(condition: str, said: str, holds: bool) -> Check:
            return Check(condition, said if measured else "-", _outcome(complete, holds))

        return [
            check(
                f"accuracy higher than the GCN's on {number} of {number} graphs",
                f"on {higher} of {measured}",
                higher == number,
            ),
            check(
                f"low-degree accuracy higher on {number} of {number}",
                f"on {low_higher} of {measured}",
                low_higher == number,
            ),
            check(
                "its 95 % interval above zero on at least 6",
                f"on {above} of {measured}",
                above >= 6,
            ),
            check("low-degree accuracy at least 1.5 points higher on average", gained, gain >= 1.5),
            check(
                "calibrated bias at most half of the GCN's on at least 5",
                f"on {half} of {len(ratios)}",
                half >= 5,
            ),
            check("aim: low-degree accuracy 3 points higher on average", gained, gain >= 3),
            check(
                f"aim: calibrated bias at most half on {number} of {number}",
                f"on {half} of {len(ratios)}",
                half == number,
            ),
        ]

    def better_at_both(self, rival: str) -> list[str]:
        """The graphs on which a rival has both accuracies better than ``auto``."""
        return [
            graph
            for graph in self.graphs
            if all(
                (d := self.difference(graph, rival, metric)) is not None and d.mean < 0
                for metric in METRICS[:2]
            )
        ]

    def _against(self, rival: str) -> Check:
        measured = [graph for graph in CATALOG if self.pairs(graph, rival, "accuracy")]
        better = [graph for graph in self.better_at_both(rival) if graph in CATALOG]
        said = ", ".join(map(title, better)) or "none"
        fewest = min(self.runs(rival), default=0)
        ours = self.runs("gcn")
        if ours and fewest < min(ours):
            said += f" (its fewest runs were {fewest}, the GCN's {min(ours)}),"
        return Check(
            f"{title(rival)}: no graph where both its accuracy and its low-degree accuracy are "
            "better",
            f"{said} of {len(measured)}" if measured else "-",
            _outcome(self.complete(rival), not better),
        )

    def _times_on(self, graphs: Iterable[str], gpu: bool) -> list[dict[str, Any]]:
        """The times of ``auto`` on two cores, or on an H200."""
        every = [record for record in self.times if record["graph"] in graphs]
        if gpu:
            return [r for r in every if "H200" in (r["machine"]["gpu"] or "")]
        return [r for r in every if r["device"] == "cpu" and r["machine"]["threads"] == 2]

    def _time_on_two_cores(self, graph: str, limit: int) -> Check:
        found = [record["seconds"] for record in self._times_on([graph], gpu=False)]
        return Check(
            f"{title(graph)}: the whole command in at most {limit} s on two cores",
            f"{max(found):.0f} s" if found else "-",
            _outcome(bool(found), bool(found) and max(found) <= limit),
        )

    def _memory(self) -> Check:
        records = self._times_on(SECONDS, gpu=False)
        found = [record["peak_memory_mb"] for record in records]
        complete = {record["graph"] for record in records} == set(SECONDS)
        return Check(
            "its peak memory under 4 GB on these four graphs",
            f"at most {max(found) / 1024:.1f} GB" if found else "-",
            _outcome(complete, bool(found) and max(found) < MEGABYTES),
        )

    def _time_on_gpu(self) -> list[Check]:
        records = self._times_on(CATALOG, gpu=True)
        complete = {record["graph"] for record in records} == set(CATALOG)
        checks = []
        for what, key in (("search", "search_seconds"), ("whole command", "seconds")):
            found = [record[key] for record in records if record[key] is not None]
            checks.append(
                Check(
                    f"each graph in at most {GPU_SECONDS} s on an H200, the {what}",
                    f"at most {max(found):.1f} s" if found else "-",
                    _outcome(
                        complete and len(found) == len(records),
                        bool(found) and max(found) <= GPU_SECONDS,
                    ),
                )
            )
        return checks

    def to_dict(self) -> dict[str, Any]:
        """All figures, as ``auto.json`` keeps them."""
        graphs: dict[str, Any] = {}
        for graph in self.graphs:
            models = {}
            for model in self.models():
                records = self.of(graph, model)
                if not records:
                    continue
                models[model] = {
                    "splits": [record["split"] for record in records],
                    "runs": sorted({r["runs"] for r in records if r["runs"] is not None}),
                    "mean": {metric: self.mean(graph, model, metric) for metric in METRICS},
                    "by_split": {m: [r[m] for r in records] for m in METRICS},
                }
            against = {}
            for rival in self.models():
                differences = {
                    metric: asdict(d)
                    for metric in METRICS[:2]
                    if rival != AUTO and (d := self.difference(graph, rival, metric)) is not None
                }
                if differences:
                    against[rival] = {
                        **differences,
                        "bias_ratio_of_means": self.bias_ratio(graph, rival),
                        "bias_ratio_interval": self.bias_interval(graph, rival),
                    }
            graphs[graph] = {"models": models, "auto_minus": against}
        return {
            "graphs": graphs,
            "times": self.times,
            "checks": [asdict(check) for check in self.checks()],
        }


def t_interval(values: Sequence[float]) -> Difference:
    """The mean of paired differences with its 95 % t interval."""
    from scipy.stats import t

    count, mean = len(values), float(np.mean(values))
    if count < 2:
        return Difference(mean, None, None, count)
    half = float(t.ppf(0.975, count - 1)) * float(np.std(values, ddof=1)) / math.sqrt(count)
    return Difference(mean, mean - half, mean + half, count)


def title(name: str) -> str:
    """The name of a graph or a model that people read."""
    models = {AUTO: "auto", "gcn": "GCN", "appnp": "APPNP", "graphsage": "GraphSAGE", "gat": "GAT"}
    return CATALOG[name].title if name in CATALOG else models.get(name, name)


def _outcome(measured: bool, holds: bool) -> str:
    return (HOLDS if holds else FAILS) if measured else MISSING
