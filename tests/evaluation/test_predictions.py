"""Predictions and columns in files: whatever a cell holds, it is read or refused in one
sentence with the file, the row and the column; what is written is read back the same."""

from __future__ import annotations

import datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

import rawlsgcn as rg
from rawlsgcn._core.errors import RawlsError
from rawlsgcn._core.machine import peak_resident_bytes
from rawlsgcn.evaluation.node_index import NodeIndex, read_column
from rawlsgcn.evaluation.predictions import Predictions

NODES = 6
NAMES = [f"n{i}" for i in range(NODES)]
DAY = datetime.date(2024, 1, 1)


def frame(ids: Any = None) -> pd.DataFrame:
    p = np.linspace(0.1, 0.9, NODES)
    nodes = range(NODES) if ids is None else ids
    return pd.DataFrame({"node": nodes, "p_0": p, "p_1": 1 - p})


def rows(path: Path, ids: Any = None) -> tuple[list[int], np.ndarray]:
    """The positions and the scores in a file."""
    parts = list(Predictions(path, NodeIndex(ids, NODES)).chunks())
    scores = np.concatenate([part.values for part in parts])
    return np.concatenate([part.nodes for part in parts]).tolist(), scores


def refused(path: Path, said: str, ids: Any = None) -> None:
    with pytest.raises(RawlsError, match=said) as caught:
        rows(path, ids)
    assert path.name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_index_of_a_frame_is_its_ids(tmp_path: Path) -> None:
    """pandas keeps an index as a column of the file that it hides again from who reads it."""
    order = [5, 3, 4, 0, 1, 2]
    plain, file = frame(), tmp_path / "p.parquet"
    for name in ("node", None):
        plain.set_index("node").rename_axis(name).iloc[order].to_parquet(file)
        found, scores = rows(file)
        assert found == order
        np.testing.assert_array_equal(scores, plain[["p_0", "p_1"]].to_numpy()[order])


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ([DAY] * NODES, "row 0 .*, column 'p_1' is '2024-01-01'"),
        (pd.to_datetime(["2024-01-01"] * NODES), "row 0 .*, column 'p_1' is '2024-01-01"),
        (pd.to_datetime(["2024-01-01"] * NODES, utc=True), "row 0 .*, column 'p_1' is '2024"),
        (pd.to_timedelta([1] * NODES, unit="h"), "row 0 .*, column 'p_1' is '0 days 01"),
        ([0.5, None, *[0.5] * 4], "row 1 .*, column 'p_1' is empty or NaN"),
        (pd.array([0.5, None, *[0.5] * 4], dtype="Float64"), "row 1 .*, column 'p_1' is empty"),
        (pd.array([1, None, 0, 0, 0, 0], dtype="Int64"), "row 1 .*, column 'p_1' is empty"),
        ([None] * NODES, "row 0 .*, column 'p_1' is empty or NaN"),
        (["0.5", "half", *["0.5"] * 4], "row 1 .*, column 'p_1' is 'half'"),
        ([b"a"] * NODES, "row 0 .*, column 'p_1' is"),
        (pd.Categorical(["a"] * NODES), "row 0 .*, column 'p_1' is 'a'"),
        ([{"a": 1}] * NODES, "column 'p_1' holds struct"),
        ([[[1.0]]] * NODES, "column 'p_1' holds list"),
    ],
)
def test_cells_that_are_no_numbers_are_refused(tmp_path: Path, column: Any, said: str) -> None:
    file = tmp_path / "p.parquet"
    frame().assign(p_1=column).to_parquet(file, index=False)
    refused(file, said)


