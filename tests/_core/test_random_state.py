"""No public call changes the random state of its caller: Python's, numpy's or torch's."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from epochs import train_epoch
from torch_geometric.data import Data

import rawlsgcn as rg
from rawlsgcn._core.random_state import kept_random_state, random_state
from rawlsgcn.graphs.shards import write_shards
from rawlsgcn.methods import Inputs, find_method, method_names, with_changes
from rawlsgcn.metrics import DegreeBias
from rawlsgcn.training.sampled.sources import Source
from rawlsgcn.training.sampled.trainer import SampledTraining
from rawlsgcn.transforms import DoublyStochastic, LiftLowDegrees

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
QUICK: dict[str, Any] = {"seeds": 2, "epochs": 2, "hidden_channels": 4}


@pytest.fixture(scope="module")
def graph() -> Data:
    return rg.synthetic(200, classes=3, features=30)


def keeps(call: Callable[[], object]) -> bool:
    random.seed(1)
    np.random.seed(2)
    np.random.standard_normal()
    torch.manual_seed(3)
    before = random_state()
    call()
    return random_state() == before


def audit_to_files(graph: Data, folder: Path) -> None:
    audit = rg.audit(graph, torch.eye(3)[graph.y], resamples=100)
    audit.to_html(folder / "audit.html")


def sampled(graph: Data) -> None:
    method = find_method("rawlsgcn-grad")
    settings = with_changes(method.defaults, {"epochs": 1})
    source = Source.of(graph)
    training = SampledTraining(method, source, settings, num_neighbors=[3, 3], batch_size=20)
    train_epoch(training, 0)
    training.logits()


CALLS: dict[str, Callable[[Data, Path], object]] = {
    "load": lambda graph, folder: rg.load("synthetic"),
    "synthetic": lambda graph, folder: rg.synthetic(200, seed=5),
    "balance": lambda graph, folder: rg.balance(graph.edge_index, num_nodes=200),
    "transform": lambda graph, folder: DoublyStochastic()(graph.clone()),
    "lift": lambda graph, folder: LiftLowDegrees()(graph.clone()),
    "audit": audit_to_files,
    "fit": lambda graph, folder: str(rg.fit(graph, **QUICK)),
    "compare": lambda graph, folder: rg.compare(graph, **QUICK)._repr_html_(),
    "report": lambda graph, folder: rg.report(rg.compare(graph, **QUICK), folder / "page.html"),
    "tune": lambda graph, folder: rg.tune(graph, "gcn", {"lr": [0.1, 0.01]}, **QUICK).best,
    "sampled": lambda graph, folder: sampled(graph),
    "shards": lambda graph, folder: write_shards(graph, 2, folder / "shards"),
    "metric": lambda graph, folder: DegreeBias()(torch.zeros(200, 3), graph.y, graph.y),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_public_call_keeps_the_random_state(name: str, graph: Data, tmp_path: Path) -> None:
    assert keeps(lambda: CALLS[name](graph, tmp_path))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", method_names())
def test_training_keeping_and_predicting_keep_the_random_state(
    name: str, device: str, graph: Data, tmp_path: Path
) -> None:
    def all_of_it() -> None:
        for engine in ("auto", "reference"):
            rg.fit(graph, name, device=device, engine=engine, **QUICK).save(tmp_path / engine)
            rg.load_model(tmp_path / engine).predict(graph, device=device)

    assert keeps(all_of_it)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", method_names())
def test_a_learner_keeps_the_random_state(name: str, device: str, graph: Data) -> None:
    inputs = Inputs.of(graph, device=device)
    settings = with_changes(find_method(name).defaults, {"hidden_channels": 4})

    def learn() -> None:
        learner = find_method(name).learner(inputs, settings, 0)
        learner.epoch()
        learner.validation_score()
        find_method(name).restore(inputs, settings, learner.module.state_dict()).logits()

    assert keeps(learn)


def test_the_state_is_kept_although_a_users_method_seeds(
    graph: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Seeding(type(find_method("gcn"))):  # type: ignore[misc]
        name = "seeding"

        def learner(self, *arguments: Any, **more: Any) -> Any:
            random.seed(0)
            np.random.seed(0)
            torch.manual_seed(0)
            return super().learner(*arguments, **more)

    monkeypatch.setattr("rawlsgcn.methods.registry._registered", {"seeding": Seeding})
    rg.fit(graph, "seeding", **QUICK).save(tmp_path)
    assert keeps(lambda: rg.fit(graph, "seeding", engine="reference", **QUICK))
    assert keeps(lambda: rg.load_model(tmp_path).predict(graph))


def test_the_state_is_kept_where_training_is_broken_off(graph: Data) -> None:
    def interrupt(done: int, total: int, what: str) -> None:
        raise KeyboardInterrupt

    def broken() -> None:
        with pytest.raises(KeyboardInterrupt):
            rg.fit(graph, "advfair", progress=interrupt, **QUICK)

    assert keeps(broken)


def test_numbers_drawn_between_epochs_change_no_run(graph: Data) -> None:
    """A run's masks come from the run's own generator, whoever else draws from the global one."""
    alone = rg.fit(graph, "gcn", engine="reference", device="cpu", **QUICK)
    among = rg.fit(
        graph,
        "gcn",
        engine="reference",
        device="cpu",
        progress=lambda *told: torch.rand(7),
        **QUICK,
    )
    assert torch.equal(alone.logits, among.logits)


def test_what_is_put_back_is_the_state_before() -> None:
    def draw() -> None:
        with kept_random_state():
            random.random()
            np.random.rand()
            torch.rand(3)

    assert keeps(draw)
    assert not keeps(lambda: torch.rand(1))
    assert not keeps(np.random.rand)
    assert not keeps(random.random)
