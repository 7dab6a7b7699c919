"""The rule that chooses an engine, and its estimate of the memory of whole-graph training."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import rawlsgcn as rg
from rawlsgcn._core import memory as memory_module
from rawlsgcn._core.errors import RawlsError
from rawlsgcn.graphs.shards import write_shards
from rawlsgcn.methods import find_method
from rawlsgcn.training import engine_choice
from rawlsgcn.training.engine_choice import (
    EngineChoice,
    GraphSize,
    choose_engine,
    whole_graph_bytes,
)

IN_MEMORY = GraphSize(nodes=1000, arcs=10_000, features=50_000, classes=4)
SHARDS = replace(IN_MEMORY, in_shards=True)
#: 64 bytes an arc, 8 a feature, 16 for each of 68 values of a node.
NEEDED = 64 * 10_000 + 8 * 50_000 + 16 * 1000 * 68


@pytest.fixture(autouse=True)
def no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph alone counts, not Python and torch."""
    for module in (memory_module, engine_choice):
        monkeypatch.setattr(module, "code_memory", lambda: 0)


def choice(
    name: str, size: GraphSize, memory: int = 10**9, engine: str = "auto", **changes: Any
) -> EngineChoice:
    method = find_method(name)
    return choose_engine(method, method.configure(changes), size, memory, engine=engine)


def test_the_estimate_counts_arcs_features_and_hidden_values() -> None:
    settings = find_method("gcn").defaults
    assert whole_graph_bytes(IN_MEMORY, settings) == NEEDED
    assert whole_graph_bytes(IN_MEMORY, settings, runs=3) == NEEDED + 2 * 16 * 1000 * 68


@pytest.mark.parametrize(
    ("name", "size", "memory", "engine"),
    [
        ("gcn", IN_MEMORY, NEEDED, "auto"),
        ("gcn", IN_MEMORY, NEEDED - 1, "sampled"),
        ("tail-gnn", IN_MEMORY, 1, "auto"),  # it knows no other way
        ("smoothed-mlp", IN_MEMORY, 1, "auto"),
        ("gcn", SHARDS, 10**9, "sampled"),
        ("smoothed-mlp", SHARDS, 10**9, "smoothed"),
        ("tail-gnn", SHARDS, 10**9, "auto"),
    ],
)
def test_the_rule(name: str, size: GraphSize, memory: int, engine: str) -> None:
    chosen = choice(name, size, memory)
    assert chosen.engine == engine
    assert chosen.reason
    assert "\n" not in chosen.reason


@pytest.mark.parametrize(
    ("inputs", "engine"),
    [({"inputs": "both"}, "auto"), ({"features": "tf-idf"}, "auto"), ({"steps": 3}, "smoothed")],
)
def test_inputs_that_need_the_graph_are_trained_on_the_whole_of_it(
    inputs: dict[str, Any], engine: str
) -> None:
    assert choice("smoothed-mlp", SHARDS, **inputs).engine == engine


def test_the_engine_that_the_user_names_is_taken() -> None:
    assert choice("gcn", SHARDS, engine="stacked").engine == "stacked"
    assert choice("gcn", IN_MEMORY, memory=1, engine="reference").engine == "reference"
    assert choice("gcn", IN_MEMORY, engine="sampled").engine == "sampled"


@pytest.mark.parametrize(
    ("name", "size", "how", "said"),
    [
        ("gcn", SHARDS, {"engine": "smoothed"}, "gcn needs the edges while it trains"),
        ("smoothed-mlp", IN_MEMORY, {"engine": "smoothed"}, "give --shards"),
        ("smoothed-mlp", SHARDS, {"engine": "smoothed", "min_degree": 5}, "use min_degree=0"),
        ("smoothed-mlp", SHARDS, {"engine": "sampled"}, "cannot be trained on sampled"),
        ("tail-gnn", SHARDS, {"memory": 10**6}, "1 MB of memory are too little to use tail-gnn"),
        ("gcn", SHARDS, {"memory": 10**6, "engine": "stacked"}, "--memory 10MB"),
        ("gcn", IN_MEMORY, {"engine": "stack"}, "unknown engine 'stack'"),
    ],
)
def test_an_impossible_choice_is_one_sentence(
    name: str, size: GraphSize, how: dict[str, Any], said: str
) -> None:
    with pytest.raises(RawlsError, match=said) as caught:
        choice(name, size, **how)
    assert "\n" not in str(caught.value)


def test_fit_does_not_train_in_steps() -> None:
    with pytest.raises(RawlsError, match="use 'rawlsgcn train --engine smoothed'"):
        rg.fit(rg.synthetic(300), "smoothed-mlp", engine="smoothed")


def test_a_graph_and_its_shards_have_the_same_size(tmp_path: Any) -> None:
    graph = rg.synthetic(300)
    shards = write_shards(graph, 2, tmp_path)
    assert GraphSize.of_shards(shards) == replace(GraphSize.of(graph), in_shards=True)
