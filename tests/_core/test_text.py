"""Text from users is safe to print."""

from __future__ import annotations

from rawlsgcn._core.text import printable


def test_control_characters_and_lines_are_removed() -> None:
    assert printable("a\n b\t\x1b[2Jc") == "a b \ufffd[2Jc"
    assert printable(3) == "3"