@pytest.mark.parametrize(
    "column",
    [
        [Decimal("0.5")] * NODES,
        ["0.5"] * NODES,
        pd.array([0.5] * NODES, dtype="Float64"),
        pd.Categorical([0.5] * NODES),
        np.full(NODES, 0.5, np.float16),
    ],
)
def test_numbers_of_any_type_are_read(tmp_path: Path, column: Any) -> None:
    file = tmp_path / "p.parquet"
    frame().assign(p_0=0.5, p_1=column).to_parquet(file, index=False)
    assert (rows(file)[1] == 0.5).all()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("node,p_0,p_1\n0,0.5\n1,0.5\n", "line 2 has 2 cells, but the first line has 3"),
        ("node,p_0,p_1\n0,0.5,0.5,0.1\n", "line 2 has 4 cells, but the lines above it have 3"),
        ("node,p_0,p_1\n0,0.5,0.5\n1,0.5\n", "line 3, column 'p_1' is empty"),
        (
            "node,p_0,p_1\n0,0.5,0.5\n1,0.5,0.5,7\n",
            "p.csv, line 3 has 4 cells, but the lines above it have 3",
        ),
        ("node,p_0,p_1\n,0.5,0.5\n", "line 2: the node id is empty"),
        ("node,p_0,p_1\n0,0.5,0.5\nnan,0.5,0.5\n", "line 3: the node id 'nan' is not a whole"),
        ("node,p_0,p_1\n0.5,0.5,0.5\n", "line 2: the node id '0.5' is not a whole number"),
        ("node,p_0,p_1\ninf,0.5,0.5\n", "line 2: the node id 'inf' is not a whole number"),
        ("node,p_0,p_1\n1e300,0.5,0.5\n", r"line 2: the node id '1e\+300' is not a whole number"),
        ("node,p_0,p_1\n18446744073709551615,0.5,0.5\n", "line 2: the node id '18446744073709551"),
        ("node,p_0,p_1\n2024-01-01,0.5,0.5\n", "line 2: the node id '2024-01-01' is not a whole"),
        ("node,p_0,p_1\nTrue,0.5,0.5\n", "line 2: the node id 'True' is not a whole number"),
        ("node,p_0,p_1\n9,0.5,0.5\n", "p.csv, line 2"),
        ("\n\n\n", "p.csv"),
        (f"node,{'1' * 60_000}x,p_1\n0,{'1' * 60_000}x,1\n", "p.csv"),
    ],
)
def test_lines_that_are_wrong_are_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "p.csv"
    file.write_text(text)
    refused(file, said)


def test_a_number_of_many_digits_is_no_class(tmp_path: Path) -> None:
    file = tmp_path / "p.csv"
    file.write_text(f"node,p_{'1' * 5000},p_1,p_0\n0,0.5,0.75,0.25\n")
    assert rows(file)[1].tolist() == [[0.25, 0.75]]


def test_an_empty_id_is_not_the_node_called_nan(tmp_path: Path) -> None:
    file = tmp_path / "p.csv"
    file.write_text("node,p_0,p_1\nn1,0.5,0.5\n,0.5,0.5\n")
    refused(file, "line 3: the node id is empty", ["nan", *NAMES[1:]])


@pytest.mark.parametrize(
    "ids", [[DAY] * NODES, pd.to_datetime([0] * NODES), [True] * NODES, [0.5] * NODES]
)
def test_ids_that_are_no_whole_numbers_are_refused(tmp_path: Path, ids: Any) -> None:
    """The first moment of 1970 is no name of node 0."""
    file = tmp_path / "p.parquet"
    frame(ids).to_parquet(file, index=False)
    refused(file, r"row 0 .*: the node id '.*' is not a whole number")


@pytest.mark.parametrize(
    "node",
    [
        np.array([b"0"] * NODES),
        np.zeros(NODES, "M8[s]"),
        np.zeros(NODES, complex),
        np.zeros(NODES, bool),
    ],
)
def test_ids_in_an_archive_are_numbers_or_text(tmp_path: Path, node: Any) -> None:
    file = tmp_path / "p.npz"
    np.savez(file, node=node, probabilities=frame()[["p_0", "p_1"]].to_numpy())
    refused(file, "give whole numbers or text")


@pytest.mark.parametrize("order", ["<", ">"])
def test_archives_of_either_order_of_bytes_are_read(tmp_path: Path, order: str) -> None:
    scores = frame()[["p_0", "p_1"]].to_numpy()
    for ids, node in ((None, np.arange(NODES)), (NAMES, np.array(NAMES))):
        kind = node.dtype.newbyteorder(order)
        np.savez(tmp_path / "p.npz", node=node.astype(kind), probabilities=scores)
        assert rows(tmp_path / "p.npz", ids)[0] == list(range(NODES))


def test_a_graph_whose_nodes_share_an_id_is_refused(tmp_path: Path) -> None:
    ends = torch.arange(NODES)
    edges = torch.stack([ends, (ends + 1) % NODES])
    for ids in (["a", "b", "a ", "c", "d", "e"], [7, 8, 7, 9, 10, 11]):
        graph = Data(edge_index=edges, y=ends % 2, num_nodes=NODES, node_ids=ids)
        frame(ids).to_csv(tmp_path / "p.csv", index=False)
        with pytest.raises(RawlsError, match=f"node id '{ids[0]}' appears twice"):
            rg.audit(graph, tmp_path / "p.csv", resamples=100)


