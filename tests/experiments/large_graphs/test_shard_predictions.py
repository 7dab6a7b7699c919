"""Predictions and audits of shards are those of the graph in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import rawlsgcn as rg
from rawlsgcn._core import memory
from rawlsgcn._core.errors import RawlsError
from rawlsgcn.experiments.large_graphs import shard_predictions
from rawlsgcn.experiments.large_graphs.shard_predictions import (
    block_ids,
    predict_shards,
    shard_split,
)
from rawlsgcn.graphs.shards import Shards, write_shards
from rawlsgcn.training.sampled import inference
from rawlsgcn.training.sampled.sources import Source


@pytest.fixture(scope="module")
def graph() -> Data:
    return rg.synthetic(300)


@pytest.fixture(scope="module")
def shards(graph: Data, tmp_path_factory: pytest.TempPathFactory) -> Shards:
    return write_shards(graph, 3, tmp_path_factory.mktemp("shards"))


def predicted(model: rg.TrainedModel, shards: Shards, limit: int = 10**11) -> torch.Tensor:
    blocks = list(predict_shards(model, shards, memory=limit))
    assert [first for first, _ in blocks] == np.cumsum([0, *map(len, dict(blocks).values())])[
        :-1
    ].tolist()
    return torch.cat([each for _, each in blocks])


@pytest.mark.parametrize(
    "name", ["gcn", "rawlsgcn-graph", "rawlsgcn-grad", "smoothed-mlp", "dsgcn"]
)
def test_shards_and_the_graph_have_the_same_predictions(
    name: str, graph: Data, shards: Shards, tmp_path: Path
) -> None:
    rg.fit(graph, name, seeds=1, epochs=5, check_weight_decay=False).save(tmp_path / "model")
    model = rg.load_model(tmp_path / "model")
    found = predicted(model, shards)
    assert (found - model.predict(graph)).abs().max() < 1e-5


@pytest.mark.parametrize("name", ["gcn", "smoothed-mlp"])
def test_negative_features_are_divided_as_in_memory(name: str, graph: Data, tmp_path: Path) -> None:
    rg.fit(graph, name, seeds=1, epochs=5, check_weight_decay=False).save(tmp_path / "model")
    model = rg.load_model(tmp_path / "model")
    other = graph.clone()
    other.x = other.x.to_dense().clone()
    other.x[:, 0] -= 0.5
    found = predicted(model, write_shards(other, 2, tmp_path / "shards"))
    assert (found - model.predict(other)).abs().max() < 1e-5
    assert (found - model.predict(graph)).abs().max() > 1e-4


def test_the_split_is_that_of_the_training_graph_alone(
    graph: Data, shards: Shards, tmp_path: Path
) -> None:
    rg.fit(graph, "gcn", seeds=1, epochs=1, check_weight_decay=False).save(tmp_path / "model")
    model = rg.load_model(tmp_path / "model")
    found = shard_split(model, shards)
    assert found is not None
    assert found.tolist() == model.split(graph)
    other = write_shards(rg.synthetic(300, seed=5), 2, tmp_path / "shards")
    assert shard_split(model, other) is None


def test_a_model_that_needs_the_whole_graph_says_so(
    graph: Data, shards: Shards, tmp_path: Path
) -> None:
    rg.fit(graph, "dsgcn", seeds=1, epochs=1).save(tmp_path / "model")
    with pytest.raises(
        RawlsError, match="use dsgcn with these settings, which needs the whole graph"
    ):
        predicted(rg.load_model(tmp_path / "model"), shards, 1000)


def test_hidden_values_over_the_limit_are_an_error(
    graph: Data, shards: Shards, tmp_path: Path
) -> None:
    rg.fit(graph, "gcn", seeds=1, epochs=1, check_weight_decay=False).save(tmp_path / "model")
    with pytest.raises(RawlsError, match=r"100 kB of memory are too little to predict with gcn"):
        predicted(rg.load_model(tmp_path / "model"), shards, 100_000)


@pytest.mark.parametrize("name", ["gcn", "smoothed-mlp"])
def test_blocks_follow_from_the_memory(
    name: str, graph: Data, shards: Shards, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rg.fit(graph, name, seeds=1, epochs=1, check_weight_decay=False).save(tmp_path / "model")
    model = rg.load_model(tmp_path / "model")
    wide = predicted(model, shards)
    monkeypatch.setattr(memory, "code_memory", lambda: 0)
    monkeypatch.setattr(shard_predictions, "_LEAST_ROWS", 8)
    monkeypatch.setattr(inference, "LEAST_ROWS", 8)
    read = []
    rows_of = Source.features
    monkeypatch.setattr(Source, "features", lambda *of: (read.append(len(of[1])), rows_of(*of))[1])
    with pytest.raises(RawlsError, match=r"50 kB of memory are too little to predict .*--memory"):
        predicted(model, shards, 50_000)
    little = 700_000 if name == "gcn" else 100_000
    blocks = [len(each) for _, each in predict_shards(model, shards, memory=little)]
    assert max(read if name == "gcn" else blocks) < 100
    assert (predicted(model, shards, little) - wide).abs().max() < 1e-6


def test_a_graph_of_other_features_is_an_error(shards: Shards, tmp_path: Path) -> None:
    other = rg.synthetic(300, features=50)
    rg.fit(other, "gcn", seeds=1, epochs=1, check_weight_decay=False).save(tmp_path / "model")
    with pytest.raises(RawlsError, match=r"trained on 50 features, the graph in .* has 600"):
        predicted(rg.load_model(tmp_path / "model"), shards)


def test_weights_that_do_not_fit_are_an_error(graph: Data, shards: Shards, tmp_path: Path) -> None:
    rg.fit(graph, "gcn", seeds=1, epochs=1, check_weight_decay=False).save(tmp_path / "model")
    model = rg.load_model(tmp_path / "model")
    model.state.pop("layers.0.bias")
    with pytest.raises(RawlsError, match="do not fit its settings"):
        predicted(model, shards)


def test_ids_come_in_blocks_over_the_cuts(graph: Data, tmp_path: Path) -> None:
    assert block_ids(write_shards(graph, 2, tmp_path / "a"))(3, 6).tolist() == [3, 4, 5]
    named = graph.clone()
    named.node_ids = [f"n{each}" for each in range(300)]
    shards = write_shards(named, 3, tmp_path / "b")
    cut = shards.cuts[1]
    assert block_ids(shards)(cut - 1, cut + 1).tolist() == [f"n{cut - 1}", f"n{cut}"]


def test_an_audit_of_shards_is_that_of_the_graph(graph: Data, tmp_path: Path) -> None:
    scores = torch.softmax(torch.randn(300, 6), 1)
    named = graph.clone()
    named.node_ids = np.arange(300) * 7
    shards = write_shards(named, 2, tmp_path)
    one, two = (rg.audit(each, {"mine": scores}, resamples=100) for each in (named, shards))
    assert repr(one.models) == repr(two.models)  # NaN is not equal to itself
    assert one.how.graph_edges == two.how.graph_edges
    assert one.nodes == two.nodes
    with pytest.raises(RawlsError, match="the pagerank of nodes needs all edges"):
        rg.audit(shards, {"mine": scores}, by="pagerank")
    with pytest.raises(RawlsError, match="the in-degree of nodes needs all edges"):
        rg.audit(shards, {"mine": scores}, by="in-degree")
    with pytest.raises(RawlsError, match=r"is a folder of shards.* give rawlsgcn.graphs.shards.Sh"):
        rg.audit(str(tmp_path), {"mine": scores})
