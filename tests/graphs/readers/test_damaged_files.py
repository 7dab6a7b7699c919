"""No file can crash the process, show its memory, fill it or end in a traceback.

The fuzzer (docs/fuzzing.md) looks for such files; these are the causes that it found.
"""

from __future__ import annotations

import io
import json
import pickle
import pickletools
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.io.planetoid import read_planetoid_data

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.graphs import check, load, read
from rawlsgcn.graphs.catalog import CATALOG

EDGES = np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
X = np.arange(18.0).reshape(6, 3)
Y = np.array([0, 1, 0, 1, 0, 1])
GRAPH: dict[str, Any] = {"edge_index": EDGES, "x": X, "y": Y}


def save(path: Path, **changes: Any) -> Path:
    np.savez(path, **{**GRAPH, **changes})
    return path


def refused(path: Path, **arguments: Any) -> str:
    """The sentence with which a file is refused."""
    with pytest.raises(RawlsError, match=path.name) as caught:
        read(path, **arguments)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000
    return str(caught.value)


def refused_or_read(path: Path, name: str = "", **arguments: Any) -> None:
    """Nothing is raised but a sentence that has the file's name."""
    message = ""
    try:
        read(path, **arguments)
    except RawlsError as error:
        message = str(error)
    assert not message or (name or path.name) in message


def bare(path: Path) -> str:
    """As for balancing, which needs the edges alone."""
    return refused(path, need_features=False, need_labels=False)


# Arrays ---------------------------------------------------------------------------------------

ODD_ARRAYS = [
    np.array(3),
    np.array("text"),
    np.array([1.5, 2.5]),
    np.array([2**63 + 1], np.uint64),
    np.array([-(2**62), 2**62]),
    np.zeros((2, 2, 2)),
    np.zeros((0, 3)),
    np.array([np.nan, np.inf]),
    np.array(["2024-01-01"], "datetime64[D]"),
    np.array([(1, 2.0)], "i4,f8"),
    np.array([1 + 2j]),
    np.array([b"ab"]),
    np.array([6, 6], ">i8"),
    np.array([1, 2], object),
]


@pytest.mark.parametrize("odd", ODD_ARRAYS, ids=lambda odd: f"{odd.dtype}{odd.shape}")
def test_members_of_a_wrong_kind_are_refused_or_read_and_nothing_else(
    odd: Any, tmp_path: Path
) -> None:
    a = sp.csr_matrix((np.ones(5), tuple(EDGES)), shape=(6, 6))
    adj = {
        "adj_data": a.data,
        "adj_indices": a.indices,
        "adj_indptr": a.indptr,
        "adj_shape": a.shape,
    }
    whole = {"format": b"csr", "data": a.data, "indices": a.indices, "indptr": a.indptr}
    masks = {f"{part}_mask": Y == 0 for part in ("train", "val", "test")}
    coordinates = {"format": b"coo", "data": a.data, "row": EDGES[0], "col": EDGES[1]}
    files: list[dict[str, Any]] = [
        {**GRAPH, "num_nodes": 6, "edge_weight": np.ones(5), "node_ids": Y, **masks},
        {**adj, "x": X, "y": Y},
        {**whole, "shape": a.shape},
        {**coordinates, "shape": a.shape},
    ]
    for content in files:
        for key in content:
            np.savez(tmp_path / "g.npz", **{**content, key: odd})
            refused_or_read(tmp_path / "g.npz", need_features=False, need_labels=False)


HEADERS = [
    "{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000000,), }",
    "{'descr': '<i8', 'fortran_order': False, 'shape': (-6,), }",
    "{'descr': '<i8', 'fortran_order': False, 'shape': (99999999999999999999,), }",
    "{'descr': '<i8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
    "{'descr': '<i8', 'fortran_order': False, 'shape': (1.5,), }",
    "{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,), }",
    "{'descr': '<U268435456', 'fortran_order': False, 'shape': (6,), }",
    "{'descr': '|O', 'fortran_order': False, 'shape': (6,), }",
    "{'descr': [('a', '<i8')], 'fortran_order': False, 'shape': (6,), }",
    "{'descr': ('<i8', (3,)), 'fortran_order': False, 'shape': (2,), }",
    "{'descr': 'nonsense', 'fortran_order': False, 'shape': (6,), }",
    "{'descr': '<i8', 'fortran_order': 7, 'shape': (6,), }",
    "{" * 300,
    "[" * 2000,
    "-" * 3000 + "1",
    "",
]


