"""Every format gives the same graph, and every broken file one sentence with its name."""

from __future__ import annotations

import pickle
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.graphs import check, graph_notes, read, synthetic
from rawlsgcn.graphs.readers.read_graph import read_raw_graph
from rawlsgcn.graphs.splits import MASKS
from rawlsgcn.graphs.streaming.file_shards import shard_files

NODES = 30
RANDOM = np.random.default_rng(0)
A = np.triu(RANDOM.random((NODES, NODES)) < 0.15, 1)
A[:, 7] = A[7, :] = False  # an isolated node
W = np.where(A, RANDOM.integers(1, 5, A.shape), 0)
W = W + W.T
X = RANDOM.random((NODES, 4)).round(3)
Y = np.arange(NODES) % 3
SOURCE, TARGET = np.nonzero(np.triu(W))
WEIGHT = W[SOURCE, TARGET]


def names(prefix: str = "n") -> list[str]:
    return [f"{prefix}{(7 * node) % NODES:02d}" for node in range(NODES)]


def write_npz(folder: Path) -> dict[str, Any]:
    adj, attr = sp.csr_matrix(W), sp.csr_matrix(X)
    np.savez(
        folder / "g.npz",
        adj_data=adj.data, adj_indices=adj.indices, adj_indptr=adj.indptr, adj_shape=adj.shape,
        attr_data=attr.data, attr_indices=attr.indices, attr_indptr=attr.indptr,
        attr_shape=attr.shape, labels=Y,
    )  # fmt: skip
    return {"path": folder / "g.npz"}


def write_npz_edges(folder: Path) -> dict[str, Any]:
    edge_index = np.stack([SOURCE, TARGET])
    np.savez(folder / "g.npz", edge_index=edge_index, edge_weight=WEIGHT, x=X, y=Y)
    return {"path": folder / "g.npz"}


def write_save_npz(folder: Path) -> dict[str, Any]:
    sp.save_npz(folder / "g.npz", sp.coo_matrix(W))
    sp.save_npz(folder / "x.npz", sp.csc_matrix(X))
    np.save(folder / "y.npy", Y)
    return {"path": folder / "g.npz", "features": folder / "x.npz", "labels": folder / "y.npy"}


def write_npz_with_tables(folder: Path) -> dict[str, Any]:
    sp.save_npz(folder / "g.npz", sp.csr_matrix(W))
    order = np.random.default_rng(1).permutation(NODES)
    _table(folder / "x.tsv", pd.DataFrame(X[order], index=order), index=True, header=False)
    _table(folder / "y.csv", pd.DataFrame({"id": order, "label": Y[order]}))
    return {"path": folder / "g.npz", "features": folder / "x.tsv", "labels": folder / "y.csv"}


def write_edge_list(folder: Path) -> dict[str, Any]:
    _table(folder / "g.csv", pd.DataFrame({"source": SOURCE, "target": TARGET, "weight": WEIGHT}))
    np.save(folder / "x.npy", X)
    np.savez(folder / "y.npz", labels=Y)
    return {"path": folder / "g.csv", "features": folder / "x.npy", "labels": folder / "y.npz"}


def write_bare_edge_list(folder: Path) -> dict[str, Any]:
    edges = pd.DataFrame({0: SOURCE, 1: TARGET, 2: WEIGHT})
    _table(folder / "g.tsv", edges, header=False)
    np.savez(folder / "x.npz", whatever=X)
    _table(folder / "y.csv", pd.DataFrame({0: np.arange(NODES), 1: Y}), header=False)
    return {"path": folder / "g.tsv", "features": folder / "x.npz", "labels": folder / "y.csv"}


def write_text_ids(folder: Path) -> dict[str, Any]:
    name = np.array(names())
    order = np.random.default_rng(2).permutation(NODES)
    edges = pd.DataFrame({0: name[SOURCE], 1: name[TARGET], 2: WEIGHT})
    _table(folder / "g.csv", edges, header=False)
    features = pd.DataFrame(X[order], index=name[order])
    _table(folder / "x.csv", features, index=True, header=False)
    _table(folder / "y.csv", pd.DataFrame({"node": name, "label": Y}))
    return {"path": folder / "g.csv", "features": folder / "x.csv", "labels": folder / "y.csv"}


