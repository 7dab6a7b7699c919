"""Helpers of the tests that look into the studies of the paper's experiments."""

from __future__ import annotations

from typing import Any


def figures(results: dict[str, Any]) -> list[Any]:
    """A results document without what it cost."""
    costly = ("seconds", "peak_memory_mb")

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: plain(v) for k, v in value.items() if k not in costly}
        return [plain(each) for each in value] if isinstance(value, list) else value

    kept: list[Any] = plain([results["cells"], results["claims"]])
    return kept
