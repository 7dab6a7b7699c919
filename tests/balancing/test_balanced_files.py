"""A balanced graph as a file: read back, it is doubly stochastic and keeps the user's ids."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.balancing import balance
from rawlsgcn.balancing.balanced_files import write_balanced

EDGES = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])
IDS = ["ann", "ben", "cy", "alone"]


@pytest.mark.parametrize("name", ["b.npz", "B.NPZ"])
def test_npz_has_the_matrix_the_scaling_and_the_ids(tmp_path: Path, name: str) -> None:
    scaling = balance(EDGES, num_nodes=4)
    write_balanced(scaling, IDS, tmp_path / name)
    matrix = sparse.load_npz(tmp_path / name)
    np.testing.assert_allclose(matrix.sum(1), 1, atol=1e-8)
    with np.load(tmp_path / name, allow_pickle=False) as kept:
        assert kept["node_ids"].tolist() == IDS
        np.testing.assert_array_equal(kept["scale"], scaling.scale)
    write_balanced(scaling, None, tmp_path / "plain.npz")
    with np.load(tmp_path / "plain.npz", allow_pickle=False) as kept:
        assert "node_ids" not in kept


@pytest.mark.parametrize(("name", "separator"), [("b.csv", ","), ("b.TSV", "\t")])
def test_an_edge_list_has_the_ids_and_the_scaling_in_its_loops(
    tmp_path: Path, name: str, separator: str
) -> None:
    scaling = balance(EDGES, num_nodes=4)
    write_balanced(scaling, IDS, tmp_path / name)
    frame = pd.read_csv(tmp_path / name, sep=separator)
    np.testing.assert_allclose(frame.groupby("source")["weight"].sum(), 1, atol=1e-8)
    loops = frame[frame["source"] == frame["target"]].set_index("source")["weight"]
    np.testing.assert_allclose(loops[IDS] ** 0.5, scaling.scale, rtol=1e-15)


def test_another_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RawlsError, match=r"\.npz, \.csv, \.tsv"):
        write_balanced(balance(EDGES), None, tmp_path / "b.xls")
