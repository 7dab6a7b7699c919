"""How much slower calls are beside busy threads: python tools/load.py [--datasets NAME ...].

Times ``fit`` and ``balance`` alone and beside as many busy processes as there are cores, in turn,
and prints the ratios of the medians. Run it on an otherwise idle machine.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import rawlsgcn as rg


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--datasets", nargs="+", default=["synthetic"])
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    print(f"{os.cpu_count()} cores, {given.rounds} rounds; seconds alone and busy, ratio")
    for name in given.datasets:
        graph = rg.load(name)
        for what, call in (
            ("fit gcn, 1 seed", lambda g=graph: rg.fit(g, "gcn", seeds=1)),
            ("fit rawlsgcn-grad, 5 seeds", lambda g=graph: rg.fit(g, "rawlsgcn-grad", seeds=5)),
            ("balance", lambda g=graph: rg.balance(g.edge_index, num_nodes=g.num_nodes)),
        ):
            alone, busy = timed(call, given.rounds)
            print(f"{name:18} {what:28} {alone:8.4f} {busy:8.4f} {busy / alone:5.2f}", flush=True)


def timed(call: Callable[[], object], rounds: int) -> tuple[float, float]:
    """The median seconds of a call alone, and beside busy processes."""
    call()
    alone, busy = [], []
    for _ in range(rounds):
        alone.append(seconds(call))
        with busy_cores():
            busy.append(seconds(call))
    return statistics.median(alone), statistics.median(busy)


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


@contextmanager
def busy_cores() -> Iterator[None]:
    """Keep every core busy meanwhile."""
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=spin, daemon=True) for _ in range(os.cpu_count() or 1)]
    for other in others:
        other.start()
    time.sleep(0.5)
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.join()


def spin() -> None:
    while True:
        pass


if __name__ == "__main__":
    main()
