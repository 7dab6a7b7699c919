"""A saved model recognizes its graph, also with the nodes in another order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

import rawlsgcn as rg
from rawlsgcn.experiments.model_files import TrainingGraph, in_order, split_words
from rawlsgcn.graphs import check


def ring(nodes: int = 40) -> Data:
    ends = torch.arange(nodes)
    edges = torch.stack([ends, (ends * 7 + 1) % nodes])
    return check(Data(edge_index=edges, y=ends % 2, node_ids=[f"n{i:02}" for i in range(nodes)]))


def shuffled(graph: Data) -> Data:
    places = torch.randperm(40, generator=torch.Generator().manual_seed(0))
    moved = in_order(graph, places)
    ids = [""] * 40
    for node, place in enumerate(places.tolist()):
        ids[place] = graph.node_ids[node]
    moved.node_ids = ids
    return moved


def test_the_graph_is_found_again_and_another_is_not() -> None:
    graph, other = ring(), ring(41)
    kept = TrainingGraph.of(graph)
    again = TrainingGraph(kept.edges, kept.tensors)
    moved = shuffled(graph)
    places = again.places(moved)
    assert places is not None
    assert [graph.node_ids[place] for place in places.tolist()] == moved.node_ids
    masks = [graph[key][places] for key in ("train_mask", "val_mask", "test_mask")]
    assert again.split(moved) == split_words(masks)
    assert again.places(other) is None
    assert again.split(other) is None
    back = TrainingGraph.of(shuffled(ring())).places(graph)
    assert back is not None


def test_a_model_of_the_structure_predicts_in_any_order(tmp_path: Path) -> None:
    graph = ring()
    result = rg.fit(graph, "gcn", seeds=1, epochs=5, check_weight_decay=False)
    result.save(tmp_path / "m")
    model, moved = rg.load_model(tmp_path / "m"), shuffled(graph)
    assert torch.equal(model.logits(graph), result.logits[0])
    places = TrainingGraph.of(graph).places(moved)
    assert torch.equal(model.logits(moved), result.logits[0][places])
    with pytest.raises(rg.RawlsError, match="can only be used on that graph"):
        model.logits(ring(41))


def test_models_of_which_less_was_kept_are_read(tmp_path: Path) -> None:
    graph = rg.synthetic(200)
    result = rg.fit(graph, "gcn", seeds=1, epochs=2, check_weight_decay=False)
    result.save(tmp_path / "m")
    path = tmp_path / "m" / "config.json"
    config = json.loads(path.read_text())
    for name in ("structural_features", "class_names", "edges"):
        del config[name]
    path.write_text(json.dumps(config))
    assert torch.equal(rg.load_model(tmp_path / "m").logits(graph), result.logits[0])
    path.write_text(json.dumps(config | {"class_names": ["a"]}))
    with pytest.raises(rg.RawlsError, match="1 names of 6 classes"):
        rg.load_model(tmp_path / "m")
