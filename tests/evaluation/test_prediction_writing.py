"""Predictions that are written are read again, whether at once or block by block."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.evaluation import prediction_writing
from rawlsgcn.evaluation.node_index import NodeIndex
from rawlsgcn.evaluation.prediction_writing import prediction_writer, write_predictions
from rawlsgcn.evaluation.predictions import Predictions

WRITTEN_IDS = np.array(["ann", "ben", "cy"], dtype=object)
WRITTEN = torch.softmax(torch.randn(3, 4, generator=torch.Generator().manual_seed(0)), 1)


def read_back(path: Path) -> pd.DataFrame:
    if path.suffix.lower() == ".parquet":
        pytest.importorskip("pyarrow")
        return pd.read_parquet(path)
    return pd.read_csv(path, sep="," if path.suffix.lower() == ".csv" else "\t")


@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "WRITTEN.CSV", "p.parquet", "WRITTEN.Parquet"])
def test_a_table_has_a_row_a_node(tmp_path: Path, name: str) -> None:
    write_predictions(WRITTEN, WRITTEN_IDS, tmp_path / name)
    frame = read_back(tmp_path / name)
    assert frame.columns.tolist() == ["node", "predicted", "p_0", "p_1", "p_2", "p_3"]
    assert frame["node"].tolist() == WRITTEN_IDS.tolist()
    assert frame["predicted"].tolist() == WRITTEN.argmax(1).tolist()
    probabilities = frame.iloc[:, 2:].to_numpy(dtype=np.float32)
    np.testing.assert_array_equal(probabilities, WRITTEN.numpy())


@pytest.mark.parametrize("name", ["p.npz", "WRITTEN.NPZ"])
def test_an_npz_needs_no_pickle(tmp_path: Path, name: str) -> None:
    write_predictions(WRITTEN, WRITTEN_IDS, tmp_path / name)
    with np.load(tmp_path / name, allow_pickle=False) as kept:
        assert kept["node"].tolist() == WRITTEN_IDS.tolist()
        np.testing.assert_array_equal(kept["probabilities"], WRITTEN.numpy())


def test_nodes_without_ids_are_numbered(tmp_path: Path) -> None:
    write_predictions(WRITTEN, None, tmp_path / "p.csv")
    assert read_back(tmp_path / "p.csv")["node"].tolist() == [0, 1, 2]


def test_what_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RawlsError, match=r"\.csv, \.tsv, \.parquet, \.npz"):
        write_predictions(WRITTEN, None, tmp_path / "p.xls")
    monkeypatch.setattr(prediction_writing, "find_spec", lambda name: None)
    with pytest.raises(RawlsError, match="pip install"):
        write_predictions(WRITTEN, None, tmp_path / "p.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".npz"])
@pytest.mark.parametrize(
    "names",
    [
        ["cat", "dog", "owl"],
        ["-green", "Blue", "red"],
        ["A", "a", "b c"],
        ["label", "node", "split"],
        ["p", "predicted", "x, y"],
        ["", "class", "ü"],
    ],
)
def test_written_classes_of_any_name_are_read_again(
    tmp_path: Path, suffix: str, names: list[str]
) -> None:
    names = sorted(name or "class 2" for name in names)
    scores = torch.softmax(torch.randn(9, 3, generator=torch.Generator().manual_seed(0)), 1)
    path = tmp_path / f"p{suffix}"
    write_predictions(scores, None, path, class_names=names, split=["train", "", "test"] * 3)
    file = Predictions(path, NodeIndex(None, 9), class_names=names)
    (chunk,) = file.chunks()
    assert np.allclose(chunk.values, scores)
    split = file.split()
    assert split is not None
    assert split.tolist() == [0, -1, 2] * 3


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_blocks_are_read_as_if_written_at_once(tmp_path: Path, suffix: str) -> None:
    scores = torch.softmax(torch.randn(9, 3), 1).numpy()
    path = tmp_path / f"p{suffix}"
    with prediction_writer(path, 9) as write:
        for first in (0, 4, 8):
            write(np.arange(first, min(first + 4, 9)), scores[first : first + 4], None)
        assert not path.exists()
    chunks = list(Predictions(path, NodeIndex(None, 9)).chunks())
    found = np.concatenate([chunk.values for chunk in chunks]).astype(np.float32)
    assert np.array_equal(found, scores)
    assert np.concatenate([chunk.nodes for chunk in chunks]).tolist() == list(range(9))


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_blocks_that_break_off_leave_no_file(tmp_path: Path, suffix: str) -> None:
    def break_off() -> None:
        with prediction_writer(tmp_path / f"p{suffix}", 9) as write:
            write(np.arange(3), np.ones((3, 2)), None)
            raise KeyError

    with pytest.raises(KeyError):
        break_off()
    assert list(tmp_path.iterdir()) == []
