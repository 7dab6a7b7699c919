"""The numbers that the paper prints, by our names of its graphs, methods and normalisations."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def printed() -> dict[str, Any]:
    """All of the paper's tables, as ``printed.json`` holds them."""
    text = files(__package__).joinpath("printed.json").read_text(encoding="utf-8")
    tables: dict[str, Any] = json.loads(text)
    return tables


def figures(dataset: str, method: str, normalisation: str = "") -> dict[str, Any]:
    """Accuracy and bias, each [mean, std] or None where the paper printed no number.

    Without a ``normalisation`` it is the cell of Table 3 (or of Chameleon's), with one that of
    the ablation tables.
    """
    if normalisation:
        cell = printed()["ablation"].get(dataset, {}).get(method, {}).get(normalisation)
    else:
        cell = printed()["effectiveness"].get(dataset, {}).get(method)
    return cell or {"accuracy": None, "bias": None}


def efficiency(method: str, variant: str) -> dict[str, Any] | None:
    """Parameters, memory and seconds on Amazon-Photo (Table 4)."""
    cell: dict[str, Any] | None = printed()["efficiency"].get(method, {}).get(variant)
    return cell


def statistics(dataset: str) -> dict[str, Any] | None:
    """The row of Table 1."""
    row: dict[str, Any] | None = printed()["datasets"].get(dataset)
    return row
