"""The fuzzer (docs/fuzzing.md) in a short form: a few thousand damaged files over all readers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.slow
CASES = 300


def test_no_damaged_file_breaks_a_reader() -> None:
    import torch

    from tools.fuzz.readers import READERS
    from tools.fuzz.supervise import Finding, fuzz

    torch.set_num_threads(1)  # before the children are forked
    findings: list[Finding] = []
    tallies = fuzz(list(READERS.values()), CASES, seed=2026, jobs=2, found=findings.append)
    assert not [(finding.key, finding.outcome.message) for finding in findings]
    for name, tally in tallies.items():
        assert tally.cases == CASES, name
        # Neither all cases nor none may be refused, or the damage is not where it should be.
        assert tally.accepted > CASES / 100, name
        assert tally.refused > CASES / 5, name
