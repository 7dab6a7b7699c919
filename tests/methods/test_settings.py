"""Settings: defaults of the paper, text from a command line, and clear refusals."""

from __future__ import annotations

import pytest

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.methods import MAIN_METHODS, find_method, method_names, with_changes


def test_the_papers_defaults() -> None:
    gcn, graph, grad = (find_method(n).defaults for n in ("gcn", "rawlsgcn-graph", "rawlsgcn-grad"))
    assert (gcn.lr, gcn.epochs, gcn.weight_decay, gcn.hidden_channels, gcn.num_layers) == (
        0.01,
        200,
        5e-4,
        64,
        2,
    )
    assert graph.epochs == grad.epochs == 100
    assert graph.normalization == grad.normalization == "doubly-stochastic"


def test_text_becomes_the_fields_type() -> None:
    changed = with_changes(
        find_method("gcn").defaults, {"lr": "0.5", "epochs": "7", "normalize-features": "no"}
    )
    assert (changed.lr, changed.epochs, changed.normalize_features) == (0.5, 7, False)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"lr": -1.0}, "lr must be a positive number"),
        ({"lr": float("nan")}, "lr must be"),
        ({"lr": "fast"}, "lr must be a number, not 'fast'"),
        ({"epochs": 1.5}, "epochs must be a whole number"),
        ({"epochs": -1}, "epochs must be from 1"),
        ({"epochs": 0}, "epochs must be from 1"),
        ({"epochs": 10**9}, "epochs must be from 1 to 10,000,000"),
        ({"dropout": 1.0}, "dropout must be"),
        ({"hidden_channels": 0}, "hidden_channels must be from 1"),
        ({"hidden_channels": 10**13}, "hidden_channels must be from 1 to 1,000,000"),
        ({"num_layers": 0}, "num_layers must be from 1"),
        ({"num_layers": 10**9}, "num_layers must be from 1 to 1,000"),
        ({"num_layers": 10**30}, "num_layers must be from 1 to 1,000"),
        ({"weight_decay": -1}, "weight_decay must be"),
        ({"lr": 10**400}, "lr must be a number"),
        ({"normalize_features": "perhaps"}, "true or false"),
        ({"normalization": ["row"]}, "normalization must be text"),
        ({"normalization": None}, "normalization must be text"),
        ({"hiden": 3}, "did you mean hidden_channels"),
    ],
)
def test_wrong_settings_are_refused_in_one_sentence(change: dict[str, object], words: str) -> None:
    with pytest.raises(RawlsError, match=words):
        with_changes(find_method("gcn").defaults, change)


@pytest.mark.parametrize(
    ("name", "setting"),
    [("advfair", "adversary"), ("tail-gnn", "adversary"), ("tail-gnn", "missing")],
)
@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_weights_of_the_losses_are_numbers(name: str, setting: str, value: float) -> None:
    with pytest.raises(RawlsError, match=f"{setting} must be zero or a positive number"):
        with_changes(find_method(name).defaults, {setting: value})


def test_an_unknown_method_offers_the_nearest() -> None:
    with pytest.raises(RawlsError, match="did you mean rawlsgcn-gra"):
        find_method("rawlsgcn-grph")


def test_every_method_has_a_name_and_a_title() -> None:
    assert set(MAIN_METHODS) <= set(method_names())
    for name in method_names():
        method = find_method(name)
        assert method.name == name
        assert method.title
