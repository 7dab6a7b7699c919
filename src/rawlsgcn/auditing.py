"""``rg.audit``: predictions of any model on a graph come in, and an :class:`Audit` goes out."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import __version__
from .audit_result import Audit
from .errors import RawlsError
from .evaluation.audit.columns import column_of, degrees
from .evaluation.audit.comparison import compare_models
from .evaluation.audit.grouping import Column, bins_of
from .evaluation.audit.model import Layout, Settings, audit_model
from .evaluation.audit.parts import How, ModelNodes, Nodes
from .evaluation.audit.scores import Scores

if TYPE_CHECKING:
    from torch_geometric.data import Data

SHOWN_NODES = 5000
"""Single nodes in the result at most; of larger graphs a sample."""


def layout_of(column: Column, degree: npt.NDArray[np.int64], bins: str | None) -> tuple[Layout, str]:
    """The groups of the evaluated nodes, whose ``column`` and ``degree`` are given."""
    table, member, words = bins_of(column.values, bins)
    if column.whole:
        present, value = np.unique(column.values, return_inverse=True)
        bin_of = np.zeros(len(present), np.int64)
        bin_of[value] = member
        numbers = present.astype(float) if column.ordered else np.full(len(present), np.nan)
        labels = [f"{each:.0f}" if column.ordered else str(each) for each in present]
    else:
        value, bin_of = member, np.arange(len(table))
        numbers = np.array([(each.low + each.high) / 2 for each in table])
        labels = [each.label for each in table]
    by_degree = column.name == "degree"
    return Layout(value, labels, numbers, table, bin_of, column.ordered, by_degree, degree), words


def audited(
    graph: Data,
    models: Sequence[Scores],
    chosen: npt.NDArray[np.int64],
    column: Column,
    *,
    bins: str | None,
    settings: Settings,
    evaluated: str,
    files: Mapping[str, str],
    command: str | None,
    shown: int = SHOWN_NODES,
    notes: Sequence[str] = (),
) -> Audit:
    """Judge ``models``, whose scores are of the ``chosen`` nodes, and every pair of them."""
    began = time.perf_counter()
    degree = degrees(graph)[chosen]
    here = Column(column.name, column.values[chosen])
    layout, words = layout_of(here, degree, bins)
    judged = [audit_model(model, layout, settings) for model in models]
    low = degree <= np.percentile(degree, 25)
    pairs = [compare_models(a, b, layout, low, settings) for a, b in combinations(models, 2)]
    how = How(
        version=__version__,
        seed=settings.seed,
        resamples=settings.resamples,
        level=settings.level,
        by=column.name,
        bins=words,
        evaluated=evaluated,
        graph_nodes=int(graph.num_nodes),
        graph_edges=int(graph.edge_index.shape[1]) // 2,
        nodes=len(chosen),
        smallest_group=settings.smallest,
        files=dict(files),
        command=command,
        seconds=time.perf_counter() - began,
    )
    return Audit(
        graph=str(graph.get("name") or "graph"),
        synthetic=bool(graph.get("synthetic")),
        column=column.name,
        ordered=column.ordered,
        models=judged,
        comparisons=pairs,
        how=how,
        nodes=_single_nodes(graph, models, chosen, here, degree, shown, settings.seed),
        notes=list(notes),
    )


def _single_nodes(
    graph: Data,
    models: Sequence[Scores],
    chosen: npt.NDArray[np.int64],
    column: Column,
    degree: npt.NDArray[np.int64],
    most: int,
    seed: int,
) -> Nodes | None:
    """The nodes for the explorer; of more than ``most`` a sample drawn without replacement."""
    if most <= 0:
        return None
    kept = np.arange(len(chosen))
    if len(chosen) > most:
        rng = np.random.default_rng([seed, 7])
        kept = np.sort(rng.choice(len(chosen), most, replace=False))
    ids: Any = graph.get("node_ids")
    names = np.arange(graph.num_nodes) if ids is None else ids
    values = column.values[kept]
    return Nodes(
        of=len(chosen),
        id=[_plain(names[node]) for node in chosen[kept]],
        value=[_plain(value) for value in values],
        degree=degree[kept].tolist(),
        label=graph.y.numpy()[chosen[kept]].tolist(),
        models=[
            ModelNodes(model.name, model.predicted[kept].tolist(), model.loss[kept].tolist())
            for model in models
        ],
    )


def _plain(value: Any) -> Any:
    """A number or text of Python's own, which JSON knows."""
    return value.item() if hasattr(value, "item") else value
