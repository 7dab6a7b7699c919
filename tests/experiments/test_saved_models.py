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
from rawlsgcn._core.machine import peak_resident_bytes
from rawlsgcn.experiments import saved_models as models
from rawlsgcn.experiments.model_files import CONFIG, WEIGHTS


def some_graph() -> Data:
    graph = rg.synthetic(300, classes=2, features=20)
    graph.x = graph.x.to_dense()
    return graph


@pytest.fixture(scope="module")
def graph() -> Data:
    return some_graph()


@pytest.fixture
def folder(graph: Data, tmp_path: Path) -> Path:
    rg.fit(graph, "gcn", seeds=2, epochs=20, hidden_channels=4).save(tmp_path)
    return tmp_path


def changed_config(folder: Path, **changes: Any) -> None:
    config = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps(config | changes))


def changed_weights(folder: Path, change: Callable[[dict[str, Tensor]], object]) -> None:
    tensors = load_file(folder / WEIGHTS)
    change(tensors)
    save_file(tensors, folder / WEIGHTS)


def test_a_folder_replaced_while_it_is_read_is_read_again(
    graph: Data, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never the configuration of one model with the weights of another."""
    plain = models.read_weights

    def slow(path: Path, *args: Any) -> dict[str, Tensor]:
        monkeypatch.undo()
        rg.fit(graph, "gcn", seeds=1, epochs=2, hidden_channels=7).save(folder)
        return plain(path, *args)

    monkeypatch.setattr(models, "read_weights", slow)
    model = rg.load_model(folder)
    assert model.settings.hidden_channels == 7
    assert model.predict(graph).shape == (300, 2)


def test_features_are_treated_as_in_training(graph: Data, folder: Path) -> None:
    """One cell a hair under zero must not change what is done to all the others."""
    model = rg.load_model(folder)
    assert model.row_normalized
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
    assert not model.row_normalized
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
        *(("settings", value) for value in ([], "lr", None, {"hidden": 4}, {"num_layers": "two"})),
        *(("settings", {"lr": value}) for value in (10**400, -1, [1], None)),
        *(("seeds", value) for value in (0, "01", [], ["0"], [0.5], None)),
        *(("best_seed", value) for value in ("0", 7, None, [0])),
        *(("num_classes", value) for value in ("2", -1, 0, True, 2.5)),
        *(("num_features", value) for value in ("20", None, -3)),
        *(("row_normalized", value) for value in ("yes", None)),
        ("dataset", 5),
    ],
)
def test_a_damaged_configuration_is_one_sentence(folder: Path, name: str, value: Any) -> None:
    changed_config(folder, **{name: value})
    with pytest.raises(rg.RawlsError) as caught:
        rg.load_model(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("entry", ["method", "row_normalized", "best_seed"])
def test_a_missing_entry_is_named(folder: Path, entry: str) -> None:
    config = json.loads((folder / CONFIG).read_text())
    del config[entry]
    (folder / CONFIG).write_text(json.dumps(config))
    with pytest.raises(rg.RawlsError, match=f"has no {entry}"):
        rg.load_model(folder)


@pytest.mark.parametrize(
    "changes",
    [{"num_classes": 9}, {"settings": {"hidden_channels": 32}}, {"settings": {"num_layers": 3}}],
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
    with pytest.raises(rg.RawlsError, match="NaN or infinite"):
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

    monkeypatch.setattr("rawlsgcn.balancing.normalizations.balance", refuse)
    assert torch.equal(rg.load_model(tmp_path).predict(graph), before)


@pytest.mark.parametrize("method", ["gcn", "advfair", "demo-net", "dsgcn", "tail-gnn"])
@pytest.mark.parametrize(
    "changes",
    [
        {"settings": {"hidden_channels": 20_000_000}},
        {"settings": {"hidden_channels": 10**15}},
        {"settings": {"hidden_channels": 10**30}},
        {"settings": {"hidden_channels": 30_000, "num_layers": 3}},
        {"settings": {"num_layers": 10**9}},
        {"settings": {"num_layers": 10**30}},
        {"num_classes": 10**8},
        {"num_classes": 2**62},
        {"num_classes": 10**30},
    ],
)
def test_sizes_beyond_the_weights_are_refused_at_once(
    graph: Data, tmp_path: Path, method: str, changes: dict[str, Any]
) -> None:
    """Networks of these sizes take gigabytes and minutes; nothing of them is ever drawn."""
    rg.fit(graph, method, seeds=1, epochs=1, hidden_channels=4).save(tmp_path)
    changed_config(tmp_path, **changes)
    before = peak_resident_bytes()
    with pytest.raises(rg.RawlsError, match=CONFIG) as caught:
        rg.load_model(tmp_path).predict(graph)
    assert "\n" not in str(caught.value)
    grown = peak_resident_bytes() - before
    assert grown < 500e6  # the smallest of these networks takes 1.6 GB


@pytest.mark.parametrize(
    ("method", "change"),
    [
        ("gcn", lambda t: t.update({"0/layers.0.bias": t["0/layers.0.bias"].double()})),
        ("gcn", lambda t: t.update({"0/layers.0.bias": t["0/layers.0.bias"].view(torch.int32)})),
        ("gcn", lambda t: t.update({"0/layers.0.bias": t["0/layers.0.bias"].view(torch.int64)})),
        ("gcn", lambda t: t.update({"0/layers.0.bias": torch.zeros(4, dtype=torch.cfloat)})),
        ("gcn", lambda t: t.update({"0/layers.0.bias": torch.tensor(1.0)})),
        ("advfair", lambda t: t.update({"0/discriminator.2.bias": torch.tensor(1.0)})),
        ("demo-net", lambda t: t.update({"0/degrees": t["0/degrees"][None]})),
        ("demo-net", lambda t: t.update({"0/degrees": t["0/degrees"].flip(0)})),
        ("demo-net", lambda t: t.update({"0/degrees": torch.tensor(3)})),
    ],
)
def test_weights_of_another_kind_are_refused(
    graph: Data, tmp_path: Path, method: str, change: Callable[[dict[str, Tensor]], object]
) -> None:
    """Torch would convert them without a word, or fail in the middle of a product."""
    rg.fit(graph, method, seeds=1, epochs=1, hidden_channels=4).save(tmp_path)
    changed_weights(tmp_path, change)
    with pytest.raises(rg.RawlsError) as caught:
        rg.load_model(tmp_path).predict(graph)
    assert "\n" not in str(caught.value)


def test_a_damaged_file_is_one_sentence_with_its_name(folder: Path) -> None:
    content = (folder / WEIGHTS).read_bytes()
    for damage in (b"", content[:20], content[:-3], b"\xff" * 100, content.replace(b"F32", b"F99")):
        (folder / WEIGHTS).write_bytes(damage)
        with pytest.raises(rg.RawlsError, match=WEIGHTS):
            rg.load_model(folder)
    (folder / WEIGHTS).unlink()
    with pytest.raises(rg.RawlsError, match=WEIGHTS):
        rg.load_model(folder)
    for damage in (b"[" * 100_000, b"\xff\xfe", b"[]", b'{"num_features": ' + b"9" * 5000 + b"}"):
        (folder / CONFIG).write_bytes(damage)
        with pytest.raises(rg.RawlsError, match=CONFIG):
            rg.load_model(folder)


def test_a_wrong_normalization_is_told_with_the_file(graph: Data, tmp_path: Path) -> None:
    rg.fit(graph, "rawlsgcn-graph", seeds=1, epochs=1, hidden_channels=4).save(tmp_path)
    changed_config(tmp_path, settings={"hidden_channels": 4, "normalization": "rows"})
    with pytest.raises(rg.RawlsError, match=CONFIG):
        rg.load_model(tmp_path)


def test_a_model_prints_itself_without_its_weights(folder: Path) -> None:
    model = rg.load_model(folder)
    weights = 20 * 4 + 4 * 2 + sum(t.numel() for n, t in model.state.items() if t.dim() == 1)
    assert repr(model) == (
        f"TrainedModel(gcn on synthetic, seed {model.seed}: 20 features, 2 classes, "
        f"{weights} parameters)"
    )
