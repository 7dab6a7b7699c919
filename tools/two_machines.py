"""Run shard, balance, smooth and train on two 'machines': network namespaces joined by a cable.

    python tools/two_machines.py [--nodes 200000]

Each machine is a namespace with an address and a port space of its own; all that they share is the
file system. In every phase but the first a worker of the second machine is killed with SIGKILL.
The result must be that of one process. It needs Linux, root and iproute2's ``ip``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np

_ADDRESSES = ("10.213.77.1", "10.213.77.2")
_PORT = 29577
_SECONDS = 300


def missing() -> str | None:
    """Return why two machines cannot be made here, or None if they can."""
    if not sys.platform.startswith("linux") or not shutil.which("ip"):
        return "needs Linux and the command ip"
    made = subprocess.run(["ip", "netns", "add", _name("t")], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "delete", _name("t")], capture_output=True, check=False)
    return None if made.returncode == 0 else "needs the right to make network namespaces"


def _name(which: str) -> str:
    return f"rawls{os.getpid()}{which}"


@dataclass(frozen=True)
class Killing:
    """Kill a worker of the second machine once ``when(its number)`` is True; keep its number.

    A worker that is lost after the others have ended cannot be replaced by torchrun: the others
    are not started again, and it waits for them. So ``when`` must be true in the middle of things.
    """

    when: Callable[[int], bool]
    killed: list[int]


class TwoMachines:
    """Two namespaces that are removed at the end, whatever happens."""

    def __enter__(self) -> TwoMachines:
        self._names, self._starts = [_name("a"), _name("b")], 0
        for name in self._names:
            _ip("netns", "add", name)
        _ip("link", "add", _name("a"), "type", "veth", "peer", "name", _name("b"))
        for name, address in zip(self._names, _ADDRESSES, strict=True):
            _ip("link", "set", name, "netns", name)
            _ip("-n", name, "address", "add", f"{address}/24", "dev", name)
            for device in (name, "lo"):
                _ip("-n", name, "link", "set", device, "up")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for name in self._names:
            _ip("netns", "delete", name)

    def torchrun(self, arguments: Sequence[str], killing: Killing | None = None) -> None:
        """Run a script or ``-m module`` as one process on each machine.

        Args:
            arguments: What follows torchrun's own options.
            killing: When to kill a worker of the second machine.

        Raises:
            RuntimeError: If it fails on a machine or takes longer than five minutes.
        """
        self._starts += 1
        started = [self._start(rank, arguments) for rank in (0, 1)]
        try:
            ends = time.monotonic() + _SECONDS
            while any(process.poll() is None for process in started):
                if killing and not killing.killed:
                    killing.killed.extend(_kill_workers(started[1].pid, killing.when))
                if time.monotonic() > ends:
                    raise RuntimeError(f"not done after {_SECONDS} s: {' '.join(arguments)}")
                time.sleep(0.02)
        finally:
            for process in started:
                if process.poll() is None:
                    process.terminate()
        said = [process.communicate()[0] for process in started]
        for rank, process in enumerate(started):
            if process.returncode:
                raise RuntimeError(f"machine {rank} failed:\n{said[rank][-3000:]}")

    def _start(self, rank: int, arguments: Sequence[str]) -> subprocess.Popen[str]:
        name, address = self._names[rank], _ADDRESSES[rank]
        own = ["--nnodes", "2", "--nproc-per-node", "1", "--max-restarts", "3"]
        own += ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"{_ADDRESSES[0]}:{_PORT}"]
        own += ["--rdzv-id", f"start{self._starts}", "--rdzv-conf", f"is_host={1 - rank}"]
        command = [sys.executable, "-m", "torch.distributed.run", *own, "--local-addr", address]
        return subprocess.Popen(
            ["ip", "netns", "exec", name, *command, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={
                **os.environ,
                "GLOO_SOCKET_IFNAME": name,
                "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
                "OMP_NUM_THREADS": "1",
            },
        )


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def _kill_workers(agent: int, when: Callable[[int], bool]) -> list[int]:
    """Kill the processes that torchrun started, its children, if it is time."""
    found = []
    for path in Path(f"/proc/{agent}/task").glob("*/children"):
        for child in map(int, path.read_text().split()):
            command = Path(f"/proc/{child}/cmdline").read_bytes()
            if b"rawlsgcn" in command and when(child):
                os.kill(child, signal.SIGKILL)
                found.append(child)
    return found


def _phases(shards: Path, model: Path) -> dict[str, list[str]]:
    where = ["--shards", str(shards), "--device", "cpu"]
    learn = ["--method", "smoothed-mlp", "--batch-size", "4096", "--checkpoint-every", "5"]
    learn += ["--engine", "smoothed", "--epochs", "8", "--set", "dropout=0.0", "--out", str(model)]
    return {
        "balance": ["balance", *where, "--tol", "1e-10"],
        "smooth": ["smooth", *where, "--memory", "1GB"],
        "train": ["train", *where, *learn],
    }


def _compare(one: Path, two: Path, folders: Path) -> list[str]:
    """Return a line for each comparison; AssertionError where the results differ."""
    lines = []
    pieces = [sorted(folder.glob("*-scale.npy")) for folder in (one, two)]
    scale = [np.concatenate([np.load(piece) for piece in each]) for each in pieces]
    np.testing.assert_allclose(scale[1], scale[0], rtol=1e-10)
    lines.append(f"balance: {np.abs(scale[1] / scale[0] - 1).max():.1e} at most, relatively")
    pieces = [sorted(folder.glob("smoothed-*/*.npy")) for folder in (one, two)]
    rows = [np.concatenate([np.load(piece) for piece in each]) for each in pieces]
    largest = float(np.abs(rows[0]).max())
    np.testing.assert_allclose(rows[1], rows[0], rtol=1e-5, atol=1e-6 * largest)
    lines.append(f"smooth: {np.abs(rows[1] - rows[0]).max():.1e} at most (float32)")
    # Single weights drift apart, as rounding grows in many steps; what they predict does not.
    figures = [json.loads((folders / name / "metrics.json").read_text()) for name in ("m1", "m2")]
    for name in ("accuracy", "low_degree_accuracy"):
        one_process, two_machines = (each[name] for each in figures)
        assert abs(one_process - two_machines) < 0.5, (name, one_process, two_machines)
        lines.append(f"train: {name} {one_process:.2f} and {two_machines:.2f}")
    return lines


def main() -> None:
    """Run it and print what was compared."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--nodes", type=int, default=200_000)
    asked = parser.parse_args()
    reason = missing()
    if reason:
        sys.exit(f"two machines cannot be made here: it {reason}")
    from rawlsgcn.graphs import synthetic
    from rawlsgcn.graphs.shards import write_shards

    with tempfile.TemporaryDirectory() as folder, TwoMachines() as machines:
        where = Path(folder)
        graph = synthetic(asked.nodes, features=48, words=6, split="0.6,0.2,0.2")
        one, two = where / "one", where / "two"
        for shards in (one, two):
            write_shards(graph, 2, shards)
        for phase, arguments in _phases(one, where / "m1").items():
            subprocess.run([sys.executable, "-m", "rawlsgcn", *arguments], check=True)
            print(f"one process: {phase}", flush=True)
        for phase, arguments in _phases(two, where / "m2").items():
            begun = time.monotonic()
            killing = Killing(_when(phase, two, where / "m2"), [])
            machines.torchrun(["-m", "rawlsgcn", *arguments], killing)
            took = time.monotonic() - begun
            print(f"two machines: {phase}, {len(killing.killed)} worker killed, {took:.1f} s")
        print("\n".join(_compare(one, two, where)))


def _when(phase: str, shards: Path, model: Path) -> Callable[[int], bool]:
    """Return what is true while a worker is in the middle of a phase."""
    if phase == "smooth":
        return lambda _: any(shards.glob(".smoothed*/*"))
    if phase == "train":
        return lambda _: any(model.glob("checkpoint-*"))
    return lambda worker: "-column.npy" in Path(f"/proc/{worker}/maps").read_text()


if __name__ == "__main__":
    main()
