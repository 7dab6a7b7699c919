"""The hyper-parameters that methods share, and how text from a command line becomes them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from .._core.errors import RawlsError, unknown_name

#: More than these is a slip of the finger, which would take all memory or for ever.
MOST_EPOCHS, MOST_CHANNELS, MOST_LAYERS = 10_000_000, 1_000_000, 1_000


@dataclass(frozen=True)
class Settings:
    """What every method can be told; a method with more to tell subclasses this.

    The defaults are the paper's (Section 4.1): two layers, 64 wide, Adam with weight decay 5e-4.
    With ``patience`` training stops when so many epochs bring nothing better on the validation
    nodes, and the best weights are restored; 0 trains to the end.
    """

    lr: float = 0.01
    epochs: int = 200
    weight_decay: float = 5e-4
    dropout: float = 0.5
    hidden_channels: int = 64
    num_layers: int = 2
    normalization: str = "renormalized"
    normalize_features: bool = True
    patience: int = 0

    def __post_init__(self) -> None:
        self._require(self.lr > 0 and math.isfinite(self.lr), "lr", "a positive number")
        self._require(1 <= self.epochs <= MOST_EPOCHS, "epochs", f"from 1 to {MOST_EPOCHS:,}")
        self._require(
            self.weight_decay >= 0 and math.isfinite(self.weight_decay),
            "weight_decay",
            "zero or a positive number",
        )
        self._require(0 <= self.dropout < 1, "dropout", "at least 0 and less than 1")
        self._require(
            1 <= self.hidden_channels <= MOST_CHANNELS,
            "hidden_channels",
            f"from 1 to {MOST_CHANNELS:,}",
        )
        self._require(
            1 <= self.num_layers <= MOST_LAYERS, "num_layers", f"from 1 to {MOST_LAYERS:,}"
        )
        self._require(self.patience >= 0, "patience", "zero or more")

    def _require(self, holds: bool, name: str, what: str) -> None:
        if not holds:
            raise RawlsError(f"{name} must be {what}, not {getattr(self, name)!r}")


S = TypeVar("S", bound=Settings)


def with_changes(settings: S, changes: Mapping[str, Any]) -> S:
    """``settings`` with some fields replaced; text is turned into each field's own type."""
    known = {field.name: type(getattr(settings, field.name)) for field in fields(settings)}
    values = {}
    for name, value in changes.items():
        key = name.replace("-", "_")
        if key not in known:
            raise unknown_name("setting", name, known)
        values[key] = _convert(name, value, known[key])
    return replace(settings, **values)


def _convert(name: str, value: Any, kind: type) -> Any:
    if kind is bool and isinstance(value, str):
        truth = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        if value.lower() in truth:
            return truth[value.lower()]
    elif kind is str:
        if isinstance(value, str):
            return value
    elif kind is int and isinstance(value, float) and not value.is_integer():
        pass
    elif kind is bool or not isinstance(value, bool):
        try:
            return kind(value)
        except (TypeError, ValueError, OverflowError):
            pass
    words = {int: "a whole number", float: "a number", bool: "true or false"}
    raise RawlsError(f"{name} must be {words.get(kind, 'text')}, not {value!r}")