@pytest.mark.parametrize("header", HEADERS)
def test_a_header_that_lies_is_refused_before_memory_is_reserved(
    header: str, tmp_path: Path
) -> None:
    size = len(header).to_bytes(2, "little")
    content = b"\x93NUMPY\x01\x00" + size + header.encode() + Y.astype("<i8").tobytes()
    (tmp_path / "y.npy").write_bytes(content)
    save(tmp_path / "g.npz")
    with pytest.raises(RawlsError, match=r"y\.npy"):
        read(tmp_path / "g.npz", labels=tmp_path / "y.npy")
    with zipfile.ZipFile(tmp_path / "z.npz", "w") as archive:
        archive.writestr("edge_index.npy", content)
    assert "memory" not in bare(tmp_path / "z.npz")


def test_a_small_file_does_not_unpack_to_much(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "g.npz", **{**GRAPH, "y": np.zeros(17_000_000, np.uint8)})
    assert "save it without compression" in refused(tmp_path / "g.npz")


@pytest.mark.parametrize(
    "changes",
    [
        {"edge_index": np.array([[0], [999_999_999_999]])},
        {"edge_index": np.array([[0], [50_000_000]])},
        {"num_nodes": np.array(100_000_000)},
    ],
)
def test_one_number_alone_does_not_make_a_large_graph(changes: Any, tmp_path: Path) -> None:
    np.savez(tmp_path / "g.npz", **{"edge_index": EDGES, **changes})
    assert "too many for this machine" in bare(tmp_path / "g.npz")


# Sparse matrices ------------------------------------------------------------------------------


def compressed(form: str, **changes: Any) -> dict[str, Any]:
    matrix = sp.csr_matrix(np.diag(np.ones(5), 1)).asformat(form)
    parts = {"format": form.encode(), "shape": np.array(matrix.shape), "data": matrix.data}
    places = ("row", "col") if form == "coo" else ("indices", "indptr")
    return {**parts, **{name: getattr(matrix, name) for name in places}, **changes}


@pytest.mark.parametrize(
    "parts",
    [
        compressed("bsr", indices=np.array([9_999_999] * 5)),
        compressed("bsr", indptr=np.array([0, 10**6, 3, 3, 3, 3, 5])),
        compressed("csr", indptr=np.array([0, 10**8, -5, 3, 4, 5, 5])),
        compressed(
            "csr", indptr=np.array([0, 9, -9, 0, 0, 0, 0]), data=[], indices=np.zeros(0, int)
        ),
        compressed("csr", indices=np.array([1, 2, 3, 4, -1])),
        compressed("csr", indices=np.array([1, 2, 3, 4])),
        compressed("csc", indices=np.array([0, 1, 2, 3, 9_999_999])),
        compressed("csc", shape=np.array([10**10, 6])),
        compressed("coo", row=np.array([0, 1, 2, 3, -9_999_999])),
        compressed("coo", col=np.array([0, 1, 2, 3, 9_999_999])),
        compressed("coo", shape=np.array([10**10, 10**10])),
        compressed("csr", shape=np.array([6.5, 6])),
        compressed("csr", format=np.array(b"lil")),
        compressed("csr", format=np.array([1, 2])),
    ],
)
def test_every_index_of_a_stored_matrix_is_checked(parts: Any, tmp_path: Path) -> None:
    np.savez(tmp_path / "m.npz", **parts)
    bare(tmp_path / "m.npz")
    save(tmp_path / "g.npz")
    with pytest.raises(RawlsError, match=r"m\.npz"):
        read(tmp_path / "g.npz", features=tmp_path / "m.npz")


@pytest.mark.parametrize("form", ["bsr", "dia"])
def test_blocks_and_diagonals_are_refused_with_the_cure(form: str, tmp_path: Path) -> None:
    sp.save_npz(tmp_path / "g.npz", sp.csr_matrix(np.diag(np.ones(5), 1)).asformat(form))
    assert "matrix.tocsr()" in bare(tmp_path / "g.npz")


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_a_sound_matrix_is_the_same_in_every_form(form: str, tmp_path: Path) -> None:
    matrix = sp.csr_matrix((np.ones(5), tuple(EDGES)), shape=(6, 6)).asformat(form)
    sp.save_npz(tmp_path / "g.npz", matrix)
    graph = read(tmp_path / "g.npz", need_features=False, need_labels=False)
    both = np.hstack([EDGES, EDGES[::-1]])
    assert sorted(map(tuple, graph.edge_index.t().tolist())) == sorted(map(tuple, both.T.tolist()))