def test_one_long_id_does_not_make_the_others_long(tmp_path: Path) -> None:
    """As an array of text these would be 20 GB."""
    nodes, long = 50_000, "x" * 100_000
    names = [long, *(f"n{i}" for i in range(1, nodes))]
    (tmp_path / "g.csv").write_text("".join(f"{a},{b}\n" for a, b in pairwise(names)))
    before = peak_resident_bytes()
    graph = rg.read(tmp_path / "g.csv", need_features=False, need_labels=False)
    index = NodeIndex(graph.node_ids, nodes)
    assert index.positions(pd.Series([names[3], long]), str, 0).tolist() == [3, 0]
    assert peak_resident_bytes() - before < 500e6


def test_a_wide_table_is_refused_at_once(tmp_path: Path) -> None:
    """To look for each name among all names takes the square of their number."""
    file = tmp_path / "p.csv"
    file.write_text(",".join(["node", *(f"c{i}x" for i in range(40_000)), "c7x"]) + "\n0\n")
    refused(file, "more than one column 'c7x'")
    file.write_text("node" + ",1" * 200_000 + "\n0\n")
    refused(file, "has 200,001 columns, more than the 50,000")


@pytest.mark.parametrize("name", ["x" * 5000 + ".csv", "x\0y.csv"])
def test_a_name_that_no_file_can_have_does_not_exist(name: str) -> None:
    with pytest.raises(RawlsError, match="does not exist"):
        Predictions(name, NodeIndex(None, NODES))


@pytest.mark.parametrize(
    "given",
    [
        torch.eye(NODES)[:, :2].to_sparse(),
        torch.quantize_per_tensor(torch.ones(NODES, 2), 0.1, 0, torch.qint8),
        torch.zeros(NODES, 2, device="meta"),
        torch.zeros(NODES, 2).to(torch.float8_e4m3fn),
        [[0.5, 0.5], [1.0]],
        np.zeros((NODES, 0)),
        np.array([["a", "b"]] * NODES),
    ],
)
def test_arrays_that_are_none_are_refused(given: Any) -> None:
    ends = torch.arange(NODES)
    edges = torch.stack([ends, (ends + 1) % NODES])
    with pytest.raises(RawlsError) as caught:
        rg.audit(Data(edge_index=edges, y=ends % 2, num_nodes=NODES), given, resamples=100)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pd.array([1, None, 3, 4, 5, 6], dtype="Int64"), [1, np.nan, 3, 4, 5, 6]),
        (pd.Categorical(["a", None, *"bcde"]), ["a", "", "b", "c", "d", "e"]),
        ([DAY, None, DAY, DAY, DAY, DAY], ["2024-01-01", "", *["2024-01-01"] * 4]),
        ([True, False, True, True, True, True], [1, 0, 1, 1, 1, 1]),
    ],
)
def test_columns_with_gaps_are_read(tmp_path: Path, values: Any, expected: list[Any]) -> None:
    file = tmp_path / "c.parquet"
    pd.DataFrame({"node": range(NODES), "value": values}).to_parquet(file, index=False)
    name, found = read_column(file, NodeIndex(None, NODES))
    assert name == "value"
    np.testing.assert_array_equal(found, np.array(expected, dtype=found.dtype))


def test_one_of_several_columns_is_not_taken_at_random(tmp_path: Path) -> None:
    file = tmp_path / "c.csv"
    columns = {"node": range(NODES), "age": 1, "city": "Bath"}
    pd.DataFrame(columns).to_csv(file, index=False)
    with pytest.raises(
        RawlsError, match=r"several columns of values \(column 'age', column 'city'\)"
    ):
        read_column(file, NodeIndex(None, NODES))
    pd.DataFrame(columns).drop(columns="age").to_csv(file)  # the index of pandas is no value
    assert read_column(file, NodeIndex(None, NODES))[0] == "city"


def test_a_row_without_an_id_cannot_be_left_out(tmp_path: Path) -> None:
    scores = np.full((NODES, 2), 0.5)
    scores[3] = np.nan
    for ids, cure in (
        ({}, "give the others with their node ids"),
        ({"node": range(NODES)}, "leave out"),
    ):
        np.savez(tmp_path / "p.npz", probabilities=scores, **ids)
        with pytest.raises(RawlsError, match=cure):
            rows(tmp_path / "p.npz")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("node,value\nann,3\n", "line 2: the node id 'ann' is not a whole number"),
        ("node,value\n0.5,3\n", "line 2: the node id '0.5' is not a whole number"),
        ("node,value\n0,3\n,4\n", "line 3: the node id is empty"),
        ("node,value\n0,3\n0,4\n", "line 3: this node appears twice"),
        ("node\n0\n", "one column"),
    ],
)
def test_columns_whose_ids_are_none_are_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "c.csv"
    file.write_text(text)
    with pytest.raises(RawlsError, match=said):
        read_column(file, NodeIndex(None, NODES))
