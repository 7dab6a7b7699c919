"""Writing: whole or not at all, where the user said, and refused early where it cannot be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rawlsgcn._core import atomic_files, atomic_folders
from rawlsgcn._core.atomic_files import atomic_file, check_file, check_folder
from rawlsgcn._core.atomic_folders import atomic_directory, one_version
from rawlsgcn._core.errors import RawlsError

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


def test_other_files_of_an_existing_folder_stay_what_they_are(tmp_path: Path) -> None:
    """Under the same inode, so that a process that writes one of them goes on writing it."""
    out = tmp_path / "out"
    (out / "own" / "deep").mkdir(parents=True)
    (out / "a").write_text("old")
    (out / "link").symlink_to("nowhere")
    (out / "own").chmod(0o750)
    with (out / "own" / "deep" / "log").open("w") as log:
        fill(out, "a", "b")
        log.write("going on")
    assert listing(out) == {"a": "new", "b": "new"}
    assert (out / "own" / "deep" / "log").read_text() == "going on"
    assert (out / "own").stat().st_mode & 0o777 == 0o750
    assert (out / "link").readlink() == Path("nowhere")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_keeps_its_rights(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir(mode=0o705)
    fill(out, "a")
    assert out.stat().st_mode & 0o777 == 0o705


def test_the_current_folder_stays_the_same_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Swapped, it would leave the user's shell in a deleted one."""
    monkeypatch.chdir(tmp_path)
    Path("a").write_text("old")
    fill(Path("."), "a", "b")
    assert listing(Path.cwd()) == listing(tmp_path) == {"a": "new", "b": "new"}


def test_a_folder_in_the_way_is_told_and_nothing_is_moved(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "b").mkdir()
    with pytest.raises(RawlsError, match="b: there is a folder"):
        fill(tmp_path, "a", "b")
    assert listing(tmp_path) == {"a": "old"}


def exchanges(folder: Path) -> bool:
    one, other = folder / "one", folder / "other"
    one.mkdir()
    other.mkdir()
    try:
        atomic_folders._exchange(one, other)
    except OSError:
        return False
    finally:
        one.rmdir()
        other.rmdir()
    return True


