"""``advise``: from the graph alone, which method to try first, why, and what it will cost.

The rules are few and stand on seven graphs (evaluation/evidence.py): where the weights of badly
and well connected nodes in the gradient differ much, RawlsGCN-Graph helped the badly connected;
where they differ less it made the loss more even at some price; where neighbours are not alike
nothing helped. The bounds between the cases lie midway between measured graphs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from .evaluation.costs import Costs
from .evaluation.evidence import MEASURED, Figures, Measured
from .evaluation.portrait import FEW, Portrait
from .graphs import check, load

if TYPE_CHECKING:
    from torch_geometric.data import Data

#: Ratios of weights that divide the cases: between Citeseer (1.20) and Cora-ML (1.50), and
#: between Coauthor-CS (1.56) and Amazon-Computers (1.84).
SLIGHT, STRONG = 1.35, 1.7
#: Adjusted homophily under which neighbours say little: between Chameleon (0.03) and Citeseer.
ALIKE = 0.35


class Case(Enum):
    """How a graph stands, as far as it can be told before training."""

    EVEN = "even"
    SLIGHT = "slightly uneven"
    UNEVEN = "uneven"
    STRONG = "strongly uneven"
    UNLIKE = "neighbours are not alike"

    @classmethod
    def of(cls, weight_ratio: float, adjusted_homophily: float) -> Case:
        """The case of a graph whose quarters of degrees lie apart; homophily may be NaN."""
        if adjusted_homophily < ALIKE:
            return cls.UNLIKE
        if weight_ratio < SLIGHT:
            return cls.SLIGHT
        return cls.UNEVEN if weight_ratio < STRONG else cls.STRONG


@dataclass(frozen=True)
class Advice:
    """Which method to try first on a graph (``first``) and next, and why, in words."""

    name: str
    case: Case
    first: str
    then: tuple[str, ...]
    headline: str
    reasons: tuple[str, ...]
    cautions: tuple[str, ...]
    portrait: Portrait
    costs: Costs

    @property
    def code(self) -> str:
        """The line of Python that does it."""
        methods = ", ".join(f'"{method}"' for method in self.compared)
        return f"rg.compare(graph, [{methods}])"

    @property
    def compared(self) -> tuple[str, ...]:
        """A plain GCN, which everything is held against, then the advised methods."""
        return tuple(dict.fromkeys(("gcn", self.first, *self.then)))

    def command(self, graph: str = "--graph FILE") -> str:
        """The command line that does it; ``graph`` are the options that name the graph."""
        return f"rawlsgcn compare {graph} --methods {','.join(self.compared)} --out out"

    def to_dict(self) -> dict[str, Any]:
        """What ``--json`` writes; a figure that is not known is null."""
        from .result import jsonable

        told: dict[str, Any] = jsonable(
            {
                "graph": self.name,
                "case": self.case.value,
                "first": self.first,
                "then": list(self.then),
                "headline": self.headline,
                "reasons": list(self.reasons),
                "cautions": list(self.cautions),
                "code": self.code,
                "portrait": self.portrait.to_dict(),
                "costs": self.costs.to_dict(),
            }
        )
        return told

    def __str__(self) -> str:
        lines = [self.headline, *(f"- {reason}" for reason in self.reasons)]
        lines += [f"! {caution}" for caution in self.cautions]
        return "\n".join([*lines, f"Try: {self.code}"])

    def _repr_html_(self) -> str:
        from .reporting.notebook import advice_html

        return advice_html(self)


def advise(graph: Data | str) -> Advice:
    """Look at a graph, without training, and say which method to try first and why.

    Args:
        graph: A torch_geometric ``Data`` (features and labels may be missing), or the name of a
            dataset. With labels the advice knows how alike neighbours are.
    """
    if isinstance(graph, str):
        graph = load(graph)
    else:
        graph = check(graph, need_features=False, need_labels=False)
    portrait, costs = Portrait.of(graph), Costs.of(graph)
    apart = portrait.low.high < portrait.high.low
    even = not apart or portrait.weight_ratio <= 1
    case = Case.EVEN if even else Case.of(portrait.weight_ratio, portrait.adjusted_homophily)
    first, then, headline = _CHOICES[case]
    return Advice(
        name=str(graph.get("name") or "graph"),
        case=case,
        first=first,
        then=then,
        headline=headline,
        reasons=(*_looks(portrait, apart), *_precedent(case), _cost(costs)),
        cautions=tuple(_cautions(case, portrait)),
        portrait=portrait,
        costs=costs,
    )


_CHOICES: dict[Case, tuple[str, tuple[str, ...], str]] = {
    Case.EVEN: (
        "gcn",
        (),
        "Train a plain GCN: this graph's degrees give no ground for a degree bias",
    ),
    Case.SLIGHT: (
        "gcn",
        ("rawlsgcn-graph",),
        "Train a plain GCN first and audit it: a degree bias is unlikely to be large here",
    ),
    Case.UNEVEN: (
        "rawlsgcn-grad",
        ("rawlsgcn-graph",),
        "Try RawlsGCN-Grad first, beside a plain GCN: degrees are uneven, the gain is uncertain",
    ),
    Case.STRONG: (
        "rawlsgcn-graph",
        ("rawlsgcn-grad",),
        "Try RawlsGCN-Graph first: nodes with few neighbours count for little in a GCN here",
    ),
    Case.UNLIKE: (
        "gcn",
        (),
        "Train a plain GCN and audit it: whether degree harms anybody here is not known",
    ),
}


def _looks(portrait: Portrait, apart: bool) -> list[str]:
    """What the graph itself shows."""
    low, high, homophily = portrait.low, portrait.high, portrait.adjusted_homophily
    told = [
        f"{100 * portrait.few:.0f} % of the {portrait.nodes:,} nodes have at most {FEW} "
        f"neighbours; the median is {portrait.median_degree:,.0f}, the most {portrait.max_degree:,}"
        + (f"; {portrait.isolated:,} have none" if portrait.isolated else "")
        + "."
    ]
    if apart:
        told.append(
            f"In the gradient of a GCN (Theorem 1) a node with at least {high.low:,} neighbours "
            f"weighs {portrait.weight_ratio:.2f} times as much as one with at most {low.high:,}."
        )
    else:
        told.append("Too many nodes share one degree for quarters of low and high degrees.")
    if not math.isnan(homophily):
        told.append(
            f"{100 * portrait.homophily:.0f} % of the edges join nodes of one class (adjusted for "
            f"the classes' sizes: {homophily:.2f}, where 0 is chance); around low-degree nodes "
            f"{_share(low.homophily)}, around high-degree nodes {_share(high.homophily)}."
        )
    return told


def _share(value: float) -> str:
    return "unknown" if math.isnan(value) else f"{100 * value:.0f} %"


def _precedent(case: Case) -> list[str]:
    """What happened on measured graphs in the same case."""
    alike = [
        each for each in MEASURED if Case.of(each.weight_ratio, each.adjusted_homophily) is case
    ]
    return [_happened(each) for each in alike]


def _happened(measured: Measured) -> str:
    return (
        f"Against a plain GCN on {measured.title} (weights {measured.weight_ratio:.2f}), "
        f"{_change('RawlsGCN-Graph', measured.graph, measured.gcn)}; "
        f"{_change('RawlsGCN-Grad', measured.grad, measured.gcn)} "
        f"(results/defaults/{measured.name}.json)."
    )


def _change(title: str, figures: Figures, gcn: Figures) -> str:
    low, accuracy = figures.low - gcn.low, figures.accuracy - gcn.accuracy
    return (
        (
            f"{title}: low-degree accuracy {low:+.1f} points, accuracy {accuracy:+.1f}, calibrated "
            f"bias {gcn.calibrated_bias:g} to {figures.calibrated_bias:g}"
        )
        .replace("-0.0", "0.0")
        .replace(" -", " \N{MINUS SIGN}")
    )


def _cost(costs: Costs) -> str:
    supposed = f" ({'; '.join(costs.supposed)})" if costs.supposed else ""
    seconds = costs.seconds
    took = f"{seconds:,.0f} s" if seconds < 600 else f"{seconds / 60:,.0f} minutes"
    memory = (
        f"{costs.memory_mb:,.0f} MB"
        if costs.memory_mb < 10_000
        else f"{costs.memory_mb / 1024:,.0f} GB"
    )
    return (
        f"{costs.runs} runs of {costs.epochs} epochs take about {'1 s' if seconds < 1 else took} "
        f"and {memory} on two CPU cores{supposed}; expect a factor of two either way."
    )


def _cautions(case: Case, portrait: Portrait) -> list[str]:
    told = []
    if math.isnan(portrait.homophily) and case is not Case.EVEN:
        told.append(
            "Without labels it is not known how alike neighbours are; where they are not alike "
            "(Chameleon) neither method helped low-degree nodes."
        )
    if case is Case.STRONG:
        told.append(
            "Part of such a gain is regularisation: on Amazon-Photo a plain GCN with little weight "
            "decay (--set weight_decay=5e-6) comes to 89.2 %, against 79.0 % by default and 89.5 % "
            "for RawlsGCN-Graph. Try that too."
        )
    if case is Case.UNLIKE:
        told.append(
            "A GCN averages neighbours, which helps little where they are not alike: a method that "
            "keeps a node apart from its neighbours may serve everybody better than a fair GCN."
        )
    if portrait.isolated > 0.05 * portrait.nodes:
        told.append(
            f"{100 * portrait.isolated / portrait.nodes:.0f} % of the nodes have no neighbours: "
            "they are classified by their own features alone, whatever the method."
        )
    if portrait.nodes < 500:
        told.append(
            "The graph is small: differences between degrees will hardly be told from luck."
        )
    told.append(
        "This is a guess from seven graphs. Whether there is a bias, and whether it is more than "
        "chance, the audit of a trained model tells."
    )
    return told
