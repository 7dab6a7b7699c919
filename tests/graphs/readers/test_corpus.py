"""Every file that once broke a reader (docs/fuzzing.md) is read or refused in one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT))

from tools.fuzz import corpus  # noqa: E402
from tools.fuzz.readers import READERS  # noqa: E402
from tools.fuzz.verdict import judge  # noqa: E402

KEPT = sorted((ROOT / "tests" / "corpus").glob("*.zip"))
DANGEROUS = [path for path in KEPT if corpus.may_crash(corpus.load(path))]


@pytest.mark.parametrize(
    "path", [path for path in KEPT if path not in DANGEROUS], ids=lambda path: path.stem
)
def test_a_kept_finding_stays_mended(path: Path, tmp_path: Path) -> None:
    case = corpus.load(path).case
    if "parquet" in case.reader:
        pytest.importorskip("pyarrow")
    folder = tmp_path / "case"
    folder.mkdir()
    for name, content in case.files.items():
        (folder / name).write_bytes(content)
    outcome = judge(READERS[case.reader], folder, case.files)
    assert not outcome.wrong, outcome


@pytest.mark.slow
def test_findings_that_crashed_hung_or_filled_the_memory_stay_mended() -> None:
    pytest.importorskip("pyarrow")
    command = [sys.executable, "-m", "tools.fuzz", "--replay", *map(str, DANGEROUS)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert done.stdout.count("\n") == len(DANGEROUS)
