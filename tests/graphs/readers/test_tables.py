"""Tables: which line is a header, which column holds the ids, and how ids are compared."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.graphs import graph_notes, read
from rawlsgcn.graphs.readers.column_names import features_have_header
from rawlsgcn.graphs.readers.table_formats import read_text
from rawlsgcn.graphs.readers.tables import read_table

NODES = 12
RING = pd.DataFrame({"source": np.arange(NODES), "target": (np.arange(NODES) + 1) % NODES})
LABELS = np.arange(NODES) % 3
X = np.random.default_rng(0).random((NODES, 3)).round(3)


def bare(path: Path, **sides: Path) -> Any:
    return read(path, need_features=False, need_labels=False, **sides)


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize("header", ["follower,followee", "u1,u2", "A,B", "Who,Whom"])
def test_words_over_numbers_are_a_header_and_no_edge(header: str, tmp_path: Path) -> None:
    graph = bare(written(tmp_path / "g.csv", f"{header}\n10,30\n30,70\n"))
    assert graph.node_ids.tolist() == [10, 30, 70]
    assert any("are taken for source and target" in note for note in graph_notes(graph))


def test_words_over_words_are_ids_unless_a_weight_tells(tmp_path: Path) -> None:
    assert bare(written(tmp_path / "g.csv", "anna,ben\nben,carl\n")).num_nodes == 3
    graph = bare(written(tmp_path / "w.csv", "who,whom,strength\nanna,ben,2\nben,carl,3\n"))
    assert list(graph.node_ids) == ["anna", "ben", "carl"]
    assert "edge_weight" not in graph, "a column that is not called a weight is none"


def test_a_text_id_far_down_shows_that_the_first_line_is_an_edge(tmp_path: Path) -> None:
    lines = ["root,hub", *(f"{i},{i + 1}" for i in range(300)), "300,root", "hub,300"]
    graph = bare(written(tmp_path / "g.csv", "\n".join(lines)))
    assert graph.num_nodes == 301 + 2
    assert "hub" in graph.node_ids


@pytest.mark.parametrize("names", [("follower", "followee"), ("source", "target"), (0, 1)])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_an_index_column_beside_the_edges_is_not_a_node(
    names: tuple[Any, Any], suffix: str, tmp_path: Path
) -> None:
    frame = RING.set_axis([str(n) for n in names], axis=1)
    frame.index = pd.Index(np.arange(NODES) * 7 + 100)  # as filtering the rows leaves it
    path = tmp_path / f"g{suffix}"
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)
    else:
        frame.to_csv(path, sep="," if suffix == ".csv" else "\t")
    graph = bare(path)
    assert graph.num_nodes == NODES
    assert graph.edge_index.size(1) == 2 * NODES
    assert "edge_weight" not in graph


def test_the_third_nameless_column_is_the_weight(tmp_path: Path) -> None:
    pd.DataFrame(RING.assign(w=3.0).to_numpy()).astype(int).to_csv(tmp_path / "g.csv")
    assert set(bare(tmp_path / "g.csv").edge_weight.tolist()) == {3.0}


def test_one_known_name_is_kept_to(tmp_path: Path) -> None:
    graph = bare(written(tmp_path / "g.csv", "weight,source,friend\n5,10,30\n5,30,70\n"))
    assert graph.node_ids.tolist() == [10, 30, 70]
    assert set(graph.edge_weight.tolist()) == {5.0}
    with pytest.raises(RawlsError, match="no column of target nodes"):
        bare(written(tmp_path / "h.csv", "source,weight\n5,10\n"))


ORDER = np.random.default_rng(3).permutation(NODES)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"node": ORDER, "label": LABELS[ORDER]}),
        pd.DataFrame({"label": LABELS[ORDER], "id": ORDER}),
        pd.DataFrame({"age": 3, "label": LABELS[ORDER], "node_id": ORDER}),
        pd.DataFrame({"name": ORDER, "group": LABELS[ORDER]}),
    ],
)
@pytest.mark.parametrize("index", [True, False])
def test_the_header_says_which_column_holds_the_ids(
    frame: pd.DataFrame, index: bool, tmp_path: Path
) -> None:
    RING.to_csv(tmp_path / "g.csv", index=False)
    np.save(tmp_path / "x.npy", X)
    frame.to_csv(tmp_path / "y.csv", index=index)
    graph = read(tmp_path / "g.csv", features=tmp_path / "x.npy", labels=tmp_path / "y.csv")
    np.testing.assert_array_equal(graph.y.numpy(), LABELS)


@pytest.mark.parametrize("series", [True, False])
def test_labels_written_with_their_index_alone(series: bool, tmp_path: Path) -> None:
    RING.to_csv(tmp_path / "g.csv", index=False)
    np.save(tmp_path / "x.npy", X)
    frame = pd.Series(LABELS[ORDER], index=ORDER)
    (frame if series else frame.to_frame("label")).to_csv(tmp_path / "y.csv")
    graph = read(tmp_path / "g.csv", features=tmp_path / "x.npy", labels=tmp_path / "y.csv")
    np.testing.assert_array_equal(graph.y.numpy(), LABELS)


def test_features_may_have_an_index_an_id_anywhere_or_years_for_names(tmp_path: Path) -> None:
    RING.to_csv(tmp_path / "g.csv", index=False)
    plain = pd.DataFrame(X)
    last = pd.DataFrame(X[ORDER], columns=list("abc")).assign(node=ORDER)
    first = pd.DataFrame(X[ORDER], columns=["2019", "2020", "2021"])
    first.insert(0, "person", ORDER)
    plain.to_csv(tmp_path / "plain.csv")
    last.to_csv(tmp_path / "last.csv", index=False)
    last.to_csv(tmp_path / "both.csv")
    first.to_csv(tmp_path / "years.csv", index=False)
    for name in ("plain", "last", "both", "years"):
        graph = read(tmp_path / "g.csv", features=tmp_path / f"{name}.csv", need_labels=False)
        rows = torch.arange(NODES) if "node_ids" not in graph else torch.tensor(graph.node_ids)
        np.testing.assert_allclose(graph.x.numpy(), X[rows], rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("labels", [["01", "1", "0", "0"], ["x", "y", "x", "y"]])
def test_texts_of_the_same_number_are_not_one_class(labels: list[str]) -> None:
    matrix = sp.csr_matrix(np.roll(np.eye(4), 1, axis=0))
    given = {"labels": np.array(labels * 5), "split": "random"}
    matrix = sp.block_diag([matrix] * 5, format="csr")
    if labels[0] == "x":
        assert read(matrix, **given).class_names == ["x", "y"]
    else:
        with pytest.raises(RawlsError, match="the labels '01' and '1' are the same number"):
            read(matrix, **given)


def test_a_label_table_without_labels_is_one_sentence(tmp_path: Path) -> None:
    labels = written(tmp_path / "y.csv", "id,split\n0,train\n1,test\n")
    with pytest.raises(RawlsError, match=r"y\.csv has no column of labels"):
        bare(written(tmp_path / "g.csv", "0,1\n"), labels=labels)


def test_blanks_around_an_id_do_not_make_another_node(tmp_path: Path) -> None:
    graph = bare(written(tmp_path / "g.csv", "anna,ben \n ben,carl\ncarl ,anna\n"))
    assert sorted(graph.node_ids) == ["anna", "ben", "carl"]
    with pytest.raises(RawlsError, match=r"line 2: the id in column 1 is empty"):
        bare(written(tmp_path / "h.csv", 'anna,ben\n" ",carl\n'))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_text_that_is_not_utf8_is_said_to_be(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_bytes("source,target\nanna,ben\n".encode(encoding))
    with pytest.raises(RawlsError, match=r"g\.csv .*: save it as UTF-8"):
        bare(tmp_path / "g.csv")


def test_decimals_of_a_database_are_numbers(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    ids = [Decimal(10**17 + i) for i in range(4)]
    edges = {"source": ids[:3], "target": ids[1:], "weight": [Decimal("0.5")] * 3}
    pd.DataFrame(edges).to_parquet(tmp_path / "g.parquet")
    labels = {"id": ids, "label": [Decimal(i % 2) for i in range(4)]}
    pd.DataFrame(labels).to_parquet(tmp_path / "y.parquet")
    graph = bare(tmp_path / "g.parquet", labels=tmp_path / "y.parquet")
    assert graph.node_ids.tolist() == [10**17 + i for i in range(4)]
    assert graph.y.tolist() == [0, 1, 0, 1]
    assert set(graph.edge_weight.tolist()) == {0.5}


def test_a_single_value_in_place_of_one_for_each_node(tmp_path: Path) -> None:
    graph = written(tmp_path / "g.csv", "0,1\n1,2\n")
    np.save(tmp_path / "y0.npy", np.array(3))
    for side in ("labels", "features"):
        with pytest.raises(RawlsError, match=r"y0\.npy holds a single value"):
            read(graph, **{side: tmp_path / "y0.npy"})


@pytest.mark.parametrize(
    "text",
    [
        "id,label\n0,owl\n1,cat\n2,-1\n3,owl\n",
        "person,kind\n0,owl\n1,cat\n2,-1\n3,owl\n",
        "0,owl\n1,cat\n2,-1\n3,owl\n",
        "node,y_pred,y_true\n3,cat,owl\n1,cat,cat\n2,cat,-1\n0,cat, owl\n",
    ],
)
def test_labels_may_be_words_numbered_by_name(text: str, tmp_path: Path) -> None:
    edges = written(tmp_path / "g.csv", "0,1\n1,2\n2,3\n")
    graph = bare(edges, labels=written(tmp_path / "y.csv", text))
    assert graph.class_names == ["cat", "owl"]
    order = np.arange(4) if "node_ids" not in graph else np.argsort(graph.node_ids)
    assert graph.y[torch.from_numpy(order)].tolist() == [1, 0, -1, 1]
    assert any("0 cat, 1 owl" in note for note in graph_notes(graph))


def test_a_number_among_words_and_a_word_among_numbers_are_mistakes(tmp_path: Path) -> None:
    edges = written(tmp_path / "g.csv", "0,1\n1,2\n")
    for text, wrong in (
        ("id,label\n0,1\n1,x2\n2,0\n", "line 3, column 'label': 'x2' is not a number"),
        ("id,label\n0,cat\n1,x2\n2,7\n", "line 4, column 'label': the label '7' is a number"),
    ):
        labels = written(tmp_path / "y.csv", text)
        with pytest.raises(RawlsError, match=wrong):
            read(edges, labels=labels, need_features=False)


@pytest.mark.parametrize("words", [["owl", "cat", "owl", "cat"] * 3])
def test_arrays_of_words_are_labels_too(words: list[str], tmp_path: Path) -> None:
    edges = written(tmp_path / "g.csv", "".join(f"{i},{i + 1}\n" for i in range(11)))
    np.save(tmp_path / "y.npy", np.array(words))
    graph = read(edges, labels=tmp_path / "y.npy", need_features=False)
    assert graph.y.tolist() == [1, 0] * 6
    assert graph.class_names == ["cat", "owl"]


def test_the_index_of_a_frame_comes_first(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"kind": LABELS[ORDER]}, index=pd.Index(ORDER, name="person"))
    frame.to_parquet(tmp_path / "y.parquet")
    RING.to_csv(tmp_path / "g.csv", index=False)
    np.save(tmp_path / "x.npy", X)
    graph = read(tmp_path / "g.csv", features=tmp_path / "x.npy", labels=tmp_path / "y.parquet")
    np.testing.assert_array_equal(graph.y.numpy(), LABELS)


class InterruptedFile:
    """A file that is read while the user presses Ctrl-C."""

    def __init__(self, path: Path) -> None:
        self.file = path.open()

    def __iter__(self) -> Iterator[str]:
        return iter(self.file)

    def read(self, size: int = -1) -> str:
        raise KeyboardInterrupt


def test_an_interruption_is_no_damaged_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real = written(tmp_path / "edges.csv", "source,target\n0,1\n"), pd.read_csv
    monkeypatch.setattr(pd, "read_csv", lambda path, **how: real(InterruptedFile(path), **how))
    with pytest.raises(KeyboardInterrupt):
        read_text(path, True)


def test_numbers_of_more_than_64_bits_are_numbers(tmp_path: Path) -> None:
    path = written(tmp_path / "x.csv", f"id,a\n0,7\n1,{10**23}\n")
    assert read_table(path, features_have_header).numbers([1])[:, 0].tolist() == [7, 1e23]
