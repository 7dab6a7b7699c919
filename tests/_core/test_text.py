"""Text from users is safe to print, and paths do not name this machine's folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from rawlsgcn._core.text import printable, shown_path


def test_control_characters_and_lines_are_removed() -> None:
    assert printable("a\n b\t\x1b[2Jc") == "a b \ufffd[2Jc"
    assert printable(3) == "3"


def test_a_path_is_shown_from_the_working_directory_or_by_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert shown_path(tmp_path / "a" / "b.csv") == str(Path("a", "b.csv"))
    assert shown_path("a/b.csv") == str(Path("a", "b.csv"))
    assert shown_path(tmp_path) == tmp_path.name
    assert shown_path(tmp_path.parent / "b.csv") == "b.csv"
    monkeypatch.chdir("/")
    assert shown_path(tmp_path / "b.csv") == "b.csv"
