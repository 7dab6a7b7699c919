"""The values of ``--set name=value``, ``--grid name=a,b`` and lists of names, taken apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .._core.errors import RawlsError


def parse_settings(pairs: Sequence[str] | None, **given: Any) -> dict[str, Any]:
    """The settings that options and ``--set`` give, by name; those of --set are still text."""
    settings = {name: value for name, value in given.items() if value is not None}
    example = "--set takes name=value, for example --set hidden_channels=32"
    return settings | dict(_pair(pair, example) for pair in pairs or ())


def parse_grid(pairs: Sequence[str] | None) -> dict[str, list[str]] | None:
    """The values that ``--grid`` gives for each setting, as text; None without any."""
    example = "--grid takes name=a,b,c, for example --grid lr=0.05,0.01"
    found: dict[str, list[str]] = {}
    for pair in pairs or ():
        name, values = _pair(pair, example)
        if name in found:
            raise RawlsError(f"--grid gives {name} twice: list all its values in one --grid")
        found[name] = values.split(",")
    return found or None


def _pair(text: str, example: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise RawlsError(f"{example}, not '{text}'")
    return name, value


@contextmanager
def naming(option: str) -> Iterator[None]:
    """Begin the error of the block with the option whose value it is about."""
    try:
        yield
    except RawlsError as error:
        raise RawlsError(f"{option}: {error}") from None


def split_names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
