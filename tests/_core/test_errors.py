"""Whatever a reader raises inside is one sentence with the file's name."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import pytest

from rawlsgcn._core.errors import RawlsError, reading


@pytest.mark.parametrize(
    "error",
    [
        ValueError("first line\nsecond line"),
        KeyError("columns"),
        TypeError(),
        AttributeError("'int' object has no attribute 'decode'"),
        RecursionError("maximum recursion depth exceeded"),
        MemoryError(),
        NotImplementedError("compression"),
        OverflowError("int too large"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        EOFError(),
        zlib.error("bad"),
        zipfile.BadZipFile("bad"),
        OSError("Corrupt snappy compressed data."),
        RuntimeError("x" * 100_000),
        RawlsError("num_nodes is -3"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_every_exception_becomes_one_sentence(error: Exception) -> None:
    with pytest.raises(RawlsError, match=r"graph\.npz") as caught, reading(Path("graph.npz")):
        raise error
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_a_sentence_that_names_the_file_or_one_beside_it_is_left_as_it_is() -> None:
    for said in ("g.csv, line 2: node 9 is out of range", "y.csv has 4 labels"):
        with pytest.raises(RawlsError) as caught, reading("g.csv", "a graph", ["y.csv"]):
            raise RawlsError(said)
        assert str(caught.value) == said


def test_an_interrupt_is_no_fault_of_the_file() -> None:
    with pytest.raises(KeyboardInterrupt), reading("g.csv"):
        raise KeyboardInterrupt


def test_a_thread_that_cannot_start_is_a_want_of_memory() -> None:
    with pytest.raises(RawlsError, match=r"g\.csv needs more memory"), reading("g.csv"):
        raise RuntimeError("can't start new thread")
