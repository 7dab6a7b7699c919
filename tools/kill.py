"""Kill the commands that keep files at random moments, and look at what is left.

    python tools/kill.py --kills 100 --seed 0

Each kill is a SIGKILL to all processes of a command. Some fall at any moment of a run, some at any
moment after its first call that writes, and some exactly before one of these calls. After each:

* every kept file is whole: it loads, and it is the old version or the new one; files that belong
  together are of the same version;
* the same command once more ends well and gives the answer of an unbroken run, to the bit but for
  times and memory, and no temporary file or other trace of the kill is left.

The commands run in forks of one process that has loaded everything, so that a kill takes moments.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import mmap
import os
import random
import shutil
import signal
import socket
import sqlite3
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

# Before torch is loaded: one thread, so that forks are safe and all runs give the same bits.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["COLUMNS"] = "120"

TEMPORARY = ".rawlsgcn-"
#: Entries of JSON files that differ from run to run.
TIMES = {"seconds", "peak_memory_mb", "times", "preparing_seconds", "training_seconds", "made"}
WRITING = {"os.rename", "os.link", "os.mkdir", "os.rmdir", "os.remove", "sqlite3.connect"}
WRITING |= {"os.chmod", "os.utime", "os.truncate"}
EXCHANGES = {"renameat2", "renamex_np"}
#: Files with times in them: they are whole where they have an end.
VARYING = (".html", ".md", ".tex", "cells.csv", "leaderboard.csv")
LONGEST_SECONDS = 180.0


@dataclass(frozen=True)
class Command:
    """A command that keeps files. ``{}`` stands for the folder that it works in."""

    name: str
    arguments: str
    #: The command that made what is there before, if anything is.
    before: str | None = None
    #: "together": all files are of one version; "each": each of them is the old or the new one;
    #: "whole": there are versions in between, and each file loads.
    files: str = "together"
    processes: int = 1


_TRAIN = "train --dataset synthetic --method gcn --seeds 2 --device cpu --out {}/out --epochs"
_TUNE = "tune --dataset synthetic --method gcn --seeds 1 --grid lr=0.01,0.05 --device cpu"
_AUTO = "auto --dataset synthetic --time-limit 0.001 --device cpu --out {}/out --seed"
_BALANCE = "balance --dataset synthetic --device cpu --out {}/balanced.npz --json {}/about.json"
_SHARD = "shard --dataset synthetic --count 2 --out {}/shards"
COMMANDS = (
    Command("train, new folder", f"{_TRAIN} 20"),
    Command("train, existing folder", f"{_TRAIN} 20", before=f"{_TRAIN} 12"),
    Command(
        "tune, existing folder",
        f"{_TUNE} --set epochs=15 --out {{}}/out",
        before=f"{_TUNE} --set epochs=10 --out {{}}/out",
    ),
    Command("auto, existing folder", f"{_AUTO} 1", before=f"{_AUTO} 0"),
    Command("balance", f"{_BALANCE} --tol 1e-8", before=f"{_BALANCE} --tol 1e-4", files="each"),
    Command(
        "reproduce",
        "reproduce effectiveness --datasets synthetic --methods gcn,rawlsgcn-graph --seeds 1 "
        "--device cpu --resume --out {}/out",
        files="whole",
    ),
    Command(
        "smooth",
        "smooth --shards {}/shards --set steps=2 --device cpu",
        before=_SHARD,
        files="each",
    ),
    Command(
        "sharded training",
        "train --shards {}/shards --method rawlsgcn-graph --num-neighbors 3,3 "
        "--batch-size 40 --epochs 2 --checkpoint-every 1 --device cpu --out {}/out",
        before=_SHARD,
        processes=2,
    ),
)


# ---- running a command ---------------------------------------------------------------------------


class Calls:
    """How many calls that write each process of a command has made; shared with its forks."""

    def __init__(self, processes: int) -> None:
        self._memory = mmap.mmap(-1, 8 * (processes + 1))
        self._places = processes + 1

    def add(self, place: int) -> int:
        count = self.of(place) + 1
        struct.pack_into("q", self._memory, 8 * place, count)
        return count

    def of(self, place: int) -> int:
        return int(struct.unpack_from("q", self._memory, 8 * place)[0])

    @property
    def most(self) -> int:
        return max(self.of(place) for place in range(self._places))


@dataclass
class Run:
    """A command at work."""

    pid: int
    calls: Calls
    log: Path
    began: float = field(default_factory=time.monotonic)
    status: int | None = None

    def poll(self) -> int | None:
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status

    def wait(self, ended: Callable[[], bool] = lambda: False) -> int | None:
        """Its exit status; or None where ``ended`` came first."""
        while self.poll() is None and not ended():
            if time.monotonic() - self.began > LONGEST_SECONDS:
                self.kill()
                raise AssertionError(f"it ran for more than {LONGEST_SECONDS} s: {self.said()}")
            time.sleep(0.0005)
        return self.status

    def kill(self) -> None:
        if self.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
        self.wait()
        while _any_of(self.pid):
            time.sleep(0.001)

    def said(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]


def _any_of(group: int) -> bool:
    """Whether a process of a group is still alive."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, of = path.read_text(errors="replace").rpartition(")")[2].split()[:3]
        except (OSError, ValueError):
            continue
        if int(of) == group and state not in "ZX":
            return True
    return False


