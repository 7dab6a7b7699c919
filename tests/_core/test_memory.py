"""Amounts of memory: read, written, and what is free."""

from __future__ import annotations

import pytest

from rawlsgcn._core.errors import RawlsError
from rawlsgcn._core.memory import free_memory, memory_limit, resident_memory, size_text


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8GB", 8 * 10**9),
        ("8gb", 8 * 10**9),
        (" 1.5 G ", 1_500_000_000),
        ("512MiB", 512 * 2**20),
        ("100", 100),
        (".5k", 500),
    ],
)
def test_sizes_are_read_in_the_usual_units(text: str, size: int) -> None:
    assert memory_limit(text) == size


@pytest.mark.parametrize("text", ["", "GB", "0", "-1GB", "eight", "8PB", "1e9", "nan", "8 GB free"])
def test_other_texts_are_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(RawlsError, match=r"is no amount of memory: give one such as 8GB"):
        memory_limit(text)


def test_without_a_limit_a_share_of_the_free_memory_is_used() -> None:
    limit = memory_limit(None)
    assert 0 < limit < free_memory() + resident_memory() + 10**9


@pytest.mark.parametrize(
    ("size", "text"),
    [(12, "12 bytes"), (1_500, "1.5 kB"), (8_000_000_000, "8 GB"), (1_234_000_000, "1.23 GB")],
)
def test_sizes_are_written_for_people(size: int, text: str) -> None:
    assert size_text(size) == text


def test_processes_on_one_machine_share_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rawlsgcn._core.memory.free_memory", lambda: 1000)
    monkeypatch.setattr("rawlsgcn._core.memory.resident_memory", lambda: 5000)
    for processes, share in (("1", 800), ("2", 400), ("", 800), ("none", 800), ("0", 800)):
        monkeypatch.setenv("LOCAL_WORLD_SIZE", processes)
        assert memory_limit(None) == 5000 + share
        assert memory_limit("8GB") == 8 * 10**9


def test_resident_memory_grows_with_what_is_touched() -> None:
    before = resident_memory()
    held = bytearray(b"1" * 50_000_000)
    assert before > 0
    assert resident_memory() > before + 40_000_000
    del held
