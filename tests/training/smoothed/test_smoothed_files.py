"""The folder of smoothed features: found by its settings, read by rows, refused when damaged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.graphs import synthetic
from rawlsgcn.graphs.shards import Shards, write_shards
from rawlsgcn.methods import find_method
from rawlsgcn.training.smoothed.smoothed_files import MANIFEST, SmoothedForm, open_smoothed

SETTINGS = find_method("smoothed-mlp").configure({})


@pytest.fixture
def shards(tmp_path: Path) -> Shards:
    return write_shards(
        synthetic(60, classes=2, features=5, words=2, average_degree=4), 3, tmp_path
    )


def write(shards: Shards, rows: np.ndarray, settings=SETTINGS) -> Path:
    """Write rows as ``rawlsgcn smooth`` does."""
    form = SmoothedForm.of(shards, settings)
    folder = shards.folder / form.name
    folder.mkdir()
    for shard, part in enumerate(np.split(rows, shards.cuts[1:-1])):
        np.save(folder / f"{shard:05d}.npy", part)
    (folder / MANIFEST).write_text(json.dumps(form.manifest(shards, rows.shape[1])))
    return folder


@pytest.fixture
def rows() -> np.ndarray:
    return np.random.default_rng(0).random((60, 5), dtype=np.float32)


def test_rows_are_read_across_shards(shards: Shards, rows: np.ndarray) -> None:
    assert open_smoothed(shards, SmoothedForm.of(shards, SETTINGS)) is None
    write(shards, rows)
    found = open_smoothed(shards, SmoothedForm.of(shards, SETTINGS))
    assert (len(found), found.num_features, found.cuts) == (60, 5, shards.cuts)
    np.testing.assert_array_equal(np.concatenate(found.parts), rows)
    for first, last in ((0, 60), (0, 0), (60, 60), (3, 4), (10, 55), (shards.cuts[1], 60)):
        np.testing.assert_array_equal(found.read(first, last), rows[first:last])


def test_other_settings_have_other_folders(shards: Shards, rows: np.ndarray) -> None:
    write(shards, rows)
    method = find_method("smoothed-mlp")
    for change in (
        {"teleport": 0.2},
        {"steps": 9},
        {"normalization": "renormalized"},
        {"normalize_features": False},
    ):
        assert open_smoothed(shards, SmoothedForm.of(shards, method.configure(change))) is None
    assert (
        open_smoothed(
            shards, SmoothedForm.of(shards, method.configure({"lr": 0.5, "hidden_channels": 8}))
        )
        is not None
    )


def test_features_of_another_graph_count_as_missing(
    shards: Shards, rows: np.ndarray, tmp_path: Path
) -> None:
    folder = write(shards, rows)
    about = json.loads((folder / MANIFEST).read_text())
    for name, value in (("graph", "another"), ("cuts", [0, 60])):
        (folder / MANIFEST).write_text(json.dumps({**about, name: value}))
        assert open_smoothed(shards, SmoothedForm.of(shards, SETTINGS)) is None
    (folder / MANIFEST).write_text(json.dumps(about))
    assert open_smoothed(shards, SmoothedForm.of(shards, SETTINGS)) is not None
    # Shards that are written again take the place of the smoothed features too.
    again = write_shards(
        synthetic(60, classes=2, features=5, words=2, average_degree=4), 2, shards.folder
    )
    assert open_smoothed(again, SmoothedForm.of(again, SETTINGS)) is None
    assert not folder.exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "00001.npy").unlink(),
        lambda folder: (folder / "00001.npy").write_bytes(b"\x93NUMPY"),
        lambda folder: np.save(folder / "00001.npy", np.zeros((3, 5), dtype=np.float32)),
        lambda folder: (folder / MANIFEST).write_text("{"),
        lambda folder: (folder / MANIFEST).write_text('{"format": 1, "features": 0}'),
    ],
)
def test_damaged_files_are_named_with_the_cure(shards, rows, damage) -> None:
    damage(write(shards, rows))
    with pytest.raises(RawlsError, match=r"smooth"):
        open_smoothed(shards, SmoothedForm.of(shards, SETTINGS))


def test_a_file_that_becomes_shorter_is_refused(shards: Shards, rows: np.ndarray) -> None:
    folder = write(shards, rows)
    found = open_smoothed(shards, SmoothedForm.of(shards, SETTINGS))
    path = folder / "00002.npy"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(RawlsError, match="cut short"):
        found.read(0, 60)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_named_with_their_file(
    wrong: float, shards: Shards, rows: np.ndarray
) -> None:
    rows[shards.cuts[1] + 2, 3] = wrong
    write(shards, rows)
    found = open_smoothed(shards, SmoothedForm.of(shards, SETTINGS))
    found.read(0, shards.cuts[1])
    with pytest.raises(
        RawlsError, match=r"00001\.npy has NaN or infinite numbers: remove .*smooth"
    ):
        found.read(0, 60)


def test_rows_whose_sum_is_too_large_are_read(shards: Shards, rows: np.ndarray) -> None:
    rows[:] = 3e38
    write(shards, rows)
    found = open_smoothed(shards, SmoothedForm.of(shards, SETTINGS))
    np.testing.assert_array_equal(found.read(0, 60), rows)


def test_settings_that_need_the_graph_in_memory_are_refused(shards: Shards) -> None:
    method = find_method("smoothed-mlp")
    for change in ({"features": "tf-idf"}, {"inputs": "both"}, {"min_degree": 3}):
        with pytest.raises(RawlsError, match=f"{next(iter(change))}=.* needs the whole graph"):
            open_smoothed(shards, SmoothedForm.of(shards, method.configure(change)))
    with pytest.raises(RawlsError, match="needs the edges while it trains"):
        open_smoothed(shards, SmoothedForm.of(shards, find_method("gcn").configure({})))
