"""The settings that methods share, and how values and text become them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypedDict, TypeVar

from .._core.errors import RawlsError, unknown_name

#: The normalization of GCN: Â = D̃^(-1/2) (A + I) D̃^(-1/2).
RENORMALIZED = "renormalized"
#: Larger values are a typing error, which would take all memory or never end.
_MOST = {"epochs": 10_000_000, "hidden_channels": 1_000_000, "num_layers": 1_000}


class SettingsKeywords(TypedDict, total=False):
    """The keywords of ``fit``, ``compare`` and ``tune``: see :class:`Settings`."""

    lr: float
    epochs: int
    weight_decay: float
    dropout: float
    hidden_channels: int
    num_layers: int
    normalization: str
    normalize_features: bool
    patience: int


@dataclass(frozen=True)
class Settings:
    """The settings that every method has; a method with more of them derives its own class.

    The defaults are the paper's (Section 4.1): two layers of width 64, Adam with weight decay 5e-4.

    Args:
        lr: The learning rate of Adam.
        epochs: The number of epochs, or the largest number with ``patience``.
        weight_decay: The weight decay of Adam, on all parameters.
        dropout: The probability with which an entry of a hidden layer is set to zero.
        hidden_channels: The width of the hidden layers.
        num_layers: The number of layers.
        normalization: One of the method's ``normalizations`` of A + I.
        normalize_features: Whether each row of X is divided by its sum (not where a feature is
            negative).
        patience: Stop after so many epochs without a better validation score and restore the best
            weights; 0 trains for all epochs and keeps the last weights.

    Raises:
        RawlsError: If a value is out of range.

    Example:
        >>> from rawlsgcn.methods import Settings
        >>> Settings(lr=0.05, num_layers=3).hidden_channels
        64
    """

    lr: float = 0.01
    epochs: int = 200
    weight_decay: float = 5e-4
    dropout: float = 0.5
    hidden_channels: int = 64
    num_layers: int = 2
    normalization: str = RENORMALIZED
    normalize_features: bool = True
    patience: int = 0

    def __post_init__(self) -> None:
        self._require(0 < self.lr < math.inf, "lr", "a positive number")
        for name, most in _MOST.items():
            self._require(1 <= getattr(self, name) <= most, name, f"from 1 to {most:,}")
        decay = self.weight_decay
        self._require(0 <= decay < math.inf, "weight_decay", "zero or a positive number")
        self._require(0 <= self.dropout < 1, "dropout", "at least 0 and less than 1")
        self._require(self.patience >= 0, "patience", "zero or more")

    def _require(self, holds: bool, name: str, what: str) -> None:
        """Raise an error that names the field unless the condition holds."""
        if not holds:
            raise RawlsError(f"{name} must be {what}, not {getattr(self, name)!r}")


S = TypeVar("S", bound=Settings)


def with_changes(settings: S, changes: Mapping[str, Any]) -> S:
    """Return the settings with some fields replaced.

    Args:
        settings: A method's settings.
        changes: New values by name; hyphens in a name count as underscores, and text (from a
            command line) is converted to the type of the field.

    Returns:
        New settings of the same class.

    Raises:
        RawlsError: If a name is unknown, or a value is of the wrong type or out of range.
    """
    known = {field.name: type(getattr(settings, field.name)) for field in fields(settings)}
    values = {}
    for name, value in changes.items():
        key = name.replace("-", "_")
        if key not in known:
            raise unknown_name("setting", name, known)
        values[key] = _convert(name, value, known[key])
    return replace(settings, **values)


def _convert(name: str, value: Any, kind: type) -> Any:
    """A value as the type of its field."""
    truth = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    fits = not isinstance(value, bool)
    if kind is bool:
        value = truth.get(value.lower(), value) if isinstance(value, str) else value
        fits = not isinstance(value, str)
    elif kind is str:
        fits = isinstance(value, str)
    elif kind is int and isinstance(value, float):
        fits = value.is_integer()
    try:
        if fits:
            return kind(value)
    except (TypeError, ValueError, OverflowError):
        pass
    words = {int: "a whole number", float: "a number", bool: "true or false"}
    raise RawlsError(f"{name} must be {words.get(kind, 'text')}, not {value!r}")