def write_parquet(folder: Path) -> dict[str, Any]:
    pytest.importorskip("pyarrow")
    name = np.array(names())
    edges = {"weight": WEIGHT, "to": name[TARGET], "from": name[SOURCE]}
    pd.DataFrame(edges).to_parquet(folder / "g.parquet")
    features = pd.DataFrame(X, index=pd.Index(name, name="node"))
    features.columns = list("abcd")
    features.to_parquet(folder / "x.parquet")
    pd.DataFrame({"id": name, "y": Y}).to_parquet(folder / "y.parquet")
    return {
        "path": folder / "g.parquet",
        "features": folder / "x.parquet",
        "labels": folder / "y.parquet",
    }


def write_data(folder: Path) -> dict[str, Any]:
    torch.save(_data(), folder / "g.pt")
    return {"path": folder / "g.pt"}


def write_dict(folder: Path) -> dict[str, Any]:
    torch.save(_data().to_dict(), folder / "g.pt")
    return {"path": folder / "g.pt"}


def _data() -> Data:
    return Data(
        edge_index=torch.from_numpy(np.stack([SOURCE, TARGET])),
        edge_weight=torch.from_numpy(WEIGHT),
        x=torch.from_numpy(X),
        y=torch.from_numpy(Y),
    )


def _table(path: Path, frame: pd.DataFrame, *, index: bool = False, header: bool = True) -> None:
    frame.to_csv(path, sep="\t" if path.suffix == ".tsv" else ",", index=index, header=header)


WRITERS: list[Callable[[Path], dict[str, Any]]] = [
    write_npz,
    write_npz_edges,
    write_save_npz,
    write_npz_with_tables,
    write_edge_list,
    write_bare_edge_list,
    write_text_ids,
    write_parquet,
    write_data,
    write_dict,
]


@pytest.mark.parametrize("write", WRITERS)
def test_every_format_gives_the_same_graph(write: Any, tmp_path: Path) -> None:
    graph = read(**write(tmp_path))
    assert graph.num_nodes == NODES
    dense = np.zeros((NODES, NODES))
    dense[tuple(graph.edge_index.numpy())] = graph.edge_weight.numpy()
    np.testing.assert_array_equal(dense, W)
    np.testing.assert_allclose(graph.x.numpy(), X, rtol=1e-6)
    np.testing.assert_array_equal(graph.y.numpy(), Y)
    assert graph.name == "g"
    assert graph.synthetic is False
    assert int(graph.train_mask.sum()) == NODES // 2
    if write in (write_text_ids, write_parquet):
        assert list(graph.node_ids) == names()


def test_a_graph_of_ours_survives_torch_save(tmp_path: Path) -> None:
    graph = synthetic(400)
    graph.node_ids = np.arange(400) * 3
    torch.save(graph, tmp_path / "mine.pt")
    again = read(tmp_path / "mine.pt")
    assert again.synthetic is True
    assert again.name == "synthetic"
    assert torch.equal(again.x.to_dense(), graph.x.to_dense())
    assert torch.equal(again.edge_index, graph.edge_index)
    assert torch.equal(again.test_mask, graph.test_mask)
    assert again.node_ids.tolist() == graph.node_ids.tolist()


def test_what_torch_allows_to_be_loaded_is_the_same_afterwards(tmp_path: Path) -> None:
    before = set(torch.serialization.get_safe_globals())
    read(**write_data(tmp_path))
    assert set(torch.serialization.get_safe_globals()) == before


