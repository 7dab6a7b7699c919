"""Which split a graph gets, and what is said of it."""

from __future__ import annotations

import torch
from torch_geometric.data import Data

from rawlsgcn.graphs import check, graph_notes
from rawlsgcn.graphs.split_choice import FEW_LABELS, default_split, has_own_split


def test_the_drawn_split_is_noted_with_its_sizes() -> None:
    data = Data(edge_index=torch.randint(0, 3000, (2, 9000)), y=torch.arange(3000) % 3)
    notes = graph_notes(check(data))
    assert any("60 nodes train, 500 validate and 1,000 test, 1,440 labeled" in n for n in notes)
    assert any("--split 0.6,0.2,0.2" in note for note in notes)
    asked = check(data, split=(0.6, 0.2, 0.2))
    note = "the split 0.6,0.2,0.2 is drawn class by class: "
    note += "1,800 nodes train, 600 validate and 600 test."
    assert note in graph_notes(asked)
    assert note in graph_notes(check(asked))
    asked.train_mask, asked.val_mask = asked.val_mask, asked.train_mask
    assert note not in graph_notes(check(asked))


def unsplit(labels: int, nodes: int = 200) -> Data:
    """A ring without masks, in which only the first nodes have labels, of three classes."""
    y = torch.where(torch.arange(nodes) < labels, torch.arange(nodes) % 3, -1)
    ring = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    return Data(edge_index=ring, x=torch.rand(nodes, 2), y=y, num_nodes=nodes)


def test_half_of_few_labels_train_and_that_is_said() -> None:
    graph = check(unsplit(60))
    sizes = [int(graph[key].sum()) for key in ("train_mask", "val_mask", "test_mask")]
    assert sizes == [30, 15, 15]
    said = " ".join(graph_notes(graph))
    assert (
        "too few labels for the paper's (20 a class, 500, 1,000): the split 0.5,0.25,0.25" in said
    )
    assert "30 nodes train, 15 validate and 15 test" in said
    assert not has_own_split(graph)


def test_the_random_split_is_still_a_tenth_where_it_is_asked_for() -> None:
    graph = check(unsplit(60), split="random")
    assert int(graph.train_mask.sum()) == 6
    # Made up by an earlier version, which took this one where there were few labels.
    graph.facts = [("split_made", "random"), ("split_drawn", "random")]
    assert not has_own_split(graph)


def test_a_handful_of_labels_still_has_all_three_parts() -> None:
    assert default_split(torch.tensor([0, 0, 1, 1])) == "random"
    graph = check(unsplit(6))
    assert all(bool(graph[key].any()) for key in ("train_mask", "val_mask", "test_mask"))


def test_a_graph_with_labels_enough_gets_the_papers_split() -> None:
    assert default_split(torch.arange(1560) % 3) == "paper"
    assert default_split(torch.arange(1559) % 3) == FEW_LABELS
