"""Edge lists in .txt files, and features as COO."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import rawlsgcn as rg
from rawlsgcn.graphs import read


def edges(path: Path, text: str) -> list[list[int]]:
    path.write_text(text)
    graph = read(path, need_labels=False, need_features=False)
    return graph.edge_index.tolist()


@pytest.mark.parametrize(
    "text",
    [
        "0 1\n1 2\n",
        "0\t1\n1\t2\n",
        "0,1\n1,2\n",
        "0;1\n1;2\n",
        "  0   1 \n 1 2\n",
        "# Directed graph (each unordered pair once)\n# FromNodeId\tToNodeId\n\n0\t1\n1\t2\n",
        "% bip unweighted\n0 1 1\n1 2 1\n",
        "0 1 {}\n1 2 {}\n",
        "source target\n0 1\n1 2\n",
        "0 1\n1 2 # the last one\n",
        "\ufeff0 1\n1 2\n",
    ],
)
@pytest.mark.parametrize("suffix", [".txt", ".edgelist"])
def test_text_files_of_any_separator_with_comments(tmp_path: Path, suffix: str, text: str) -> None:
    assert edges(tmp_path / f"g{suffix}", text) == [[0, 1, 1, 2], [1, 0, 2, 1]]


def test_labels_may_be_a_text_file_too(tmp_path: Path) -> None:
    (tmp_path / "g.txt").write_text("".join(f"{i} {(i * 7 + 1) % 40}\n" for i in range(40)))
    names = ["cat", "dog"]
    (tmp_path / "y.txt").write_text("".join(f"{i} {names[i % 2]}\n" for i in range(40)))
    graph = read(tmp_path / "g.txt", labels=tmp_path / "y.txt")
    assert graph.class_names == names
    assert graph.y.tolist() == [i % 2 for i in range(40)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# only\n# comments\n", "is empty"),
        ("0 1 {'weight': 4}\n", "networkx.write_edgelist writes attributes"),
        ("0 1 2 3 4\n1 2 3 4 5\n", "5 columns and no header"),
        ("0\n1\n", "separated by blanks, tabs or commas"),
        ("# one\n# two\n0 1 1\n1 2 x\n", "line 4, column 3.*'x'"),
        ("\0\1\2\3", "NUL bytes"),
    ],
)
def test_text_that_is_no_edge_list_gets_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "g.txt"
    path.write_text(text)
    with pytest.raises(rg.RawlsError, match=said) as caught:
        read(path, need_labels=False, need_features=False)
    assert "g.txt" in str(caught.value)


def test_features_stored_as_coo(tmp_path: Path) -> None:
    x = sp.random(40, 30, 0.05, format="coo", random_state=0)
    tensor = torch.from_numpy(x.toarray()).float()
    ring = np.stack([np.arange(40), (np.arange(40) + 1) % 40])
    y = np.arange(40) % 2
    pieces = {"attr_data": x.data, "attr_row": x.row, "attr_col": x.col, "attr_shape": x.shape}
    np.savez(tmp_path / "whole.npz", edge_index=ring, labels=y, **pieces)
    np.savez(tmp_path / "bare.npz", edge_index=ring, labels=y)
    sp.save_npz(tmp_path / "x.npz", x)
    torch.save(tensor.to_sparse(), tmp_path / "x.pt")
    torch.save(tensor, tmp_path / "dense.pt")
    torch.save(torch.from_numpy(y), tmp_path / "y.pt")
    data = {"edge_index": torch.from_numpy(ring), "x": tensor.to_sparse(), "y": torch.from_numpy(y)}
    torch.save(data, tmp_path / "data.pt")
    bare = tmp_path / "bare.npz"
    for graph in (
        read(tmp_path / "whole.npz"),
        read(tmp_path / "data.pt"),
        *(read(bare, features=tmp_path / name) for name in ("x.npz", "x.pt", "dense.pt")),
        read(bare, features=tensor.to_sparse()),
        read(bare, features=x, labels=tmp_path / "y.pt"),
    ):
        assert torch.equal(graph.x, tensor)
        assert graph.y.tolist() == y.tolist()


def test_a_torch_file_that_is_no_tensor_is_refused(tmp_path: Path) -> None:
    torch.save({"a": torch.ones(2)}, tmp_path / "x.pt")
    (tmp_path / "g.txt").write_text("0 1\n1 2\n")
    with pytest.raises(rg.RawlsError, match="save one tensor"):
        read(tmp_path / "g.txt", features=tmp_path / "x.pt")