@pytest.fixture
def without_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a disk that cannot let two folders change places."""

    def refused(one: Path, other: Path) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(atomic_folders, "_exchange", refused)


@pytest.mark.usefixtures("without_exchange")
@pytest.mark.parametrize("fails_at", range(1, 8))
def test_a_move_that_breaks_off_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for name in ("a", "b", "mine"):
        (out / name).write_text("old")
    plain, calls = os.replace, []

    def breaks(source: Path, target: Path) -> None:
        calls.append(source)
        if len(calls) == fails_at:
            raise OSError(28, "No space left on device")
        plain(source, target)

    monkeypatch.setattr(atomic_folders.os, "replace", breaks)
    if fails_at > 5:  # a and b out, then a, b and c in
        fill(out, "a", "b", "c")
        assert listing(out) == {"a": "new", "b": "new", "c": "new", "mine": "old"}
    else:
        with pytest.raises(RawlsError, match="No space left"):
            fill(out, "a", "b", "c")
        assert listing(out) == {"a": "old", "b": "old", "mine": "old"}
    assert not list(tmp_path.rglob(".*"))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("way", ["swapped", "in place", "new", "file"])
def test_a_kill_at_any_moment_leaves_the_old_or_the_new(tmp_path: Path, way: str) -> None:
    if way == "swapped" and not exchanges(tmp_path):
        pytest.skip("this disk cannot let two folders change places")
    script = Path(__file__).with_name("killed_writes.py")
    path = os.pathsep.join(sys.path)
    ran = subprocess.run(
        [sys.executable, str(script), str(tmp_path), way],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert ran.returncode == 0, ran.stderr
    kills = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(kills) > 5
    if way == "file":
        own: dict[str, str] = {"own/mine": "mine", "x.stale": "old"}
        old, new, newest = ({"a.txt": text, **own} for text in ("old", "new", "next"))
    else:
        own = {} if way == "new" else {"own/mine": "mine"}
        old = {} if way == "new" else {**dict.fromkeys("abc", "old"), **own, "x.stale": "old"}
        new, newest = ({**dict.fromkeys("abc", text), **own} for text in ("new", "next"))
    assert any(kill["read"] == old for kill in kills)
    assert any(kill["read"] == new for kill in kills)
    for kill in kills:
        assert kill["read"] in (old, new)
        # Whoever reads it without this package sees a whole version, or parts of one alone.
        kinds = {text for name, text in kill["then"].items() if name in "abc"}
        assert kill["then"] in (old, new) if way != "in place" else len(kinds) <= 1
        assert kill["after"] == newest
        assert kill["left"] == []


def test_what_is_in_use_or_of_others_is_not_cleaned_up(tmp_path: Path) -> None:
    others = [".rawlsgcn-notes", ".rawlsgcn-0123ABCD", ".a-01234567", ".rawlsgcn-01234567-x"]
    for name in (*others, ".rawlsgcn-89abcdef.csv"):
        (tmp_path / name).write_text("what a kill left, or another's")
    (tmp_path / ".rawlsgcn-01234567").mkdir()
    (tmp_path / ".rawlsgcn-01234567" / "a").write_text("what a kill left")
    (tmp_path / ".rawlsgcn-00000000").symlink_to(tmp_path / others[0])
    with atomic_file(tmp_path / "a.csv") as held, atomic_directory(tmp_path / "b") as folder:
        write(tmp_path / "c.csv")
        fill(tmp_path / "d", "a")
        assert held.exists()
        assert folder.is_dir()
        held.write_text("a")
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {*others, ".rawlsgcn-00000000", "a.csv", "b", "c.csv", "d"}


@pytest.mark.parametrize("in_place", [False, True])
def test_a_reader_sees_one_version_while_others_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, in_place: bool
) -> None:
    if in_place:
        request.getfixturevalue("without_exchange")
    out, versions = tmp_path / "out", 40

    def put(text: str) -> None:
        with atomic_directory(out) as folder:
            for name in ("a", "b"):
                (folder / name).write_text(text)

    @one_version
    def both(folder: Path) -> tuple[str, str]:
        try:
            first = (folder / "a").read_text()
            time.sleep(0.001)
            return first, (folder / "b").read_text()
        except OSError as error:
            raise RawlsError("not there") from error

    put("0")
    writer = threading.Thread(target=lambda: [put(str(each)) for each in range(1, versions)])
    writer.start()
    seen = []
    while writer.is_alive():
        seen.append(both(out))
    writer.join()
    assert all(first == second for first, second in seen)
    assert both(out) == (str(versions - 1),) * 2


def test_several_writers_leave_one_version(tmp_path: Path) -> None:
    out = tmp_path / "out"

    def put(text: str) -> None:
        for _ in range(10):
            with atomic_directory(out) as folder:
                for name in ("a", "b"):
                    (folder / name).write_text(text)

    writers = [threading.Thread(target=put, args=(str(each),)) for each in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(set(listing(out).values())) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_everything_is_on_the_disk_before_it_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not exchanges(tmp_path):
        pytest.skip("this disk cannot let two folders change places")
    out, done = tmp_path / "out", []
    out.mkdir()
    (out / "mine").write_text("mine")
    sync, exchange, replace = atomic_folders.sync, atomic_folders._exchange, os.replace
    synced = lambda path: (done.append(Path(path).name), sync(path))  # noqa: E731
    for module in (atomic_files, atomic_folders):
        monkeypatch.setattr(module, "sync", synced)

    def swaps(one: Path, other: Path) -> None:
        done.append("swap")
        exchange(one, other)

    def replaces(one: Path, other: Path) -> None:
        done.append("replace")
        replace(one, other)

    monkeypatch.setattr(atomic_folders, "_exchange", swaps)
    monkeypatch.setattr(atomic_files.os, "replace", replaces)
    with atomic_directory(out) as folder:
        write(folder / "a.txt")
        (folder / "b").write_text("new")
    assert done[0] == "replace"  # into the temporary folder, which is synchronized as a whole
    before = done[: done.index("swap")]
    assert {"a.txt", "b", folder.name} <= set(before)
    assert done[done.index("swap") + 1] == tmp_path.name
    done.clear()
    write(out / "c.txt")
    assert done[1:] == ["replace", "out"]
    assert done[0].endswith(".txt")


def test_an_error_names_the_final_path(tmp_path: Path) -> None:
    def in_the_way() -> None:
        with atomic_directory(tmp_path / "out") as folder:
            (folder / "picture.png").mkdir()
            write(folder / "picture.png")

    with pytest.raises(RawlsError) as caught:
        in_the_way()
    assert str(tmp_path / "out" / "picture.png") in str(caught.value)
    assert atomic_files.PREFIX not in str(caught.value)


def test_numpy_does_not_say_that_the_disk_is_full(tmp_path: Path) -> None:
    """Of an array that is written in part it names the numbers alone."""

    def full() -> None:
        with atomic_file(tmp_path / "array.npy"):
            raise OSError("780201 requested and 523776 written")

    with pytest.raises(RawlsError, match=r"array.npy: not all of it .* the disk is full$"):
        full()


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


def test_a_folder_that_never_rests_is_told(tmp_path: Path) -> None:
    @one_version
    def busy(folder: Path) -> int:
        (folder / f"{len(list(folder.iterdir()))}").touch()
        time.sleep(0.005)
        return 1

    with pytest.raises(RawlsError, match="changes all the time"):
        busy(tmp_path)
