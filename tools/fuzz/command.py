"""The command line of the fuzzer."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from . import child, corpus
from .reader import Reader
from .readers import READERS
from .supervise import Finding, Tally, fuzz


def main(arguments: list[str] | None = None) -> int:
    """Fuzz; the exit status is 1 if there was a finding."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000, help="in all, over all readers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case a reader")
    parser.add_argument("--readers", default="", help=f"of {','.join(READERS)}; by default all")
    parser.add_argument("--jobs", type=int, default=2, help="child processes at a time")
    parser.add_argument("--out", type=Path, default=Path("findings"), help="folder of findings")
    parser.add_argument("--replay", type=Path, nargs="+", help="read kept findings instead")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # clean up on the way out
    names = [name for name in given.readers.split(",") if name] or list(READERS)
    unknown = sorted(set(names) - set(READERS))
    if unknown:
        parser.error(f"there is no reader {unknown[0]}: there are {', '.join(READERS)}")
    if given.replay:
        return _replay(given.replay)
    return _fuzz([READERS[name] for name in names], given)


def _fuzz(readers: list[Reader], given: argparse.Namespace) -> int:
    each = -(-given.cases // len(readers))
    started, shown = time.monotonic(), [0.0]
    live = sys.stderr.isatty()

    def found(finding: Finding) -> None:
        path = corpus.keep(finding, given.out)
        outcome = finding.outcome
        line = f"{finding.case.reader}: {outcome.kind} in {outcome.where}: {outcome.message[:120]}"
        print(f"\r{line} [{finding.case.index}] -> {path.name}", flush=True)

    def tell(tallies: dict[str, Tally]) -> None:
        now = time.monotonic()
        if now - shown[0] < (1 if live else 30):
            return
        shown[0] = now
        done = sum(tally.cases for tally in tallies.values())
        wrong = sum(tally.findings.total() for tally in tallies.values())
        rate = done / max(now - started, 1e-9)
        text = f"{done:,} of {each * len(readers):,} cases, {rate:,.0f} a second, {wrong:,} wrong"
        print(
            f"\r{text}  " if live else text, end="" if live else "\n", file=sys.stderr, flush=True
        )

    tallies = fuzz(readers, each, given.seed, given.jobs, first=given.first, found=found, tell=tell)
    print_table(tallies, time.monotonic() - started)
    return int(any(tally.findings for tally in tallies.values()))


def print_table(tallies: dict[str, Tally], seconds: float) -> None:
    """Cases, accepted, refused and findings of each reader."""
    head = f"{'reader':20} {'cases':>10} {'accepted':>10} {'refused':>10} {'wrong':>8}"
    print(f"\n{head} {'kinds':>6} {'ms':>6}")
    total = Tally()
    for name, tally in tallies.items():
        _print_row(name, tally)
        total.cases += tally.cases
        total.accepted += tally.accepted
        total.refused += tally.refused
        total.seconds += tally.seconds
        total.findings.update({(name, *key): n for key, n in tally.findings.items()})  # type: ignore[misc]
    _print_row("total", total)
    print(f"{seconds:,.0f} s, {total.cases / max(seconds, 1e-9):,.0f} cases a second")


def _print_row(name: str, tally: Tally) -> None:
    wrong, kinds = tally.findings.total(), len(tally.findings)
    pace = 1000 * tally.seconds / max(tally.cases, 1)
    print(
        f"{name:20} {tally.cases:>10,} {tally.accepted:>10,} {tally.refused:>10,} {wrong:>8,} "
        f"{kinds:>6} {pace:>6.1f}"
    )


def _replay(paths: list[Path]) -> int:
    """Read kept findings in this process and print what became of each."""
    files = [
        file for path in paths for file in (sorted(path.glob("*.zip")) if path.is_dir() else [path])
    ]
    wrong = 0
    child.limit_memory()
    for path in files:
        finding = corpus.load(path)
        with TemporaryDirectory() as folder:
            laid = child.Folder(Path(folder) / "case")
            laid.path.mkdir()
            laid.lay(finding.case.files)
            print(f"{path.name}: ", end="", flush=True)
            outcome = child.run(READERS[finding.case.reader], finding.case, laid.path)
        wrong += outcome.wrong
        print(f"{outcome.kind} {outcome.where} {outcome.message[:300]}", flush=True)
    return int(wrong > 0)
