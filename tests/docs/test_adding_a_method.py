"""The worked example of docs/adding-a-method.md is a whole method: one file outside the package."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import rawlsgcn as rg
from rawlsgcn._core.errors import RawlsError
from rawlsgcn.cli import app
from rawlsgcn.experiments.method_checks import CHECKS, check_method
from rawlsgcn.graphs import synthetic
from rawlsgcn.methods import Inputs, find_method, method_names, registry

PAGE = Path(__file__).resolve().parents[2] / "docs" / "adding-a-method.md"
MODULE = "degree_weighted"
NAME = "degree-weighted"


@pytest.fixture(autouse=True)
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The page's first Python block as a module in a folder of its own, imported from there."""
    block = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    (tmp_path / f"{MODULE}.py").write_text(block[1], encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "_registered", {})
    importlib.import_module(MODULE)
    yield
    sys.modules.pop(MODULE)


def test_it_passes_the_check_that_the_page_names() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert f'check_method("{NAME}")' in page
    check_method(NAME)
    check_method(NAME, power=2.0)
    for check in CHECKS:
        assert f"`{check.__name__}`" in page


def test_the_page_names_the_file_and_the_command() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert f"`{MODULE}.py`" in page
    assert f"--method {NAME} --set power=" in page


def test_it_is_found_beside_the_others() -> None:
    assert {NAME, "gcn", "rawlsgcn-graph", "rawlsgcn-grad"} <= set(method_names())
    assert find_method(NAME).title == "Degree-weighted GCN"


def test_fit_trains_it() -> None:
    result = rg.fit(synthetic(300), NAME, seeds=2, epochs=40, method_settings={"power": 1.0})
    assert result.settings["power"] == 1.0
    assert result.settings["patience"] == 50
    assert result.accuracy.mean > 2 * 100 / 6
    twice = rg.fit(synthetic(300), NAME, seeds=2, epochs=40, method_settings={"power": 1.0})
    assert torch.equal(result.logits, twice.logits)


def test_without_weights_it_is_a_gcn() -> None:
    graph = synthetic(300)
    runs = [
        rg.fit(
            graph, name, seeds=1, epochs=10, engine="reference", patience=0, method_settings=own
        ).logits
        for name, own in ((NAME, {"power": 0.0}), ("gcn", None))
    ]
    torch.testing.assert_close(*runs, rtol=1e-3, atol=1e-4)


def test_the_loss_is_the_one_it_claims() -> None:
    inputs = Inputs.of(synthetic(200), dtype=torch.float64)
    method = find_method(NAME)
    learner = method.learner(inputs, method.configure({"dropout": 0}), 0)
    scores = learner.logits().log_softmax(1)
    weight = [1 / (int(inputs.degree[i]) + 1) ** 0.5 for i in inputs.train]
    loss = [-float(scores[i, inputs.y[i]]) for i in inputs.train]
    expected = sum(w * c for w, c in zip(weight, loss, strict=True)) / sum(weight)
    assert learner.epoch() == pytest.approx(expected)


def test_the_command_line_trains_it_and_sets_its_own_setting() -> None:
    words = ["train", "--dataset", "synthetic", "--method", NAME, "--set", "power=2", "--json", "-"]
    done = CliRunner().invoke(app, [*words, "--seeds", "1", "--epochs", "2"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["method"] == NAME
    assert told["settings"]["power"] == 2.0

    done = CliRunner().invoke(app, [*words, "--set", "power=-1"])
    assert done.exit_code == 2
    assert "power must be zero or a positive number" in done.stderr


def test_compare_sets_it_beside_others() -> None:
    results = rg.compare(synthetic(200), ["gcn", NAME], seeds=1, epochs=2)
    assert [result.title for result in results] == ["GCN", "Degree-weighted GCN"]


def test_a_class_or_an_object_need_not_be_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    own = type(find_method(NAME))
    monkeypatch.setattr(registry, "_registered", {})
    runs = [rg.fit(synthetic(200), each, seeds=1, epochs=2) for each in (own, own())]
    assert torch.equal(runs[0].logits, runs[1].logits)
    with pytest.raises(RawlsError, match="unknown method"):
        rg.fit(synthetic(200), NAME, seeds=1, epochs=2)


def test_an_installed_package_offers_its_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint(NAME, f"{MODULE}:DegreeWeighted", registry.ENTRY_POINT_GROUP)
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry])
    assert NAME in method_names()
    assert find_method(NAME).title == "Degree-weighted GCN"
    broken = EntryPoint("broken", "no_such_module:Method", registry.ENTRY_POINT_GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [broken])
    with pytest.raises(RawlsError, match="imported from its entry point no_such_module:Method"):
        find_method("broken")


def test_a_name_is_given_once() -> None:
    for name, error in (("gcn", "already"), (NAME, "already")):
        with pytest.raises(RawlsError, match=error):
            registry.register(type("Other", (type(find_method(NAME)),), {"name": name}))
    with pytest.raises(RawlsError, match="a method is a subclass of"):
        registry.register(Inputs)  # type: ignore[arg-type]


def test_a_misspelt_name_is_offered_it() -> None:
    with pytest.raises(RawlsError, match=NAME):
        find_method("degree-wieghted")
