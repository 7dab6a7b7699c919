"""Files of rows, written and read a part at a time."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from rawlsgcn._core.errors import RawlsError
from rawlsgcn._core.row_files import npy_blocks, read_npy_header, read_rows, write_rows


@pytest.mark.parametrize("shape", [(10, 3), (10,), (0, 4)])
def test_what_is_written_in_parts_is_an_array(tmp_path: Path, shape: tuple[int, ...]) -> None:
    rows = np.random.default_rng(0).random(shape, dtype=np.float32)
    path = tmp_path / "rows.npy"
    write_rows(path, shape, np.float32, (rows[at : at + 4] for at in range(0, len(rows), 4)))
    np.testing.assert_array_equal(np.load(path), rows)


@pytest.mark.parametrize("shape", [(10, 3), (10,), (0, 4)])
def test_blocks_are_the_rows_in_their_order(tmp_path: Path, shape: tuple[int, ...]) -> None:
    rows = np.random.default_rng(0).random(shape)
    np.save(tmp_path / "rows.npy", rows)
    blocks = list(npy_blocks(tmp_path / "rows.npy", 4))
    assert [len(block) for block in blocks] == ([4, 4, 2] if len(rows) else [])
    np.testing.assert_array_equal(np.concatenate([rows[:0], *blocks]), rows)


def test_an_error_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.npy"
    np.save(path, np.arange(3))

    def parts():
        yield np.arange(2)
        raise RawlsError("no more")

    with pytest.raises(RawlsError, match="no more"):
        write_rows(path, (4,), np.int64, parts())
    assert np.load(path).tolist() == [0, 1, 2]
    assert [each.name for each in tmp_path.iterdir()] == ["rows.npy"]


def test_rows_are_read_from_the_file_and_not_through_the_mapping(tmp_path: Path) -> None:
    path = tmp_path / "rows.npy"
    rows = np.arange(60.0).reshape(20, 3)
    np.save(path, rows)
    mapped = np.load(path, mmap_mode="r")
    for first, last in ((0, 20), (3, 4), (7, 7)):
        out = np.full((last - first, 3), np.nan)
        assert read_rows(mapped, first, out) is out
        np.testing.assert_array_equal(out, rows[first:last])
    with pytest.raises(RawlsError, match="is cut short"):
        read_rows(mapped, 19, np.empty((2, 3)))


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
def test_a_header_ends_where_the_numbers_begin(tmp_path: Path, version: tuple[int, int]) -> None:
    path = tmp_path / "rows.npy"
    with path.open("wb") as file:
        np.lib.format.write_array(file, np.arange(6.0).reshape(3, 2), version)
    with path.open("rb") as file:
        assert read_npy_header(file) == ((3, 2), np.dtype(float))
        np.testing.assert_array_equal(np.fromfile(file, float), np.arange(6.0))


def test_one_header_is_parsed_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CPython 3.11 may fail where two threads parse at once."""
    path = tmp_path / "rows.npy"
    np.save(path, np.arange(3))
    inside, most, parse = [], [], np.lib.format.read_magic

    def slow(file):
        inside.append(threading.get_ident())
        most.append(len(inside))
        threading.Event().wait(0.01)
        magic = parse(file)
        inside.pop()
        return magic

    monkeypatch.setattr("rawlsgcn._core.row_files.npy.read_magic", slow)

    def read():
        with path.open("rb") as file:
            read_npy_header(file)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 4