# Files of torch -------------------------------------------------------------------------------


def tensors(**changes: Any) -> dict[str, Any]:
    return {**{key: torch.from_numpy(value) for key, value in GRAPH.items()}, **changes}


def rewritten(path: Path, change: Any) -> Path:
    """Put what ``change`` makes of its pickle into a .pt file, with a right checksum."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, change(content) if name.endswith("data.pkl") else content)
    return path


def widened(content: bytes) -> bytes:
    """A pickle that changes the width of an array's dtype after it has built the array."""
    ops = list(pickletools.genops(content))
    names = [(op.name, argument) for op, argument, _ in ops]
    made = next(i for i, (_, argument) in enumerate(names) if argument == "numpy dtype")
    memo = next(argument for name, argument in names[names.index(("REDUCE", None), made) :]
                if name in ("BINPUT", "LONG_BINPUT"))  # fmt: skip
    wide = pickle.dumps((3, "<", None, None, None, 40_000, 4, 0), 2)[2:-1]
    return content[:-1] + b"h" + bytes([memo]) + wide + b"b0."


def test_a_widened_dtype_shows_no_foreign_memory(tmp_path: Path) -> None:
    names = [f"n{i}" for i in range(6)]
    torch.save(tensors(node_ids=np.array(names)), tmp_path / "g.pt")
    assert read(tmp_path / "g.pt").node_ids == names
    rewritten(tmp_path / "g.pt", widened)
    try:
        found = read(tmp_path / "g.pt").node_ids
    except RawlsError:
        return
    assert list(found) == names


def test_a_tensor_larger_than_its_bytes_is_refused(tmp_path: Path) -> None:
    torch.save(tensors(y=torch.arange(6) % 2, x=torch.ones(6, 77)), tmp_path / "g.pt")
    # K and a byte is how a pickle writes a small number: more rows and columns than there are.
    rewritten(tmp_path / "g.pt", lambda content: content.replace(b"K\x06KM", b"K\x06M\xff\xff"))
    assert "is not all in the file" in refused(tmp_path / "g.pt")


def quantized() -> Any:
    return torch.quantize_per_tensor(torch.ones(6, 3), 0.1, 0, torch.qint8)


def outside(layout: Any) -> Any:
    if layout == torch.sparse_coo:
        places = torch.tensor([[0, 10**9], [0, 1]])
        return torch.sparse_coo_tensor(places, torch.ones(2), (6, 6), check_invariants=False)
    starts, places = torch.tensor([0, 10**6, 1, 1, 1, 2, 2]), torch.tensor([10**9, 1])
    return torch.sparse_compressed_tensor(
        starts, places, torch.ones(2), (6, 6), layout=layout, check_invariants=False
    )


ODD_TENSORS: dict[str, Any] = {
    "sparse": lambda: torch.eye(6).to_sparse(),
    "coo": lambda: outside(torch.sparse_coo),
    "csr": lambda: outside(torch.sparse_csr),
    "csc": lambda: outside(torch.sparse_csc),
    "wide": lambda: torch.sparse_coo_tensor(torch.zeros(2, 1).long(), torch.ones(1), (10**12, 6)),
    "quantized": quantized,
    "scalar": lambda: torch.tensor(3),
    "complex": lambda: torch.ones(6, 3, dtype=torch.complex64).conj(),
    "meta": lambda: torch.ones(6, 3, device="meta"),
    "uint16": lambda: torch.ones(6, 3).to(torch.uint16),
    "expanded": lambda: torch.ones(1).expand(10**10),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    "ragged": lambda: [[1], [1, 2]],
    "number": lambda: 2**70,
    "table": lambda: {"a": 1},
    "objects": lambda: np.array([None, 1], object),
}


