"""Predictions as files: every form gives the same numbers and the user's own ids back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.evaluation.predictions import writing as predictions
from rawlsgcn.evaluation.predictions.writing import write_predictions

IDS = np.array(["ann", "ben", "cy"], dtype=object)
P = torch.softmax(torch.randn(3, 4, generator=torch.Generator().manual_seed(0)), 1)


def read(path: Path) -> pd.DataFrame:
    if path.suffix.lower() == ".parquet":
        pytest.importorskip("pyarrow")
        return pd.read_parquet(path)
    return pd.read_csv(path, sep="," if path.suffix.lower() == ".csv" else "\t")


@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "P.CSV", "p.parquet", "P.Parquet"])
def test_a_table_has_a_row_a_node(tmp_path: Path, name: str) -> None:
    write_predictions(P, IDS, tmp_path / name)
    frame = read(tmp_path / name)
    assert frame.columns.tolist() == ["node", "predicted", "p_0", "p_1", "p_2", "p_3"]
    assert frame["node"].tolist() == IDS.tolist()
    assert frame["predicted"].tolist() == P.argmax(1).tolist()
    probabilities = frame.iloc[:, 2:].to_numpy(dtype=np.float32)
    np.testing.assert_array_equal(probabilities, P.numpy())


@pytest.mark.parametrize("name", ["p.npz", "P.NPZ"])
def test_an_npz_needs_no_pickle(tmp_path: Path, name: str) -> None:
    write_predictions(P, IDS, tmp_path / name)
    with np.load(tmp_path / name, allow_pickle=False) as kept:
        assert kept["node"].tolist() == IDS.tolist()
        np.testing.assert_array_equal(kept["probabilities"], P.numpy())


def test_nodes_without_ids_are_numbered(tmp_path: Path) -> None:
    write_predictions(P, None, tmp_path / "p.csv")
    assert read(tmp_path / "p.csv")["node"].tolist() == [0, 1, 2]


def test_what_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RawlsError, match=r"\.csv, \.tsv, \.parquet, \.npz"):
        write_predictions(P, None, tmp_path / "p.xls")
    monkeypatch.setattr(predictions, "find_spec", lambda name: None)
    with pytest.raises(RawlsError, match="pip install"):
        write_predictions(P, None, tmp_path / "p.parquet")
    assert list(tmp_path.iterdir()) == []
