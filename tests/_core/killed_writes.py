"""Run by test_atomic_files.py: a process is killed before each call to the file system in turn.

``python killed_writes.py FOLDER WAY`` prints one JSON line a kill: what was in the folder then,
what a reader finds, and what is there after the next write.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from rawlsgcn._core.atomic_files import atomic_file
from rawlsgcn._core.atomic_folders import atomic_directory, one_version

CALLS = {"os.rename", "os.link", "os.mkdir", "os.rmdir", "os.remove", "os.chmod", "os.utime"}
CALLS |= {"open", "ctypes.dlsym", "os.chown", "os.truncate"}
NAMES = ("a", "b", "c")


def put(folder: Path, text: str) -> None:
    with atomic_directory(folder, lambda name: name.endswith(".stale")) as temporary:
        for name in NAMES:
            (temporary / name).write_text(text)


def put_file(path: Path, text: str) -> None:
    with atomic_file(path) as temporary:
        temporary.write_text(text)


def listing(folder: Path) -> dict[str, str]:
    """Every file but temporary ones, with what is in it."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file() and not name.startswith("."):
            found[name] = path.read_text()
    return found


def killed(which: int, write: str, target: Path, text: str) -> bool:
    """Whether a child that writes was killed before its call number ``which``."""
    child = os.fork()
    if child == 0:
        made = 0

        def count(event: str, _: object) -> None:
            nonlocal made
            if event in CALLS:
                made += 1
                if made > which:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        (put_file if write == "file" else put)(target, text)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def main(base: Path, way: str) -> None:
    out = base / "out"
    target = out / "a.txt" if way == "file" else out
    whole = one_version(listing)
    for which in range(10_000):
        if way != "new":
            (out / "own").mkdir(parents=True, exist_ok=True)
            (out / "own" / "mine").write_text("mine")
            (out / "x.stale").write_text("old")
            if way == "file":
                put_file(target, "old")
            else:
                for name in NAMES:
                    (out / name).write_text("old")
        if way == "in place":
            os.chdir(out)
        ended = not killed(which, way, target, "new")
        then, read = listing(out), whole(out)
        (put_file if way == "file" else put)(target, "next")
        left = [str(path) for path in base.rglob(".*")]
        print(json.dumps({"then": then, "read": read, "after": listing(out), "left": left}))
        if ended:
            return
        if way == "new":
            for name in NAMES:
                (out / name).unlink()
            out.rmdir()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2])
