"""Writing: whole or not at all, where the user said, and refused early where it cannot be."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rawlsgcn import files
from rawlsgcn.errors import RawlsError
from rawlsgcn.files import atomic_directory, atomic_file, check_file, check_folder, plain_ids

NOT_ROOT = pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")


def write(path: Path, text: str = "new", fails: bool = False) -> None:
    with atomic_file(path) as temporary:
        temporary.write_text(text)
        if fails:
            raise ZeroDivisionError


def fill(path: Path, *names: str, fails: bool = False) -> None:
    with atomic_directory(path) as folder:
        for name in names:
            (folder / name).write_text("new")
        if fails:
            raise ZeroDivisionError


def listing(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("old")
    with pytest.raises(ZeroDivisionError):
        write(file, fails=True)
    assert listing(tmp_path) == {"a.txt": "old"}


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link, target = tmp_path / "link.txt", tmp_path / "there" / "target.txt"
    link.symlink_to(target)
    for text in ("first", "second"):  # at first the link leads nowhere
        write(link, text)
        assert link.is_symlink()
        assert target.read_text() == text


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(RawlsError, match="cannot write"):
        write(tmp_path / "a" / "c.txt")


def test_a_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    write(Path("/dev/null"))
    assert Path("/dev/null").is_char_device()
    if Path("/dev/full").exists():
        with pytest.raises(RawlsError, match="cannot write /dev/full: No space left"):
            write(Path("/dev/full"))
        assert Path("/dev/full").is_char_device()


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    write(pipe, "through")
    reader.join(timeout=10)
    assert got == ["through"]
    assert pipe.is_fifo()


def test_a_new_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        fill(tmp_path / "out", "a", fails=True)
    assert list(tmp_path.iterdir()) == []
    fill(tmp_path / "out", "a")
    assert listing(tmp_path / "out") == {"a": "new"}


def test_an_existing_folder_is_written_from_inside(tmp_path: Path) -> None:
    """Neither the right to write beside it nor the same disk as its parent is needed."""
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "a").write_text("old")
    with atomic_directory(tmp_path) as folder:
        assert folder.parent == tmp_path
        (folder / "a").write_text("new")
        (folder / "b").write_text("new")
    assert listing(tmp_path) == {"mine": "mine", "a": "new", "b": "new"}
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


def test_a_folder_in_the_way_is_told_and_nothing_is_moved(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "b").mkdir()
    with pytest.raises(RawlsError, match="b: there is a folder"):
        fill(tmp_path, "a", "b")
    assert listing(tmp_path) == {"a": "old"}


def test_a_move_that_breaks_off_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("old")
    plain, calls = os.replace, []

    def breaks(source: Path, target: Path) -> None:
        calls.append(source)
        if len(calls) == 4:  # a and b are put aside, a is replaced, b is not
            raise OSError(28, "No space left on device")
        plain(source, target)

    monkeypatch.setattr(files.os, "replace", breaks)
    with pytest.raises(RawlsError, match="No space left"):
        fill(tmp_path, "a", "b", "c")
    assert listing(tmp_path) == {"a": "old", "b": "old"}
    assert len(list(tmp_path.iterdir())) == 2


def test_an_error_names_the_final_path(tmp_path: Path) -> None:
    def in_the_way() -> None:
        with atomic_directory(tmp_path / "out") as folder:
            (folder / "picture.png").mkdir()
            write(folder / "picture.png")

    with pytest.raises(RawlsError) as caught:
        in_the_way()
    assert str(tmp_path / "out" / "picture.png") in str(caught.value)
    assert ".new-" not in str(caught.value)


def test_what_cannot_be_written_is_refused_early(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    for check, path, words in (
        (check_file, tmp_path, "it is a folder"),
        (check_file, file / "below.json", "Not a directory"),
        (check_file, Path("/proc/none/a.json"), "cannot write /proc/none/a.json"),
        (check_folder, file, "not a folder"),
        (check_folder, file / "below", "cannot write into"),
    ):
        with pytest.raises(RawlsError, match=words):
            check(path)
    for fine in (tmp_path / "new" / "deep" / "a.json", file, Path("/dev/null")):
        check_file(fine)
    check_folder(tmp_path / "new" / "deep")
    check_folder(tmp_path)
    assert listing(tmp_path) == {"file": "mine"}
    assert len(list(tmp_path.iterdir())) == 1


@NOT_ROOT
def test_a_folder_without_the_right_to_write_is_refused_early(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "open").mkdir(parents=True)
    closed.chmod(0o555)
    try:
        for check in (check_file, check_folder):
            with pytest.raises(RawlsError, match="Permission denied"):
                check(closed / "new")
        fill(closed / "open", "a")
        assert listing(closed / "open") == {"a": "new"}
    finally:
        closed.chmod(0o755)


def test_ids_never_need_a_pickle() -> None:
    for ids in (
        None,
        ["ann", "ben"],
        np.array(["ann", 2], dtype=object),
        np.array([7, 8]),
        [1, "b"],
    ):
        assert plain_ids(ids, 2).dtype.kind in "iU"
    assert plain_ids(np.array(["ann", "ben"], dtype=object), 2).tolist() == ["ann", "ben"]


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (["ann"], r"shape \(1,\) for 2 nodes"),
        (np.zeros((2, 2)), r"shape \(2, 2\) for 2 nodes"),
        (np.array("ann"), r"shape \(\) for 2 nodes"),
        ([[1], [2, 3]], "the node ids cannot be read as an array"),
        (["x" * 3000] + ["y"] * 200_000, "a node id of 3,000 letters"),
        (np.array(["x" * 3000] + ["y"] * 200_000, dtype=object), "a node id of 3,000 letters"),
    ],
)
def test_ids_that_are_not_one_for_each_node_are_told(ids: Any, said: str) -> None:
    """Two gigabytes are no array of ids."""
    with pytest.raises(RawlsError, match=said):
        plain_ids(ids, 2)
