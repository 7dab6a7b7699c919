"""What was changed or assumed while a graph was read, as fields, and the sentences about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from .._core.text import plural
from .catalog import CATALOG, MASKS

if TYPE_CHECKING:
    from torch_geometric.data import Data

#: How many texts an item of each list of facts has.
_TEXTS = {"columns_assumed": 3, "columns_ignored": 2, "left_out": 2}


@dataclass
class GraphFacts:
    """What a reader and the validation did to a graph.

    ``graph.facts`` holds those that differ from their defaults as pairs of plain Python values, so
    that a saved graph needs no class of this package.

    Attributes:
        columns_assumed: (file, columns, role): columns whose role was not given by their names.
        columns_ignored: (file, columns), or attributes of the nodes, that have no role.
        edge_attr_ignored: Whether there were edge attributes other than weights.
        self_loops: Self-loops that were dropped.
        zero_weights: Edges of weight zero that were dropped.
        repeated_edges: Edges that were merged with an equal one.
        weights_summed: Whether the weights of repeated edges were added.
        unequal_weights: Edges with another weight in each direction, replaced by the mean.
        tiny_weights: Edges that were dropped because float32 cannot represent their weights.
        arcs: The arcs of a directed graph before it was symmetrized.
        one_way_arcs: How many of them had no counterpart.
        word_labels: Whether the labels are words, which ``graph.class_names`` lists in order.
        not_in_labels: Nodes that the file of labels does not list, which are unlabeled.
        empty_classes: Classes below the highest that no node has.
        structural_features: Whether the features were made of the edges, as there are no others.
        left_out: (what, why): features, labels or masks that are flawed and not needed.
        stored_splits: How many splits were stored, of which the first is used.
        unlabeled_in_masks: Unlabeled nodes that were removed from the stored masks.
        split_made: The split that was made for a graph without one, as ``split_drawn``.
        split_drawn: The split that was drawn, made or asked for: a name, or ratios as text.
        split_removed: Whether that split was removed again, as predictions made elsewhere do not
            depend on it.
        published_split: Whether the default split is a stored one that the paper used.
    """

    columns_assumed: list[tuple[str, str, str]] = field(default_factory=list)
    columns_ignored: list[tuple[str, str]] = field(default_factory=list)
    edge_attr_ignored: bool = False
    self_loops: int = 0
    zero_weights: int = 0
    repeated_edges: int = 0
    weights_summed: bool = False
    unequal_weights: int = 0
    tiny_weights: int = 0
    arcs: int = 0
    one_way_arcs: int = 0
    word_labels: bool = False
    not_in_labels: int = 0
    empty_classes: list[int] = field(default_factory=list)
    structural_features: bool = False
    left_out: list[tuple[str, str]] = field(default_factory=list)
    stored_splits: int = 0
    unlabeled_in_masks: int = 0
    split_made: str = ""
    split_drawn: str = ""
    split_removed: bool = False
    published_split: bool = False

    @classmethod
    def of(cls, graph: Data) -> GraphFacts:
        """The facts that a graph carries; anything of another form is ignored."""
        facts, stored = cls(), graph.get("facts")
        known = {each.name: getattr(facts, each.name) for each in fields(facts)}
        for pair in stored if isinstance(stored, list | tuple) else ():
            if not isinstance(pair, list | tuple) or len(pair) != 2:
                continue
            name, value = pair
            default = known.get(name) if isinstance(name, str) else None
            if isinstance(default, list) and isinstance(value, list | tuple):
                setattr(facts, name, _items(name, value))
            elif default is not None and type(value) is type(default):
                setattr(facts, name, value)
        return facts

    def pairs(self) -> list[tuple[str, Any]]:
        """The facts that differ from their defaults, as ``graph.facts`` holds them."""
        plain = GraphFacts()
        named = ((each.name, getattr(self, each.name)) for each in fields(self))
        return [(name, value) for name, value in named if value != getattr(plain, name)]


def _items(name: str, values: Sequence[Any]) -> list[Any]:
    """Those that can be items of a list of facts, which may come from any file."""
    if name not in _TEXTS:
        return [each for each in values if type(each) is int]
    texts = [each for each in values if isinstance(each, list | tuple)]
    return [tuple(map(str, each)) for each in texts if len(each) == _TEXTS[name]]


def graph_notes(graph: Data) -> list[str]:
    """Say in sentences what was changed or assumed while a graph was read.

    Args:
        graph: A graph from ``load``, ``read``, ``synthetic`` or ``check``.

    Returns:
        One sentence for each fact; an empty list where nothing was changed.
    """
    facts = GraphFacts.of(graph)
    notes = []
    if graph.get("synthetic") is True:
        notes.append("synthetic graph: a degree-corrected stochastic block model, not real data.")
    for file, columns, role in facts.columns_assumed:
        verb = "are" if " and " in role else "is"
        notes.append(f"{file}: {columns} {verb} taken for {role}.")
    for file, columns in facts.columns_ignored:
        notes.append(f"{file}: {columns} {'are' if ', ' in columns else 'is'} not used.")
    if facts.edge_attr_ignored:
        notes.append("edge_attr is not used: put edge weights into edge_weight.")
    notes += _edge_notes(facts)
    if facts.structural_features:
        from .node_features import structural_note

        notes.append(structural_note(int(graph.num_nodes)))
    for what, why in facts.left_out:
        notes.append(f"the {what} are left out, as nothing here needs them: {why}.")
    if facts.word_labels and isinstance(graph.get("class_names"), list):
        numbered = [f"{number} {name}" for number, name in enumerate(graph.class_names[:5])]
        more = ", …" if len(graph.class_names) > 5 else ""
        notes.append(f"the classes are numbered by name: {', '.join(numbered)}{more}.")
    if facts.not_in_labels:
        verb = "is" if facts.not_in_labels == 1 else "are"
        notes.append(
            f"{facts.not_in_labels:,} of {plural(int(graph.num_nodes), 'node')} {verb} not in the "
            "file of labels, and so unlabeled."
        )
    if facts.empty_classes:
        which = ", ".join(map(str, facts.empty_classes[:5]))
        more = ", …" if len(facts.empty_classes) > 5 else ""
        notes.append(f"no node has the label {which}{more}, though higher labels are used.")
    if facts.split_drawn:
        notes.append(_split_note(graph, facts))
    if facts.stored_splits:
        notes.append(f"the first of {facts.stored_splits} stored splits is used.")
    if facts.unlabeled_in_masks:
        notes.append(f"{facts.unlabeled_in_masks:,} unlabeled nodes removed from the stored masks.")
    if facts.split_removed:
        notes.append(
            "the graph came without a split; if the model was trained on the one that was made "
            "when the graph was read, say evaluate='test'."
        )
    if facts.published_split:
        notes.append(_published_split(graph))
    return notes


def _edge_notes(facts: GraphFacts) -> list[str]:
    notes = []
    if facts.self_loops:
        notes.append(f"{plural(facts.self_loops, 'self-loop')} dropped.")
    if facts.zero_weights:
        notes.append(f"{plural(facts.zero_weights, 'edge')} of weight zero dropped.")
    if facts.repeated_edges:
        how = ", their weights summed" if facts.weights_summed else ""
        notes.append(f"{plural(facts.repeated_edges, 'repeated edge')} merged{how}.")
    if facts.unequal_weights:
        notes.append(
            f"{plural(facts.unequal_weights, 'edge')} had different weights in the two "
            "directions: their mean is used."
        )
    if facts.one_way_arcs and facts.one_way_arcs == facts.arcs:
        notes.append(
            "every edge is listed in one direction and used in both: the graph is undirected here."
        )
    elif facts.one_way_arcs:
        notes.append(
            f"directed graph symmetrized: {facts.one_way_arcs:,} of its {facts.arcs:,} "
            "arcs had no counterpart in the other direction."
        )
    if facts.tiny_weights:
        notes.append(
            f"{plural(facts.tiny_weights, 'edge')} of weight under 1.2e-38 dropped, too small to "
            "count."
        )
    return notes


def _split_note(graph: Data, facts: GraphFacts) -> str:
    """Which split was drawn, and how many nodes train."""
    masks = [graph.get(key) for key in MASKS]
    train, val, test = (0 if mask is None else int(mask.sum()) for mask in masks)
    sizes = f"{plural(train, 'node')} train, {val:,} validate and {test:,} test"
    if facts.split_made not in ("", "paper"):
        how = "a random split"
        if facts.split_made != "random":
            how = f"the split {facts.split_made} is drawn class by class"
        return (
            "the graph has no split, and too few labels for the paper's (20 a class, 500, 1,000): "
            f"{how}: {sizes}. Choose others with --split 0.6,0.2,0.2 (split='0.6,0.2,0.2')."
        )
    if facts.split_made == "paper":
        y = graph.get("y")
        unused = 0 if y is None else int((y >= 0).sum()) - train - val - test
        left = f", {unused:,} labeled nodes are not used" if unused else ""
        return (
            "the graph has no split: the paper's is drawn (20 training nodes of each class): "
            f"{sizes}{left}. Train on more with --split 0.6,0.2,0.2 (split='0.6,0.2,0.2')."
        )
    how = " class by class" if "," in facts.split_drawn else ""
    return f"the split {facts.split_drawn} is drawn{how}: {sizes}."


def _published_split(graph: Data) -> str:
    name = str(graph.get("name"))
    title = CATALOG[name].title if name in CATALOG else name
    masks = (graph.get(key) for key in MASKS)
    sizes = " / ".join(f"{int(mask.sum()):,}" for mask in masks if mask is not None)
    return (
        f"the first stored split of {title} is used ({sizes} nodes), which the paper's printed "
        "accuracies come from; the 20-per-class split of its text is --split paper."
    )