def test_ids_far_apart_and_negative_are_just_ids(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("-5,1000000000000\n1000000000000,3\n")
    graph = read(tmp_path / "g.csv", need_features=False, need_labels=False)
    assert graph.node_ids.tolist() == [-5, 3, 10**12]
    assert graph.edge_index.tolist() == [[0, 1, 2, 2], [2, 2, 0, 1]]


def test_sizes_in_node_order_must_agree(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X[:5])
    np.save(tmp_path / "y.npy", Y[:4])
    said = "sizes disagree: x.npy has 5 rows of features, but y.npy has 4 labels"
    with pytest.raises(RawlsError, match=said):
        read(edges(tmp_path), features=tmp_path / "x.npy", labels=tmp_path / "y.npy")


def test_too_few_nodes_for_the_split_names_the_file_of_labels(tmp_path: Path) -> None:
    with pytest.raises(RawlsError, match=r"^y\.csv: 0 labeled|^y\.csv: class 0 has 2 labeled"):
        read(edges(tmp_path), **sides(tmp_path), split="paper")


def test_a_dict_of_lists_is_read_too(tmp_path: Path) -> None:
    torch.save({"edge_index": [[0, 1], [1, 2]], "x": [[1.0], [2.0], [3.0]]}, tmp_path / "g.pt")
    graph = read(tmp_path / "g.pt", need_labels=False)
    assert graph.num_nodes == 3


def test_masks_in_an_npz_and_a_split_column_in_labels(tmp_path: Path) -> None:
    part = np.arange(NODES) % 3
    arguments = write_npz_edges(tmp_path)
    np.savez(
        tmp_path / "g.npz",
        edge_index=np.stack([SOURCE, TARGET]),
        x=X,
        y=Y,
        train_mask=part == 0,
        val_mask=part == 1,
        test_mask=part == 2,
    )
    stored = read(**arguments)
    words = np.array(["train", "val", "test"])[part]
    _table(tmp_path / "y.csv", pd.DataFrame({"id": range(NODES), "label": Y, "split": words}))
    column = read(tmp_path / "g.npz", labels=tmp_path / "y.csv")
    for code, key in enumerate(("train_mask", "val_mask", "test_mask")):
        np.testing.assert_array_equal(stored[key].numpy(), part == code)
        np.testing.assert_array_equal(column[key].numpy(), part == code)


def test_nodes_without_edges_exist_and_nodes_without_files_are_those_of_the_edges(
    tmp_path: Path,
) -> None:
    (tmp_path / "g.csv").write_text("10,30\n30,70\n")
    bare = read(tmp_path / "g.csv", need_features=False, need_labels=False)
    assert bare.num_nodes == 3
    assert bare.node_ids.tolist() == [10, 30, 70]
    assert bare.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    (tmp_path / "y.csv").write_text("id,label\n99,0\n70,1\n30,0\n10,-1\n")
    more = read(tmp_path / "g.csv", labels=tmp_path / "y.csv", need_features=False, split=None,
                need_labels=False)  # fmt: skip
    assert more.node_ids.tolist() == [99, 70, 30, 10]
    assert more.edge_index.tolist() == [[1, 2, 2, 3], [2, 1, 3, 2]]


def test_ids_stay_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("NA,007\n007,7\n7,null\n")
    graph = read(tmp_path / "g.csv", need_features=False, need_labels=False)
    assert sorted(graph.node_ids) == ["007", "7", "NA", "null"]


def test_numbers_in_one_file_match_text_in_another(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("1,2\n2,3\n")
    (tmp_path / "x.csv").write_text("id,f\n1,0.5\n2,0.5\n3,1\nspare,2\n")
    graph = read(tmp_path / "g.csv", features=tmp_path / "x.csv", need_labels=False)
    assert list(graph.node_ids) == ["1", "2", "3", "spare"]
    assert graph.edge_index.size(1) == 4


def test_other_columns_of_an_edge_list_are_not_taken_for_weights(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("source,target,year\n0,1,1999\n1,2,2004\n")
    graph = read(tmp_path / "g.csv", need_features=False, need_labels=False)
    assert "edge_weight" not in graph
    assert any("'year' is not used" in note for note in graph_notes(graph))


BARE = {"need_features": False, "need_labels": False}


def edges(folder: Path, text: str = "0,1\n1,2\n2,3\n") -> Path:
    (folder / "g.csv").write_text(text)
    return folder / "g.csv"


def sides(folder: Path, *, x: str = "", y: str = "") -> dict[str, Path]:
    (folder / "x.csv").write_text(x or "id,a,b\n0,1,2\n1,3,4\n2,5,6\n3,7,8\n")
    (folder / "y.csv").write_text(y or "id,label\n0,0\n1,1\n2,0\n3,1\n")
    return {"features": folder / "x.csv", "labels": folder / "y.csv"}


def test_words_that_are_also_names_of_columns_may_be_nodes(tmp_path: Path) -> None:
    graph = read(edges(tmp_path, "head,tail\nto,from\nfrom,to\n"), **BARE)
    assert sorted(graph.node_ids) == ["from", "to"]
    graph = read(edges(tmp_path, "u,v\nsource,target\nsource,water\n"), **BARE)
    assert sorted(graph.node_ids) == ["source", "target", "water"]


def test_empty_lines_above_the_header_are_no_rows(tmp_path: Path) -> None:
    graph = read(edges(tmp_path, "\n\nsource,target\n0,1\n1,2\n"), **BARE)
    assert graph.num_nodes == 3


def test_nodes_that_are_not_in_the_labels_are_unlabeled(tmp_path: Path) -> None:
    files = sides(tmp_path, y="id,label,split\n3,1,train\n0,0,val\n2,0,test\n")
    graph = read(edges(tmp_path), **files, need_labels=False)
    assert graph.node_ids.tolist() == [3, 0, 2, 1]
    assert graph.y.tolist() == [1, 0, 0, -1]
    assert graph.x[:, 0].tolist() == [7, 1, 5, 3]
    assert "1 of 4 nodes is not in the file of labels, and so unlabeled." in graph_notes(graph)
    stored = read(edges(tmp_path), **files, split="stored")
    assert [stored[key].tolist().index(True) for key in MASKS] == [0, 1, 2]
    assert sum(int(stored[key].sum()) for key in MASKS) == 3


def test_without_features_the_edges_say_which_nodes_there_are(tmp_path: Path) -> None:
    (tmp_path / "y.csv").write_text("id,label\nc,dog\na,cat\n")
    files = {"labels": tmp_path / "y.csv", "need_labels": False, "need_features": False}
    graph = read(edges(tmp_path, "a,b\nb,c\nc,d\n"), **files)
    assert graph.node_ids == ["c", "a", "b", "d"]
    assert graph.y.tolist() == [1, 0, -1, -1]
    # Numbered from 1 here and from 0 there: each has a node that the other lacks.
    (tmp_path / "y.csv").write_text("id,label\n1,0\n2,1\n3,1\n4,0\n")
    with pytest.raises(RawlsError, match=r"node 0 is not in y\.csv: list every node there"):
        read(edges(tmp_path), **files)


def test_labels_of_some_nodes_of_an_npz(tmp_path: Path) -> None:
    np.savez(tmp_path / "g.npz", edge_index=[[0, 1, 2], [1, 2, 3]], x=np.eye(4))
    (tmp_path / "y.csv").write_text("id,label\n2,1\n0,0\n")
    graph = read(tmp_path / "g.npz", labels=tmp_path / "y.csv", need_labels=False)
    assert graph.y.tolist() == [0, -1, 1, -1]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"g": "0,1\n1,x,3\n"}, "g.csv, line 2 has 3 cells, but the lines above it have 2"),
        (
            {"g": "0,1\n1,2\n1,x,3\n"},
            "g.csv, line 3 has 3 cells, but the lines above it have 2: give",
        ),
        ({"g": '0,1\n\n1,2\n1,"3\n4,5\n'}, r'g.csv, line 4 has a quote \("\) that nothing closes'),
        ({"g": "0,1,2\n1,2,heavy\n"}, "g.csv, line 2, column 3: 'heavy' is not a number"),
        (
            {"g": "source,target,weight\n0,1,2\n1,2,\n"},
            "g.csv, line 3: the edge between node 1 .* nan",
        ),
        ({"g": "0,1,-2\n"}, "g.csv, line 1: the edge between node 0 .* weight -2"),
        ({"g": "0,1\n,2\n"}, "g.csv, line 2: the id in column 1 is empty"),
        ({"g": "0,1\n1,9\n"}, "g.csv, line 2: node 9 is out of range: y.csv numbers .* 0 to 3"),
        ({"g": "0\n1\n"}, "g.csv has one column"),
        ({"g": "source;target\n0;1\n"}, r"separated by ';': .* by commas, or call it \.txt"),
        ({"g": "source\ttarget\n0\t1\n"}, r"separated by tabs: .* by commas, or call it \.tsv"),
        ({"y": "id;label\n0;0\n1;1\n"}, r"y\.csv has one column, as .* separated by ';'"),
        ({"g": "0,1\n1,2\nSource,Target\n2,3\n"}, "line 3: 'source' and 'target' are names of col"),
        ({"g": "src,dst\na,b\nsrc,dst\nb,c\n"}, "line 3: 'src' and 'dst' are names of columns"),
        ({"g": "our graph\nsource,target\n0,1\n"}, "remove titles and comments above them"),
        ({"y": "our labels,\nid,label\n0,0\n1,1\n"}, "line 2, .* 'label' .* name of a column"),
        ({"g": "0,1,2,3\n"}, "g.csv has 4 columns and no header"),
        ({"g": ""}, "g.csv is empty"),
        ({"g": "source,target\n"}, "g.csv has no rows: write it"),
        ({"x": "id,a,b\n0,1,2\n1,3,red\n2,5,6\n3,7,8\n"}, "x.csv, line 3, column 'b': 'red'"),
        ({"x": "id,a\n0,1\n1,\n2,5\n3,7\n"}, "x.csv: node 1 .* NaN or infinite"),
        ({"x": "id,a\n0,1\n1,2\n2,5\n"}, "x.csv has no row for node 3"),
        ({"x": "id,a\n0,1\n1,2\n2,5\n2,1\n"}, "x.csv, line 5: node 2 .* twice"),
        ({"x": "id\n0\n"}, "x.csv has one column"),
        ({"x": "id,label\n0,1\n"}, "x.csv has no features: beside .* 'label', which is not one"),
        ({"y": "label\n0\n1\n0\n1\n"}, "y.csv has one column: give the node id first"),
        ({"y": "id\n0\n1\n"}, "y.csv has no column of labels"),
        ({"y": "id,label\n0,0\n1,cat\n2,0\n3,1\n"}, "y.csv, line 3, column 'label': 'cat'"),
        ({"y": "id,label\n0,0\n1,\n2,0\n3,1\n"}, "y.csv, line 3: node 1 .* has no label: write -1"),
        ({"y": "id,label\n0,0.5\n1,1\n2,0\n3,1\n"}, "y.csv, line 2: node 0 .* label 0.5"),
        ({"y": "id,label,split\n0,0,train\n1,1,x\n2,0,\n3,1,\n"}, "y.csv, line 3.* train, val or"),
        ({"y": "1,0\n2,1\n3,1\n4,0\n"}, "g.csv, line 1: node 0 is not in y.csv"),
        ({"y": "a,0\nb,1\n"}, "g.csv, line 1: node 0 is not in y.csv"),
    ],
)
def test_each_flaw_of_a_table_names_the_file_and_the_place(
    files: dict[str, str], said: str, tmp_path: Path
) -> None:
    path = edges(tmp_path, files["g"]) if "g" in files else edges(tmp_path)
    others = sides(tmp_path, x=files.get("x", ""), y=files.get("y", ""))
    with pytest.raises(RawlsError, match=said) as caught:
        read(path, **others)
    assert "\n" not in str(caught.value)


