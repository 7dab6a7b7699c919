"""Models kept: they predict what they predicted, and a damaged folder is one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch_geometric.data import Data

import rawlsgcn as rg
from rawlsgcn.models import CONFIG, WEIGHTS


def some_graph() -> Data:
    graph = rg.synthetic(300, classes=2, features=20)
    graph.x = graph.x.to_dense()
    return graph


@pytest.fixture(scope="module")
def graph() -> Data:
    return some_graph()


@pytest.fixture
def folder(graph: Data, tmp_path: Path) -> Path:
    rg.fit(graph, "gcn", seeds=2, epochs=20, hidden=4).save(tmp_path)
    return tmp_path


def changed_config(folder: Path, **changes: Any) -> None:
    config = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps(config | changes))


def changed_weights(folder: Path, change: Callable[[dict[str, Tensor]], object]) -> None:
    tensors = load_file(folder / WEIGHTS)
    change(tensors)
    save_file(tensors, folder / WEIGHTS)


def test_features_are_treated_as_in_training(graph: Data, folder: Path) -> None:
    """One cell a hair under zero must not change what is done to all the others."""
    model = rg.load_model(folder)
    assert model.row_normalised
    before = model.predict(graph)
    other = some_graph()
    node, word = (other.x == 0).nonzero()[0]
    other.x[node, word] = -1e-6
    torch.testing.assert_close(model.predict(other), before, rtol=0, atol=1e-6)


def test_features_left_as_they_are_in_training_are_left_later(tmp_path: Path) -> None:
    centred = some_graph()
    centred.x = centred.x - centred.x.mean(0)
    rg.fit(centred, "gcn", seeds=1, epochs=20).save(tmp_path)
    model = rg.load_model(tmp_path)
    assert not model.row_normalised
    plain = some_graph()  # nowhere negative: by itself it would be divided
    logits = model.logits(plain)
    twice = some_graph()
    twice.x = twice.x * 2
    assert not torch.allclose(model.logits(twice), logits)


def test_a_path_may_be_text_or_begin_with_a_tilde(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    assert rg.load_model(f"~/{folder.name}", seed=1).seed == 1
    assert rg.load_model(str(folder)).method.name == "gcn"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("method", value) for value in (5, None, "gnc", ["gcn"])),
        *(("settings", value) for value in ([], "lr", None, {"hiden": 4}, {"hidden": "wide"})),
        *(("settings", {"lr": value}) for value in (10**400, -1, [1], None)),
        *(("seeds", value) for value in (0, "01", [], ["0"], [0.5], None)),
        *(("best_seed", value) for value in ("0", 7, None, [0])),
        *(("classes", value) for value in ("2", -1, 0, True, 2.5)),
        *(("features", value) for value in ("20", None, -3)),
        *(("row_normalised", value) for value in ("yes", None)),
        ("dataset", 5),
    ],
)
def test_a_damaged_configuration_is_one_sentence(folder: Path, name: str, value: Any) -> None:
    changed_config(folder, **{name: value})
    with pytest.raises(rg.RawlsError) as caught:
        rg.load_model(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("entry", ["method", "row_normalised", "best_seed"])
def test_a_missing_entry_is_named(folder: Path, entry: str) -> None:
    config = json.loads((folder / CONFIG).read_text())
    del config[entry]
    (folder / CONFIG).write_text(json.dumps(config))
    with pytest.raises(rg.RawlsError, match=f"has no {entry}"):
        rg.load_model(folder)


@pytest.mark.parametrize(
    "changes", [{"classes": 9}, {"settings": {"hidden": 32}}, {"settings": {"layers": 3}}]
)
def test_a_configuration_that_does_not_fit_the_weights_is_refused(
    graph: Data, folder: Path, changes: dict[str, Any]
) -> None:
    changed_config(folder, **changes)
    with pytest.raises(rg.RawlsError, match="do not fit"):
        rg.load_model(folder).predict(graph)


def test_renamed_or_missing_weights_are_refused(graph: Data, folder: Path) -> None:
    changed_weights(folder, lambda t: t.update({"0/other": t.pop("0/layers.0.weight")}))
    with pytest.raises(rg.RawlsError, match="do not fit"):
        rg.load_model(folder, seed=0).predict(graph)
    changed_weights(folder, lambda t: [t.pop(name) for name in list(t) if name[0] == "1"])
    with pytest.raises(rg.RawlsError, match="no weights of seed 1"):
        rg.load_model(folder, seed=1)


def test_weights_of_a_method_with_its_own_restore_are_refused_too(
    graph: Data, tmp_path: Path
) -> None:
    rg.fit(graph, "advfair", seeds=1, epochs=1).save(tmp_path)
    changed_weights(tmp_path, lambda t: t.pop("0/discriminator.2.bias"))
    with pytest.raises(rg.RawlsError, match="do not fit"):
        rg.load_model(tmp_path).predict(graph)


def test_weights_that_are_no_numbers_are_refused(folder: Path) -> None:
    changed_weights(folder, lambda t: t["1/layers.0.bias"].fill_(float("nan")))
    with pytest.raises(rg.RawlsError, match="not all numbers"):
        rg.load_model(folder, seed=1)
    rg.load_model(folder, seed=0)


def test_wrong_calls_are_one_sentence(graph: Data, folder: Path) -> None:
    model = rg.load_model(folder)
    calls = [
        lambda: rg.load_model(5),  # type: ignore[arg-type]
        lambda: rg.load_model(folder, seed=9),
        lambda: rg.load_model(folder, seed="a"),  # type: ignore[arg-type]
        lambda: model.predict(graph, device="tpu"),
        lambda: model.predict(graph, device=None),  # type: ignore[arg-type]
        lambda: model.predict(rg.synthetic(300, classes=2)),
    ]
    if not torch.cuda.is_available():
        calls.append(lambda: model.predict(graph, device="cuda"))
    for wrong in calls:
        with pytest.raises(rg.RawlsError) as caught:
            wrong()
        assert "\n" not in str(caught.value)
    assert torch.equal(
        model.predict(graph, device="auto").cpu(), model.predict(graph, device="auto")
    )


def test_predictions_of_rawlsgcn_grad_balance_nothing(
    graph: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the weights' gradient needs the balanced matrix: predictions must not fail for it."""
    rg.fit(graph, "rawlsgcn-grad", seeds=1, epochs=3).save(tmp_path)
    before = rg.load_model(tmp_path).predict(graph)

    def refuse(*arguments: object, **options: object) -> None:
        raise rg.RawlsError("this graph cannot be balanced")

    monkeypatch.setattr("rawlsgcn.balancing.normalisations.balance", refuse)
    assert torch.equal(rg.load_model(tmp_path).predict(graph), before)
