"""Nodes and links with attributes: graphs of networkx, and JSON files of its ``node_link_data``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..._core.errors import RawlsError, reading
from ..catalog import MASKS
from ..raw_graph import RawGraph, clean_ids
from .arrays import FEATURE_KEYS
from .column_names import LABEL_COLUMNS, SPLIT_COLUMNS, WEIGHT_COLUMNS
from .labels import label_column
from .split_column import split_codes

Array = NDArray[Any]
_ID, _ENDS = ("id",), ("source", "target")
_EXPECTED = "expected the keys nodes and edges (or links), as networkx.node_link_data writes them"


@dataclass
class NodeLinkGraph:
    """A graph as networkx has it; ``where`` is how error messages call it.

    ``ids`` may be any hashable values, ``nodes`` are their attributes, and ``links`` have a source,
    a target and attributes.
    """

    name: str
    where: str
    ids: list[Any]
    nodes: Sequence[Mapping[str, Any]]
    links: Sequence[tuple[Any, Any, Mapping[str, Any]]]
    directed: bool

    def raw(self, labels: str | None = None, features: Sequence[str] | None = None) -> RawGraph:
        """The pieces of the graph.

        Args:
            labels: The attribute with the labels; by default one that is called label, y or class.
            features: The attributes with the features, each a number or a list of numbers; by
                default x or features.

        Raises:
            RawlsError: If an attribute is missing, or has values of another kind.
        """
        ends, weight = self._edges()
        raw = RawGraph(
            self.name, ends[:, 0], ends[:, 1], weight, len(self.ids), graph_from=self.where
        )
        raw.node_ids = _plain_ids(self.ids, self.where)
        known = list(dict.fromkeys(str(name) for node in self.nodes for name in node))
        for name in [*([labels] if labels else []), *(features or [])]:
            if name not in known:
                has = f"they have {', '.join(known[:8])}" if known else "they have none"
                raise RawlsError(
                    f"'{name}' is no file, and no attribute of the nodes of {self.where}: {has}"
                )
        label = labels or _find(known, LABEL_COLUMNS)
        if label is not None:
            where = f"{self.where}: the attribute '{label}'"
            raw.y, raw.class_names = label_column(self._values(label), where)
            raw.facts.word_labels = raw.class_names is not None
        split = _find(known, SPLIT_COLUMNS - {label})
        if all(name in known for name in MASKS):
            raw.masks = {key: np.array([v is True for v in self._values(key)]) for key in MASKS}
        elif split is not None:
            words = [value or "" for value in self._values(split)]
            codes, wrong = split_codes(pd.Series(words, dtype=object))
            if not wrong.any():
                raw.masks = {key: codes == code for code, key in enumerate(MASKS)}
        columns = [name for name in FEATURE_KEYS if name in known][:1]
        columns = columns if features is None else list(features)
        if columns:
            raw.x = np.column_stack([self._numbers(name) for name in columns])
        used = {label, split, *columns, *MASKS}
        raw.unused_attributes = [name for name in known if name not in used]
        if raw.y is not None and raw.unused_attributes:
            unused = ", ".join(f"attribute '{name}'" for name in raw.unused_attributes[:5])
            raw.facts.columns_ignored.append((self.where, unused))
        return raw

    def _edges(self) -> tuple[Array, Array | None]:
        """The ends of the arcs, a row for each; and their weights, 1 where there is none."""
        places = {_key(node): place for place, node in enumerate(self.ids)}
        for place, node in enumerate(self.ids if len(places) < len(self.ids) else ()):
            if places[_key(node)] != place:
                raise RawlsError(f"{self.where}: the node id '{node}' appears twice")
        named = [node for *both, _ in self.links for node in both]
        for number, node in enumerate(named):
            if _key(node) not in places:
                raise RawlsError(
                    f"{self.where}: link {number // 2} (counted from 0) names the node '{node}', "
                    "which is not among the nodes"
                )
        ends = np.array([places[_key(node)] for node in named], np.int64).reshape(-1, 2)
        weight = None
        known = dict.fromkeys(str(name) for *_, link in self.links for name in link)
        name = _find(known, WEIGHT_COLUMNS)
        if name is not None:
            values = [link.get(name, 1) for *_, link in self.links]
            if not all(isinstance(value, int | float | np.number) for value in values):
                raise RawlsError(
                    f"{self.where}: '{name}' of the links must be numbers, as weights are"
                )
            weight = np.array(values, dtype=np.float64)
        if not self.directed:
            back = ends[:, 0] != ends[:, 1]
            ends = np.concatenate([ends, ends[back, ::-1]])
            weight = None if weight is None else np.concatenate([weight, weight[back]])
        return ends, weight

    def _values(self, name: str) -> list[Any]:
        return [node.get(name) for node in self.nodes]

    def _numbers(self, name: str) -> Array:
        try:
            values = np.array(self._values(name), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise RawlsError(
                f"{self.where}: the attribute '{name}' must be a number, or a list of as many "
                "numbers, for each node"
            ) from error
        return values.reshape(len(values), -1)


def _find(known: Iterable[str], names: Set[str]) -> str | None:
    return next((each for each in known if each.lower() in names), None)


def is_networkx(graph: Any) -> bool:
    """Whether this is a graph of networkx, which need not be installed."""
    return any(kind.__module__.startswith("networkx.") for kind in type(graph).__mro__)


def from_networkx(graph: Any) -> NodeLinkGraph:
    """Take the nodes and links of a networkx graph."""
    name = str(getattr(graph, "name", "") or "graph")
    nodes = [attributes for _, attributes in graph.nodes(data=True)]
    links = list(graph.edges(data=True))
    return NodeLinkGraph(name, "the graph", list(graph.nodes), nodes, links, graph.is_directed())


def read_node_link(path: Path) -> NodeLinkGraph:
    """Read a JSON file of networkx's ``node_link_data``.

    Nodes without an ``id`` are numbered by their places, as D3 does it.
    """
    with reading(path, "JSON"):
        content = json.loads(path.read_bytes().decode("utf-8-sig"))
    content = content if isinstance(content, dict) else {}
    nodes, links = content.get("nodes"), content.get("edges", content.get("links"))
    if not isinstance(nodes, list) or not isinstance(links, list):
        raise RawlsError(f"{path} is JSON, but not a graph of nodes and links: {_EXPECTED}")
    if not all(isinstance(each, dict) for each in (*nodes, *links)):
        raise RawlsError(f"{path}: every node and link must be a JSON object: {_EXPECTED}")
    numbered = not any("id" in node for node in nodes)
    for what, each, names in (("link", links, _ENDS), ("node", nodes, () if numbered else _ID)):
        for row, entry in enumerate(each):
            for name in names:
                if name not in entry:
                    raise RawlsError(f"{path}: {what} {row} (counted from 0) has no {name}")
    ids = [row if numbered else node["id"] for row, node in enumerate(nodes)]
    attributes = [_without(node, _ID) for node in nodes]
    ends = [(*(link[end] for end in _ENDS), _without(link, (*_ENDS, "key"))) for link in links]
    directed = content.get("directed") is True
    return NodeLinkGraph(path.stem, path.name, ids, attributes, ends, directed)


def _without(entry: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name not in names}


def _key(node: Any) -> Any:
    """A hashable id: JSON has lists where networkx had tuples."""
    if isinstance(node, list):
        return tuple(map(_key, node))
    return json.dumps(node) if isinstance(node, dict) else node


def _plain_ids(ids: list[Any], where: str) -> Array | None:
    """The ids as numbers, or all as text; None if they are 0 to n - 1."""
    if ids == list(range(len(ids))) and all(type(each) is int for each in ids):
        return None
    whole = all(type(each) is int and abs(each) < 2**63 for each in ids)
    return clean_ids(ids if whole else [str(each) for each in ids], where)
