"""Text for people: without control characters, numbers with their unit."""

from __future__ import annotations


def printable(text: object) -> str:
    """Return ``text`` on one line, without the control characters that could steer a terminal."""
    line = " ".join(str(text).split())
    return "".join(character if character.isprintable() else "\ufffd" for character in line)


def plural(count: int, noun: str) -> str:
    """Return ``1 node`` or ``1,234 nodes``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def share(value: float) -> str:
    """A share in per cent, with a decimal where it has one: ``"40 %"``, ``"12.5 %"``."""
    return f"{100 * value:.1f}".removesuffix(".0") + " %"
