"""What others may read names neither passwords nor this machine's folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from rawlsgcn._core.redaction import shown_path, shown_word


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


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("--seeds=5", "--seeds=5"),
        ("--storage=postgresql://me:secret@host/db", "--storage=postgresql://me:…@host/db"),
        ("sqlite:////home/me/studies.db", "sqlite:///studies.db"),
        ("--out=/home/me/report.html", "--out=report.html"),
    ],
)
def test_a_word_of_a_command_shows_no_password_and_no_folder(word: str, shown: str) -> None:
    assert shown_word(word) == shown
