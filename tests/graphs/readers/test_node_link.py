"""Graphs with attributes: networkx objects and JSON of node_link_data, and what is no graph."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import rawlsgcn as rg
from rawlsgcn.graphs import graph_notes, read


def karate(**attributes: Any) -> nx.Graph:
    graph = nx.karate_club_graph()
    for name, values in attributes.items():
        nx.set_node_attributes(graph, dict(zip(graph, values, strict=True)), name)
    return graph


def write(graph: nx.Graph, path: Path, edges: str = "edges") -> Path:
    path.write_text(json.dumps(nx.node_link_data(graph, edges=edges)))
    return path


@pytest.mark.parametrize("edges", ["edges", "links"])
def test_json_and_object_are_the_same_graph(tmp_path: Path, edges: str) -> None:
    graph = karate()
    of_object = read(graph, labels="club")
    of_file = read(write(graph, tmp_path / "karate.json", edges), labels="club")
    for key in ("edge_index", "edge_weight", "y", "x", "train_mask"):
        assert of_object[key].equal(of_file[key]), key
    assert of_file.name == "karate"
    assert of_object.class_names == of_file.class_names == ["Mr. Hi", "Officer"]
    assert of_object.edge_index.shape == (2, 2 * 78)
    assert not any("symmetrized" in note for note in graph_notes(of_object))


def test_known_attributes_are_labels_features_and_split() -> None:
    words = ["train"] * 10 + ["val"] * 10 + ["test"] * 10 + [""] * 4
    rows = np.random.default_rng(0).random((34, 3)).tolist()
    graph = read(karate(label=[n % 3 for n in range(34)], split=words, x=rows))
    assert graph.y.tolist() == [n % 3 for n in range(34)]
    assert graph.x.shape == (34, 3)
    assert [int(graph[key].sum()) for key in ("train_mask", "val_mask", "test_mask")] == [10] * 3
    assert any(note == "the graph: attribute 'club' is not used." for note in graph_notes(graph))


def test_a_directed_graph_keeps_its_in_degrees_for_the_audit() -> None:
    graph = nx.DiGraph([("a", "b"), ("a", "c"), ("b", "c"), ("d", "c")])
    nx.set_node_attributes(graph, {"a": "x", "b": "y", "c": "x", "d": "y"}, "label")
    clean = read(graph, need_labels=False, need_features=False)
    assert clean.node_ids == ["a", "b", "c", "d"]
    assert any("used in both" in note for note in graph_notes(clean))
    audit = rg.audit(graph, {"m": np.array([0, 1, 0, 1])}, by="in-degree", resamples=100)
    assert audit.nodes is not None
    assert (audit.nodes.id, audit.nodes.value) == (["a", "b", "c", "d"], [0, 1, 3, 0])


def test_nodes_without_a_label_are_unlabeled_and_ids_may_be_tuples() -> None:
    grid = nx.grid_2d_graph(3, 3)
    labels = {node: "even" if sum(node) % 2 == 0 else "odd" for node in grid}
    del labels[(2, 2)]
    graph = read(grid, labels=labels, split=(0.4, 0.3, 0.3))
    assert graph.node_ids[:2] == ["(0, 0)", "(0, 1)"]
    assert graph.y.tolist().count(-1) == 1
    assert graph.class_names == ["even", "odd"]


def test_attributes_by_name_are_features() -> None:
    graph = read(
        karate(age=range(34), height=np.arange(34) / 7.0), labels="club", features="age,height"
    )
    assert graph.x[3].tolist() == pytest.approx([3, 3 / 7])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("source,target\n0,1\n", "cannot be read as JSON"),
        ("[1, 2]", "not a graph of nodes and links"),
        ('{"elements": []}', "not a graph of nodes and links"),
        ('{"nodes": [1], "edges": []}', "must be a JSON object"),
        ('{"nodes": [{"id": 1}, {"name": 2}], "links": []}', "node 1 .* has no id"),
        ('{"nodes": [{"id": 1}], "links": [{"source": 1}]}', "link 0 .* has no target"),
        ('{"nodes": [{"id": 1}], "links": [{"source": 1, "target": 5}]}', "names the node '5'"),
        ('{"nodes": [{"id": 1}, {"id": 1}], "links": []}', "'1' appears twice"),
        ("[" * 100_000, "cannot be read as JSON"),
    ],
)
def test_json_that_is_no_graph_gets_one_sentence(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "g.json"
    path.write_text(content)
    with pytest.raises(rg.RawlsError, match=said) as caught:
        read(path)
    assert "g.json" in str(caught.value)


def test_a_header_of_labels_that_is_no_node_names_the_cure(tmp_path: Path) -> None:
    graph = nx.relabel_nodes(nx.karate_club_graph(), "n{}".format)
    path, labels = write(graph, tmp_path / "g.json", "edges"), tmp_path / "y.csv"
    labels.write_text("who,team\n" + "".join(f"{node},a\n" for node in graph))
    with pytest.raises(rg.RawlsError, match=r"y.csv, line 1: node who is not in g.json: .* 'id'"):
        read(path, labels=labels)


def test_labels_that_are_missing_are_offered_by_name() -> None:
    with pytest.raises(rg.RawlsError, match="attributes club: name the one to learn"):
        read(karate())
    with pytest.raises(rg.RawlsError, match=r"'clubs' is no file, and no attribute .* have club"):
        read(karate(), labels="clubs")
    with pytest.raises(rg.RawlsError, match="all whole numbers or all words"):
        read(karate(label=[*range(33), "x"]))
    with pytest.raises(rg.RawlsError, match="'club' must be a number"):
        read(karate(label=[0, 1] * 17), features="club")
