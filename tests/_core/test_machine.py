"""The peak memory of this process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rawlsgcn._core.machine import peak_resident_bytes


@pytest.mark.slow
def test_the_peak_rises_with_what_the_process_holds() -> None:
    """Run in a process of its own: here other tests may have used more before."""
    words = (
        "from rawlsgcn._core.machine import peak_resident_bytes as peak\n"
        "before = peak(); held = b'x' * 200_000_000; print(peak() - before)"
    )
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert 150e6 < int(done.stdout) < 300e6


@pytest.mark.slow
def test_a_program_does_not_inherit_the_peak_of_the_one_that_starts_it() -> None:
    """Linux keeps it in ``getrusage`` across the start of a program."""
    words = (
        "import subprocess, sys\n"
        "held = b'x' * 900_000_000\n"
        "words = 'from rawlsgcn._core.machine import peak_resident_bytes as p; print(p())'\n"
        "subprocess.run([sys.executable, '-c', words], check=True)"
    )
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert 0 < int(done.stdout) < 700_000_000


def test_the_peak_of_this_process_is_known() -> None:
    assert peak_resident_bytes() > 1_000_000