def test_one_file_of_features_and_labels_is_not_learned_from_its_labels(tmp_path: Path) -> None:
    rows = "".join(f"{n},{n / 10},{n % 2},train\n" for n in range(4))
    (tmp_path / "nodes.csv").write_text("id,age,label,split\n" + rows)
    both = {"features": tmp_path / "nodes.csv", "labels": tmp_path / "nodes.csv"}
    raw = read_raw_graph(edges(tmp_path), **both)
    assert raw.x.tolist() == [[0.0], [0.1], [0.2], [0.3]]
    assert raw.y.tolist() == [0, 1, 0, 1]
    assert not raw.facts.columns_ignored
    # The same features where the labels are not asked for, as `predict` reads them.
    alone = read_raw_graph(edges(tmp_path), features=tmp_path / "nodes.csv")
    assert alone.x.tolist() == raw.x.tolist()
    assert alone.facts.columns_ignored == [("nodes.csv", "column 'label', column 'split'")]


def test_a_column_that_would_be_label_and_feature_is_refused(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,y,age\n0,0,1\n1,1,2\n2,0,3\n3,1,4\n")
    with pytest.raises(RawlsError, match=r"column 'y' would be both: call .* 'label'"):
        read(edges(tmp_path), features=tmp_path / "nodes.csv", labels=tmp_path / "nodes.csv")
    nodes = tmp_path / "nodes.csv"
    with pytest.raises(RawlsError, match="column 'y' would be both"):
        shard_files(tmp_path / "shards", 2, edges(tmp_path), nodes, nodes)


def test_a_header_of_unknown_words_is_not_read_as_an_edge(tmp_path: Path) -> None:
    (tmp_path / "y.csv").write_text("id,label\nanna,0\nben,1\ncarla,1\n")
    labels = {"labels": tmp_path / "y.csv", **BARE}
    with pytest.raises(
        RawlsError, match=r"g.csv, line 1: 'follower' and 'followee' are in no other"
    ):
        read(edges(tmp_path, "follower,followee\nanna,ben\nben,carla\n"), **labels)
    # An edge of nodes without a label is one if it is not alone, or has a header above it.
    for text in (
        "dora,emil\nemil,anna\nben,carla\n",
        "source,target\ndora,emil\nanna,ben\nben,carla\n",
    ):
        assert "dora" in read(edges(tmp_path, text), **labels).node_ids


class _Trap:
    """Would leave a file behind if it were ever unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("suffix", [".npz", ".pt", ".csv", ".parquet"])
def test_a_pickle_in_disguise_is_refused_and_not_run(suffix: str, tmp_path: Path) -> None:
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    path, sprung = tmp_path / f"g{suffix}", tmp_path / "sprung"
    path.write_bytes(pickle.dumps(_Trap(sprung)))
    with pytest.raises(RawlsError, match=f"g{suffix}"):
        read(path)
    assert not sprung.exists()


def test_objects_within_good_files_are_refused_and_not_run(tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    trap = np.array([_Trap(sprung)], dtype=object)
    np.savez(tmp_path / "g.npz", edge_index=trap)
    with pytest.raises(RawlsError, match="pickled Python objects"):
        read(tmp_path / "g.npz")
    data = _data()
    data.trap = _Trap(sprung)
    torch.save(data, tmp_path / "g.pt")
    with pytest.raises(RawlsError, match="Python objects besides tensors"):
        read(tmp_path / "g.pt")
    assert not sprung.exists()


@pytest.mark.parametrize("write", [write_npz, write_data, write_parquet])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.95])
def test_a_truncated_file_is_one_sentence(write: Any, share: float, tmp_path: Path) -> None:
    arguments = write(tmp_path)
    content = arguments["path"].read_bytes()
    arguments["path"].write_bytes(content[: int(share * len(content))])
    with pytest.raises(RawlsError, match=arguments["path"].name) as caught:
        read(**arguments)
    assert "\n" not in str(caught.value)


def test_a_flipped_byte_in_an_npz_is_noticed(tmp_path: Path) -> None:
    path = write_npz(tmp_path)["path"]
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        start = archive.getinfo("adj_data.npy").header_offset
    content[start + 300] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(RawlsError, match=r"g\.npz"):
        read(path)


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"nothing": X}, "has no graph in it"),
        ({"adj_indptr": Y}, "no adj_data, no adj_indices, no adj_shape"),
        (
            {"adj_data": [1], "adj_indices": [9], "adj_indptr": [0, 1, 1], "adj_shape": [2, 2]},
            "whose indices are wrong: .*must be < 2",
        ),
        (
            {"adj_data": [1], "adj_indices": [1], "adj_indptr": [0, 1, 1], "adj_shape": [2, 3]},
            "must be square",
        ),
        ({"edge_index": [[0], [1]], "num_nodes": [1, 2]}, "num_nodes must be a whole number"),
        ({"edge_index": [[0], [1]], "x": [["a"], ["b"]], "y": [0, 1]}, "features must be real"),
        (
            {"edge_index": [[0], [1]], "x": [[1.0], [2.0]], "y": ["a", "1"]},
            "a number among words",
        ),
        (
            {"edge_index": [[0], [1]], "num_nodes": 3, "x": [[1.0], [2.0]], "y": [0, 1]},
            "3 nodes, but .*2 rows",
        ),
        ({"edge_index": [[0], [1]], "num_nodes": -3}, "whole number of at least 0, not -3"),
        ({"edge_index": [[0], [1]], "num_nodes": 10**9}, "has no node features|too many for this"),
        ({"edge_index": [[0], [2**62]], "x": X, "y": Y}, f"node {2**62}, which is out of range"),
        ({"edge_index": np.array([[0], [2**63 + 5]], np.uint64), "x": X, "y": Y}, "out of range"),
    ],
)
def test_each_flaw_of_an_npz(arrays: dict[str, Any], said: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "g.npz", **{key: np.array(value) for key, value in arrays.items()})
    with pytest.raises(RawlsError, match=said) as caught:
        read(tmp_path / "g.npz")
    assert "g.npz" in str(caught.value)


@pytest.mark.parametrize("last", [2**62, 2**63 + 5])
def test_an_id_beyond_all_memory_is_one_sentence(last: int, tmp_path: Path) -> None:
    np.savez(tmp_path / "g.npz", edge_index=np.array([[0], [last]], np.uint64))
    (tmp_path / "y.csv").write_text("id,label\n0,0\n1,1\n")
    for labels in (None, tmp_path / "y.csv"):
        with pytest.raises(
            RawlsError, match=r"g\.npz says that it has .* too many for this machine's memory"
        ):
            read(tmp_path / "g.npz", labels=labels, need_features=False, need_labels=False)


def test_small_unsigned_ids_are_ids(tmp_path: Path) -> None:
    edge_index = np.array([[0, 1], [1, 2]], np.uint64)
    np.savez(tmp_path / "g.npz", edge_index=edge_index)
    graph = read(tmp_path / "g.npz", need_features=False, need_labels=False)
    assert graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]


def test_a_text_that_is_called_npz_is_not_called_a_pickle(tmp_path: Path) -> None:
    for name in ("g.npz", "x.npy"):
        (tmp_path / name).write_text("hello")
    with pytest.raises(RawlsError, match=r"g\.npz: it is no file of numpy"):
        read(tmp_path / "g.npz")
    with pytest.raises(RawlsError, match=r"x\.npy: it is no file of numpy"):
        read(edges(tmp_path), features=tmp_path / "x.npy")


def test_a_dict_without_names_is_one_sentence(tmp_path: Path) -> None:
    torch.save({1: torch.zeros(2)}, tmp_path / "g.pt")
    with pytest.raises(RawlsError, match=r"g\.pt: it holds a dict whose keys are not all names"):
        read(tmp_path / "g.pt")


def test_notes_of_a_file_stand_once_in_the_result(tmp_path: Path) -> None:
    arguments = write_npz_edges(tmp_path)
    np.savez(tmp_path / "g.npz", edge_index=np.stack([SOURCE, TARGET]), x=X, y=Y + 1)
    graph = read(**arguments)
    assert graph_notes(check(graph)) == graph_notes(graph)


def test_files_that_are_not_there_or_of_another_kind(tmp_path: Path) -> None:
    with pytest.raises(RawlsError, match="does not exist"):
        read(tmp_path / "none.npz")
    with pytest.raises(RawlsError, match="does not exist"):
        read(edges(tmp_path), labels=tmp_path / "none.csv")
    with pytest.raises(RawlsError, match="is a folder"):
        read(tmp_path)
    (tmp_path / "g.gml").write_text("graph []")
    with pytest.raises(RawlsError, match=r"read from \.csv, \.tsv, \.txt, .*\.json, \.npz, \.pt"):
        read(tmp_path / "g.gml")
    with pytest.raises(RawlsError, match="features are read from"):
        read(edges(tmp_path), features=tmp_path / "g.gml")


def test_text_ids_need_keyed_features(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X[:4])
    with pytest.raises(RawlsError, match="text for ids"):
        read(edges(tmp_path, "a,b\nb,c\n"), features=tmp_path / "x.npy", need_labels=False)


def test_parquet_without_pyarrow_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "g.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(RawlsError, match=r"pip install 'rawlsgcn\[parquet\]'"):
        read(tmp_path / "g.parquet")


def test_reading_equals_checking_the_same_data(tmp_path: Path) -> None:
    one, other = read(**write_data(tmp_path)), check(_data())
    assert torch.equal(one.edge_index, other.edge_index)
    assert torch.equal(one.train_mask, other.train_mask)
