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
from ..graphs.labels import INVENTED, has_own_split
from ..graphs.splits import MASKS

Ints = npt.NDArray[np.int64]
NOT_USED = (
    "the graph came without a split; if the model was trained on the one that was made up when the "
    "graph was read, say evaluate='test'."
)


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
        return load(graph), None
    if not isinstance(graph, Data):
        raise RawlsError(
            "the graph must be a torch_geometric Data (rg.read makes one of a file) or the name "
            f"of a dataset, not {type(graph).__name__}"
        )
    data = check(graph, need_features=False, need_labels=False)
    incoming, edges = graph.get("in_degree"), graph.get("edge_index")
    if isinstance(by, str) and by == "in-degree" and incoming is None and edges is not None:
        source, target = edges.cpu().numpy()
        if not both_ways(source, target, int(data.num_nodes)):
            incoming = in_degrees(source, target, int(data.num_nodes))
    if data.get("y") is None:
        left_out = [note for note in data.notes if note.startswith("the labels are left out")]
        why = left_out[0].partition(": ")[2] if left_out else "give them with --labels (labels=...)"
        raise RawlsError(f"there are no labels to hold the predictions against: {why.rstrip('.')}")
    return data, None if incoming is None else np.asarray(incoming)


def without_invented_split(data: Data) -> Data:
    """The predictions come from elsewhere: masks that the door made up mean nothing to them."""
    if has_own_split(data) or not all(key in data for key in MASKS):
        return data
    data = copy.copy(data)
    for key in MASKS:
        del data[key]
    notes = [note for note in data.get("notes") or [] if note != INVENTED]
    data.notes = [*notes, NOT_USED]
    return data
