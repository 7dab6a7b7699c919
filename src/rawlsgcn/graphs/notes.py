"""What was changed or assumed while a graph was read, as fields, and the sentences about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .._core.text import plural
from .catalog import CATALOG, MASKS

if TYPE_CHECKING:
    from torch_geometric.data import Data

#: How many texts an item of each list of facts has.
_TEXTS = {"columns_assumed": 3, "columns_ignored": 2, "left_out": 2}
#: What is counted, and what was done with it.
_COUNTED_EDGES = (
    ("self_loops", "self-loop", "dropped."),
    ("zero_weights", "edge", "of weight zero dropped."),
    ("repeated_edges", "repeated edge", "merged{summed}."),
    ("unequal_weights", "edge", "had different weights in the two directions: their mean is used."),
    ("tiny_weights", "edge", "of weight under 1.2e-38 dropped, too small to count."),
)


@dataclass
class GraphFacts:
    """What a reader and the validation did to a graph.

    ``graph.facts`` holds those that differ from their defaults as pairs of plain Python values, so
    that a saved graph needs no class of this package.
    """

    # Each with its file: columns whose role was not given by their names, and columns (or
    # attributes of nodes) without a role.
    columns_assumed: list[tuple[str, str, str]] = field(default_factory=list)
    columns_ignored: list[tuple[str, str]] = field(default_factory=list)
    edge_attr_ignored: bool = False
    # Edges that were dropped, merged, or given the mean of their weights.
    self_loops: int = 0
    zero_weights: int = 0
    repeated_edges: int = 0
    weights_summed: bool = False
    unequal_weights: int = 0
    tiny_weights: int = 0
    # The arcs of a directed graph before it was symmetrized, and those without a counterpart.
    arcs: int = 0
    one_way_arcs: int = 0
    word_labels: bool = False  # graph.class_names lists them in order
    not_in_labels: int = 0  # nodes that the file of labels does not list
    empty_classes: list[int] = field(default_factory=list)
    structural_features: bool = False
    left_out: list[tuple[str, str]] = field(default_factory=list)  # what is flawed, and why
    stored_splits: int = 0
    unlabeled_in_masks: int = 0
    split_made: str = ""  # for a graph without one
    split_drawn: str = ""  # made or asked for: a name, or ratios as text
    split_removed: bool = False  # as predictions made elsewhere do not depend on it
    published_split: bool = False  # the default split is a stored one that the paper used

    @classmethod
    def of(cls, graph: Any) -> GraphFacts:
        """The facts that a graph, or a mapping of its parts, carries; others are ignored."""
        facts, stored = cls(), graph.get("facts")
        known = vars(cls())
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
        plain = vars(GraphFacts())
        return [(name, value) for name, value in vars(self).items() if value != plain[name]]


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
        numbered = [f"{number} {name}" for number, name in enumerate(graph.class_names)]
        notes.append(f"the classes are numbered by name: {first_few(numbered)}.")
    if facts.not_in_labels:
        verb = "is" if facts.not_in_labels == 1 else "are"
        notes.append(
            f"{facts.not_in_labels:,} of {plural(int(graph.num_nodes), 'node')} {verb} not in the "
            "file of labels, and so unlabeled."
        )
    if facts.empty_classes:
        which = first_few(facts.empty_classes)
        notes.append(f"no node has the label {which}, though higher labels are used.")
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
        name = str(graph.get("name"))
        title = CATALOG[name].title if name in CATALOG else name
        masks = (graph.get(key) for key in MASKS)
        sizes = " / ".join(f"{int(mask.sum()):,}" for mask in masks if mask is not None)
        notes.append(
            f"the first stored split of {title} is used ({sizes} nodes), which the paper's printed "
            "accuracies come from; the 20-per-class split of its text is --split paper."
        )
    return notes


def first_few(names: Iterable[Any]) -> str:
    """The first five names, for a sentence."""
    listed = [str(name) for name in names]
    return ", ".join(listed[:5]) + (", …" if len(listed) > 5 else "")


def _edge_notes(facts: GraphFacts) -> list[str]:
    summed = ", their weights summed" if facts.weights_summed else ""
    notes = [
        f"{plural(count, what)} {done.format(summed=summed)}"
        for name, what, done in _COUNTED_EDGES
        if (count := getattr(facts, name))
    ]
    if facts.one_way_arcs and facts.one_way_arcs == facts.arcs:
        notes.append(
            "every edge is listed in one direction and used in both: the graph is undirected here."
        )
    elif facts.one_way_arcs:
        notes.append(
            f"directed graph symmetrized: {facts.one_way_arcs:,} of its {facts.arcs:,} "
            "arcs had no counterpart in the other direction."
        )
    return notes


def _split_note(graph: Data, facts: GraphFacts) -> str:
    """Which split was drawn, and how many nodes train."""
    masks = [graph.get(key) for key in MASKS]
    train, val, test = (0 if mask is None else int(mask.sum()) for mask in masks)
    sizes = f"{plural(train, 'node')} train, {val:,} validate and {test:,} test"
    if facts.split_made == "paper":
        y = graph.get("y")
        unused = 0 if y is None else int((y >= 0).sum()) - train - val - test
        left = f", {unused:,} labeled nodes are not used" if unused else ""
        return (
            "the graph has no split: the paper's is drawn (20 training nodes of each class): "
            f"{sizes}{left}. Train on more with --split 0.6,0.2,0.2 (split='0.6,0.2,0.2')."
        )
    if facts.split_made:
        how = f"the split {facts.split_made} is drawn class by class"
        how = "a random split" if facts.split_made == "random" else how
        return (
            "the graph has no split, and too few labels for the paper's (20 a class, 500, 1,000): "
            f"{how}: {sizes}. Choose others with --split 0.6,0.2,0.2 (split='0.6,0.2,0.2')."
        )
    how = " class by class" if "," in facts.split_drawn else ""
    return f"the split {facts.split_drawn} is drawn{how}: {sizes}."