@pytest.mark.parametrize("kind", ODD_TENSORS)
def test_other_tensors_than_plain_ones_are_refused_or_read(kind: str, tmp_path: Path) -> None:
    for key in (
        "edge_index",
        "edge_weight",
        "x",
        "y",
        "train_mask",
        "node_ids",
        "num_nodes",
        "adj_t",
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            content = tensors(**{key: ODD_TENSORS[kind]()})
            if key == "adj_t":
                del content["edge_index"]
            torch.save(content, tmp_path / "g.pt")
        refused_or_read(tmp_path / "g.pt")
    if kind in ("coo", "csr", "csc", "quantized", "meta", "wide"):
        refused(tmp_path / "g.pt")  # as the adjacency matrix


def test_the_same_tensors_are_refused_in_memory(tmp_path: Path) -> None:
    for make in (quantized, ODD_TENSORS["meta"], lambda: outside(torch.sparse_csr)):
        with pytest.raises(RawlsError, match="the graph: x is a"):
            check(Data(**tensors(x=make())))


def test_lists_that_hold_each_other_end(tmp_path: Path) -> None:
    deep: Any = [0, 1]
    for _ in range(18):
        deep = [deep] * 9
    torch.save(tensors(node_ids=deep), tmp_path / "g.pt")
    assert "without end" in refused(tmp_path / "g.pt")
    endless: list[Any] = [1]
    endless.append(endless)
    torch.save(tensors(facts=endless), tmp_path / "g.pt")
    assert "without end" in refused(tmp_path / "g.pt")


def test_half_precision_sparse_and_parameters_are_still_read(tmp_path: Path) -> None:
    plain = torch.from_numpy(X).float()
    torch.save(tensors(x=plain), tmp_path / "g.pt")
    expected = read(tmp_path / "g.pt").x.to_dense()
    forms = [
        plain.bfloat16(), plain.half(), plain.to_sparse(), plain.to_sparse_csr(),
        torch.nn.Parameter(plain), plain.t().contiguous().t(), plain.tolist(), X,
    ]  # fmt: skip
    for x in forms:
        for content in (tensors(x=x), Data(**tensors(x=x)), (Data(**tensors(x=x)), None, Data)):
            torch.save(content, tmp_path / "g.pt")
            assert torch.equal(read(tmp_path / "g.pt").x.to_dense(), expected)


def test_attributes_that_are_not_read_may_be_of_other_kinds(tmp_path: Path) -> None:
    more = {"kind": torch.float32, "seen": {1, 2}, "small": torch.ones(3).to(torch.uint16)}
    torch.save(Data(**tensors(**more)), tmp_path / "g.pt")
    assert read(tmp_path / "g.pt").num_nodes == 6
    torch.save(HeteroData(), tmp_path / "g.pt")
    assert "g.pt: it holds a HeteroData" in refused(tmp_path / "g.pt")


# Tables ---------------------------------------------------------------------------------------


def test_ids_of_a_table_that_are_not_those_of_the_graph(tmp_path: Path) -> None:
    save(tmp_path / "g.npz", node_ids=np.arange(6))
    for odd in ("n5", "1.5", "99999999999999999999", "nan", "x" * 90_000):
        rows = "".join(f"{i},0\n" for i in [0, 1, 2, 3, 4, odd])
        (tmp_path / "y.csv").write_text(f"id,label\n{rows}")
        with pytest.raises(RawlsError, match=r"y\.csv, line 7, column 'id'") as caught:
            read(tmp_path / "g.npz", labels=tmp_path / "y.csv")
        assert len(str(caught.value)) < 1000


def test_rows_shorter_than_the_header(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("source,target,weight\n0,1\n1,2\n")
    assert "3 columns in its header and 2 below it" in bare(tmp_path / "g.csv")


ODD_COLUMNS: dict[str, Any] = {
    "lists": [[1]] * 6,
    "ragged": [[1] * i for i in range(6)],
    "tables": [{"a": 1}] * 6,
    "dates": pd.date_range("2024-01-01", periods=6),
    "zoned": pd.date_range("2024-01-01", periods=6, tz="UTC"),
    "durations": pd.to_timedelta(range(6), unit="s"),
    "bytes": [b"\xff\x00"] * 6,
    "nothing": [None] * 6,
    "category": pd.Categorical(list("ababab")),
    "huge": np.full(6, 2**64 - 1, np.uint64),
    "holes": [1.0, None, 2.0, None, 3.0, 4.0],
}


@pytest.mark.parametrize("kind", ODD_COLUMNS)
def test_columns_of_other_types_are_refused_or_read(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    save(tmp_path / "g.npz")
    for name in ("id", "label", "split"):
        columns = {"id": range(6), "label": Y, "split": ["train", "val", "test"] * 2}
        pd.DataFrame({**columns, name: ODD_COLUMNS[kind]}).to_parquet(tmp_path / "y.parquet")
        refused_or_read(tmp_path / "g.npz", "y.parquet", labels=tmp_path / "y.parquet")
    for name in ("source", "target", "weight"):
        columns = {"source": range(6), "target": range(6), "weight": range(6)}
        pd.DataFrame({**columns, name: ODD_COLUMNS[kind]}).to_parquet(tmp_path / "g.parquet")
        refused_or_read(tmp_path / "g.parquet", need_features=False, need_labels=False)


@pytest.mark.parametrize(
    "metadata",
    [b"", b"[]", b"{", b"\xff", b'{"columns": 1, "index_columns": [3.5]}', b'{"index_columns": 1}'],
)
def test_damaged_metadata_of_pandas(metadata: bytes, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pa.table({"source": EDGES[0], "target": EDGES[1]})
    parquet.write_table(
        table.replace_schema_metadata({b"pandas": metadata}), tmp_path / "g.parquet"
    )
    refused_or_read(tmp_path / "g.parquet", need_features=False, need_labels=False)


def test_a_small_parquet_file_does_not_unpack_to_much(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    one = pa.array(np.zeros(9_000_000, np.int8))
    parquet.write_table(pa.table({"source": one, "target": one}), tmp_path / "g.parquet")
    assert "unpacks to 18,000,000 cells" in bare(tmp_path / "g.parquet")
    long = pa.array(["x" * 23_000_000] * 3)
    table = pa.table({"source": long, "target": long})
    parquet.write_table(table, tmp_path / "g.parquet", compression="zstd", use_dictionary=False)
    assert "bytes: write it without compression" in bare(tmp_path / "g.parquet")


def test_a_row_of_very_many_columns_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("0," * 400_000 + "1\n")
    assert "400,001 columns" in bare(tmp_path / "g.csv")


# Node ids -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", [[1, 2, 3, 4, 5, 1], ["a", "b", "c", "d", "e", " a"]])
def test_an_id_that_appears_twice_is_named(ids: Any, tmp_path: Path) -> None:
    said = f"the node id '{ids[0]}' appears twice, as node 0 and as node 5"
    save(tmp_path / "g.npz", node_ids=np.array(ids))
    (tmp_path / "y.csv").write_text("id,label\n" + "".join(f"{i},0\n" for i in ids[:5]))
    assert said in refused(tmp_path / "g.npz")
    assert said in refused(tmp_path / "g.npz", labels=tmp_path / "y.csv")
    with pytest.raises(RawlsError, match=said):
        check(Data(**tensors(node_ids=ids)))


@pytest.mark.parametrize("point", [0x110000, 0xFFFFFFFF, 0xD800])
def test_text_without_characters_is_refused(point: int, tmp_path: Path) -> None:
    ids = np.array([f"n{i}" for i in range(6)])
    ids.view(np.uint32)[3] = point
    save(tmp_path / "g.npz", node_ids=ids)
    assert "there are no characters" in refused(tmp_path / "g.npz")
    torch.save(tensors(node_ids=ids), tmp_path / "g.pt")
    refused(tmp_path / "g.pt")
    if point == 0xD800:
        torch.save(tensors(node_ids=[*"abcde", "\ud800"]), tmp_path / "g.pt")
        refused(tmp_path / "g.pt")


# Raw files ------------------------------------------------------------------------------------


def planetoid(root: Path, **changes: Any) -> Path:
    """A tiny graph in the form of Citeseer, whose last test node but one is not in the index."""
    x, y = sp.csr_matrix(np.repeat(X, 5, 0).astype(np.float32)), np.eye(2)[np.repeat(Y, 5)]
    table = {i: [(i + 1) % 31, (i + 4) % 31, i] for i in range(31)}
    parts = {
        "x": x[:4], "tx": x[20:], "allx": x[:20], "y": y[:4], "ty": y[20:], "ally": y[:20],
        "graph": table, **changes,
    }  # fmt: skip
    folder = CATALOG["citeseer"].raw_dir(root)
    folder.mkdir(parents=True, exist_ok=True)
    index = parts.pop("index", [30, 20, 21, 28, 22, 23, 24, 25, 26, 27])
    for name, part in parts.items():
        content = part if isinstance(part, bytes) else pickle.dumps(part, 2)
        (folder / f"ind.citeseer.{name}").write_bytes(content)
    (folder / "ind.citeseer.test.index").write_text("\n".join(map(str, index)) + "\n")
    return folder


def test_planetoid_files_are_read_as_torch_geometric_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rawlsgcn.graphs.readers.published_files import read_planetoid

    folder = planetoid(tmp_path)
    ours = read_planetoid(CATALOG["citeseer"].raw_paths(tmp_path))
    small = torch.arange
    # Its validation nodes are 500, which this graph has not.
    monkeypatch.setattr(torch, "arange", lambda *a, **k: small(*[min(n, 10) for n in a], **k))
    theirs = read_planetoid_data(str(folder), "citeseer")
    np.testing.assert_array_equal(ours.x.toarray(), theirs.x)
    np.testing.assert_array_equal(ours.y, theirs.y)
    arcs = list(zip(ours.source.tolist(), ours.target.tolist(), strict=True))
    assert sorted(arcs) == sorted(map(tuple, theirs.edge_index.t().tolist()))
    for key in ("train_mask", "test_mask"):
        np.testing.assert_array_equal(ours.masks[key], theirs[key])


def broken(**changes: Any) -> Any:
    matrix = sp.csr_matrix(np.repeat(X, 5, 0)[20:].astype(np.float32))
    for name, value in changes.items():
        setattr(matrix, name, value)
    return matrix


@pytest.mark.parametrize(
    "changes",
    [
        {"tx": broken(indices=np.full(29, 10**8, np.int32))},
        {"tx": broken(indices=np.full(29, -(10**8), np.int32))},
        {"tx": broken(indptr=np.array([0, 10**9, *[5] * 9], np.int32))},
        {"tx": broken(_shape=(10**12, 3))},
        {"tx": broken(_shape="ab")},
        {"tx": broken(data=np.array(["a"] * 29))},
        {"ty": pickle.dumps(np.eye(2), 2).replace(b"K\x02K\x02", b"K\x02J\xff\xff\xff\x0f")},
        {"ty": widened(pickle.dumps(np.eye(2), 2))},
        {"ty": np.zeros((10, 2, 2))},
        {"graph": {0: [10**9]}},
        {"graph": {0: [-1]}},
        {"graph": {0: 5}},
        {"graph": [1, 2]},
        {"graph": json.dumps({}).encode()},
        {"index": [20, 21, 10**9]},
        {"index": [-5, *range(21, 30)]},
        {"index": ["a"]},
        {"index": []},
    ],
)
def test_damaged_planetoid_files_are_one_sentence(changes: Any, tmp_path: Path) -> None:
    planetoid(tmp_path, **changes)
    with pytest.raises(RawlsError, match=r"citeseer: the files in .*cannot be read") as caught:
        load("citeseer", root=tmp_path, split="random")
    assert "\n" not in str(caught.value)


def test_damaged_archives_of_published_graphs_are_one_sentence(tmp_path: Path) -> None:
    path = CATALOG["cora-ml"].raw_paths(tmp_path)[0]
    path.parent.mkdir(parents=True)
    a = sp.csr_matrix((np.ones(5), tuple(EDGES)), shape=(6, 6))
    good: dict[str, Any] = {"labels": Y}
    for name, matrix in (("adj", a), ("attr", sp.csr_matrix(X))):
        good |= {f"{name}_{part}": getattr(matrix, part) for part in ("data", "indices", "indptr")}
        good[f"{name}_shape"] = matrix.shape
    np.savez(path, **good)
    assert load("cora-ml", root=tmp_path, split="random").num_nodes == 6
    for key in good:
        for odd in (np.array(3), np.array([10**9, -(10**9)]), np.array(["a"]), np.array([1.5, 2])):
            np.savez(path, **{**good, key: odd})
            with pytest.raises(RawlsError, match=r"cora-ml|Cora-ML"):
                load("cora-ml", root=tmp_path, split="random")
    buffer = io.BytesIO()
    np.savez(buffer, **good)
    path.write_bytes(buffer.getvalue()[:-50])
    with pytest.raises(RawlsError, match="damaged or cut short"):
        load("cora-ml", root=tmp_path)