def start(command: Command, arguments: str, folder: Path, kill_at: int | None = None) -> Run:
    """Fork a command off, which kills itself before its call that writes number ``kill_at``."""
    calls, log = Calls(command.processes), folder.with_suffix(".log")
    words = [word.replace("{}", str(folder)) for word in arguments.split()]
    processes = command.processes if arguments == command.arguments else 1

    def work() -> int:
        os.setpgid(0, 0)
        out = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o666)
        os.dup2(out, 1)
        os.dup2(out, 2)
        if processes == 1:
            return _work(words, folder, calls, 0, kill_at)
        return _together(words, folder, calls, processes, kill_at)

    pid = _forked(work)
    with suppress(OSError):  # it has done so itself, or has ended
        os.setpgid(pid, pid)
    return Run(pid, calls, log)


def _forked(work: Callable[[], int]) -> int:
    """A new process that does the work and ends with its status."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    status = 70
    try:
        status = work()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _together(
    words: list[str], folder: Path, calls: Calls, processes: int, kill_at: int | None
) -> int:
    """What torchrun does: processes with their ranks in the environment."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        os.environ["MASTER_PORT"] = str(found.getsockname()[1])
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "WORLD_SIZE": str(processes)}

    def work(rank: int) -> int:
        os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        return _work(words, folder, calls, rank + 1, kill_at)

    workers = [_forked(partial(work, rank)) for rank in range(processes)]
    ended = [os.waitpid(each, 0)[1] for each in workers]
    return int(any(ended))


def _work(words: list[str], folder: Path, calls: Calls, place: int, kill_at: int | None) -> int:
    from rawlsgcn.cli import app

    inside = str(folder)

    def watch(event: str, args: tuple[Any, ...]) -> None:
        if event in WRITING:
            writes = any(
                isinstance(arg, str | Path) and str(arg).startswith(inside) for arg in args
            )
        elif event == "open":
            writes = str(args[0]).startswith(inside) and _to_write(args[1], args[2])
        else:
            writes = event == "ctypes.dlsym" and args[1] in EXCHANGES
        if writes and calls.add(place) == kill_at:
            os.killpg(0, signal.SIGKILL)
            signal.pause()

    sys.addaudithook(watch)
    try:
        sys.argv = ["rawlsgcn", *words]
        app()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def _to_write(mode: object, flags: int) -> bool:
    nameless = getattr(os, "O_TMPFILE", 0)
    if nameless and flags & nameless == nameless:
        return False
    asked = isinstance(mode, str) and any(letter in mode for letter in "wax+")
    return asked or bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


