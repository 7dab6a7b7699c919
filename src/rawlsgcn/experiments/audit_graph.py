"""The graph that an audit is held on: its labels, its directions, and whose split it has."""

from __future__ import annotations

import copy
import operator
from typing import Any

import numpy as np
import numpy.typing as npt
from torch_geometric.data import Data

from .._core.errors import RawlsError
from ..graphs import check, load
from ..graphs.edges import both_ways, in_degrees
from ..graphs.labels import has_own_split
from ..graphs.notes import GraphFacts
from ..graphs.splits import MASKS

Ints = npt.NDArray[np.int64]


def whole(name: str, value: Any) -> int:
    """A number of draws or a seed that the user gave."""
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if number < 0:
        raise RawlsError(f"{name} must be a whole number of 0 or more, not {value!r}")
    return number


def graph_of(graph: Data | str, by: Any) -> tuple[Data, Ints | None]:
    """The graph after the checks at the door, and the in-degrees if they are asked for and known.

    Where every edge goes both ways the directions are gone, or there never were any.
    """
    if isinstance(graph, str):
        return load(graph, sparse=True), None
    if not isinstance(graph, Data):
        raise RawlsError(
            "the graph must be a torch_geometric Data (rg.read makes one of a file) or the name "
            f"of a dataset, not {type(graph).__name__}"
        )
    data = check(graph, sparse=True, need_features=False, need_labels=False)
    incoming, edges = graph.get("in_degree"), graph.get("edge_index")
    if isinstance(by, str) and by == "in-degree" and incoming is None and edges is not None:
        source, target = edges.cpu().numpy()
        if not both_ways(source, target, int(data.num_nodes)):
            incoming = in_degrees(source, target, int(data.num_nodes))
    if data.get("y") is None:
        left_out = dict(GraphFacts.of(data).left_out)
        why = left_out.get("labels", "give them with --labels (labels=...)")
        raise RawlsError(f"there are no labels to compare the predictions with: {why}")
    return data, None if incoming is None else np.asarray(incoming)


def without_invented_split(data: Data) -> Data:
    """Remove masks that the validation made: the predictions come from elsewhere."""
    if has_own_split(data) or not all(key in data for key in MASKS):
        return data
    data = copy.copy(data)
    for key in MASKS:
        del data[key]
    facts = GraphFacts.of(data)
    facts.split_made, facts.split_removed = "", True
    data.facts = facts.pairs()
    return data