# ---- what is kept --------------------------------------------------------------------------------


def prints(folder: Path) -> dict[str, str]:
    """The fingerprint of every kept file, which must load."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and TEMPORARY not in str(path.relative_to(folder)):
            found[str(path.relative_to(folder))] = _print(path)
    return found


def _print(path: Path) -> str:
    content = path.read_bytes()
    if path.suffix == ".json":
        content = json.dumps(_timeless(json.loads(content)), sort_keys=True).encode()
    elif path.suffix == ".safetensors":
        from safetensors import numpy

        numpy.load(content)
    elif path.suffix == ".npz":
        import numpy as np

        with np.load(path, allow_pickle=False) as arrays:
            assert all(arrays[name].size for name in arrays.files)
    elif path.suffix == ".pt":
        import torch

        torch.load(path, weights_only=True)
        return "a state of an optimizer"  # whose file has a name of its own in it
    elif path.suffix == ".html":
        assert content.rstrip().endswith(b"</html>"), f"{path} has no end"
    elif path.suffix == ".png":
        assert content.endswith(b"IEND\xaeB`\x82"), f"{path} has no end"
    elif path.suffix == ".csv":
        assert content.endswith(b"\n"), f"{path} has no end"
    elif path.suffix == ".db":
        # Without a look the journal that a kill left is no part of the whole.
        with sqlite3.connect(path) as database:
            assert database.execute("pragma integrity_check").fetchall() == [("ok",)], path
        return "a database"
    return "whole" if path.name.endswith(VARYING) else hashlib.sha256(content).hexdigest()


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _timeless(each) for name, each in value.items() if name not in TIMES}
    return [_timeless(each) for each in value] if isinstance(value, list) else value


@dataclass
class Known:
    """What is known of a command: what is there before it and after it, and how long it takes."""

    command: Command
    before: Path
    old: dict[str, str]
    new: dict[str, str]
    seconds: float
    until_writing: float
    calls: int


def learn(command: Command, base: Path) -> Known:
    """Run a command unbroken."""
    before = base / "before"
    before.mkdir(parents=True)
    (before / "out").mkdir()
    if command.before is None:
        (before / "out").rmdir()
    else:
        _must_end_well(start(command, command.before, before))
        if not any((before / "out").iterdir()):
            (before / "out").rmdir()
        else:
            (before / "out" / "notes.txt").write_text("the user's own\n")
    once = base / "once"
    shutil.copytree(before, once)
    run = start(command, command.arguments, once)
    run.wait(lambda: run.calls.most > 0)
    writing = time.monotonic() - run.began
    _must_end_well(run)
    seconds = time.monotonic() - run.began
    return Known(command, before, prints(before), prints(once), seconds, writing, run.calls.most)


def _must_end_well(run: Run) -> None:
    status = run.wait()
    assert status == 0, f"exit status {status}: {run.said()}"


# ---- one kill ------------------------------------------------------------------------------------


def kill_once(known: Known, folder: Path, chance: random.Random) -> str:
    """Kill a command once, look at what is left and go on; where the kill fell."""
    command = known.command
    while True:
        if folder.exists():
            shutil.rmtree(folder)
        shutil.copytree(known.before, folder)
        way = chance.choices(("any moment", "while writing", "before a call"), (4, 2, 4))[0]
        call = chance.randint(1, known.calls) if way == "before a call" else None
        run = start(command, command.arguments, folder, call)
        if way == "any moment":
            until = time.monotonic() + chance.uniform(0, known.seconds)
            run.wait(lambda: time.monotonic() >= until)  # noqa: B023
        elif way == "while writing":
            run.wait(lambda: run.calls.most > 0)  # noqa: B023
            delay = chance.uniform(0, max(0.01, known.seconds - known.until_writing))
            until = time.monotonic() + delay
            run.wait(lambda: time.monotonic() >= until)  # noqa: B023
        else:
            run.wait()
        run.kill()
        if run.status == -signal.SIGKILL:
            break
        assert run.status == 0, f"not killed, but ended with {run.status}: {run.said()}"
    left = prints(folder)
    _require_whole(known, left)
    writing = "during" if run.calls.most else "before"
    fell = "after" if left == known.new else writing
    again = start(command, command.arguments, folder)
    _must_end_well(again)
    now = prints(folder)
    assert now == known.new, f"the resumed answer differs: {_difference(known, now)}"
    traces = [str(path) for path in folder.rglob(f"{TEMPORARY}*")]
    assert not traces, f"left after the next run: {traces}"
    return fell


def _require_whole(known: Known, left: dict[str, str]) -> None:
    """Every file that was or will be there is one of the two, and all are of one version."""
    old, new = known.old, known.new
    if known.command.files == "whole":
        return
    for name, found in left.items():
        if name not in old and name not in new:
            continue  # it loads; a checkpoint that is not the last, or a journal of SQLite
        assert found in (old.get(name), new.get(name)), f"{name} is neither the old nor the new"
    lost = [name for name in old if name in new and name not in left and "scale" not in name]
    assert not lost, f"lost: {lost}"
    if known.command.files == "each":
        return
    final = {name for name in new if name.startswith("out/") and "checkpoint-" not in name}
    versions = [{name: each[name] for name in final if name in each} for each in (left, old, new)]
    assert versions[0] in versions[1:], f"mixed: {sorted(left)} against {_difference(known, left)}"
    checkpoints = Counter(name.split("/")[1] for name in left if "/checkpoint-" in name)
    assert set(checkpoints.values()) <= {3}, f"half of a checkpoint: {checkpoints}"


def _difference(known: Known, found: dict[str, str]) -> str:
    names = {*known.new, *found}
    return ", ".join(sorted(n for n in names if known.new.get(n) != found.get(n))) or "nothing"


# ---- all of them ---------------------------------------------------------------------------------

FELL = ("before", "during", "after")


def kill(kills: int, seed: int, base: Path, names: list[str] | None = None) -> list[str]:
    """Kill the commands in turn; print a table and give the failures back."""
    from rawlsgcn.experiments.saved_models import load_model  # noqa: F401
    from rawlsgcn.graphs import synthetic  # noqa: F401  # loaded before the forks
    from rawlsgcn.paper import reproduce  # noqa: F401
    from rawlsgcn.reporting import page  # noqa: F401

    chance = random.Random(seed)
    chosen = [each for each in COMMANDS if names is None or each.name in names]
    known = [learn(each, base / f"command-{place}") for place, each in enumerate(chosen)]
    fell: dict[str, Counter[str]] = {each.name: Counter() for each in chosen}
    failures = []
    for number in range(kills):
        one = known[number % len(known)]
        folder = base / f"kill-{number}"
        try:
            fell[one.command.name][kill_once(one, folder, chance)] += 1
        except Exception as error:
            fell[one.command.name]["failed"] += 1
            failures.append(f"kill {number}, {one.command.name}: {error!r}")
            print(failures[-1], f"(kept in {folder})", flush=True)
            continue
        shutil.rmtree(folder, ignore_errors=True)
    print("Kills by command, and by whether they fell before, during or after the writing:")
    print(f"{'':26}{'kills':>7}{'before':>9}{'during':>9}{'after':>9}{'failed':>9}")
    for name, counts in fell.items():
        row = "".join(f"{counts[each]:9}" for each in (*FELL, "failed"))
        print(f"{name:26}{sum(counts.values()):7}{row}")
    print(f"{kills} kills, {len(failures)} failures, seed {seed}", flush=True)
    return failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--command", action="append", help="one of the commands, by its name")
    asked = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="rawlsgcn-kill-"))
    failures = kill(asked.kills, asked.seed, base, asked.command)
    if failures:
        sys.exit(1)
    shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    main()
