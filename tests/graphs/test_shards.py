"""Shards: the whole graph in even parts, mapped from disk, and told when they do not fit."""

from __future__ import annotations

import contextlib
import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import graphs
from torch_geometric.data import Data

from rawlsgcn.errors import RawlsError
from rawlsgcn.graphs import synthetic
from rawlsgcn.graphs.shards import Shards, write_shards


@settings(max_examples=40, deadline=None)
@given(graphs(), st.data())
def test_the_shards_are_the_graph(graph: Data, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, int(graph.num_nodes)))
    with tempfile.TemporaryDirectory() as folder:
        shards = write_shards(graph, count, folder)
        parts = [shards.open(place) for place in range(len(shards))]
        rows = np.concatenate(
            [np.repeat(np.arange(part.first, part.last), np.diff(part.row_start)) for part in parts]
        )
        columns = np.concatenate([part.column for part in parts])
        assert torch.equal(torch.from_numpy(np.stack([rows, columns])), graph.edge_index)
        x = graph.x.to_dense() if graph.x.layout != torch.strided else graph.x
        np.testing.assert_array_equal(np.concatenate([p.x for p in parts]), x.float().numpy())
        assert (np.concatenate([p.y for p in parts]) == graph.y.numpy()).all()
        split = np.concatenate([p.split for p in parts])
        assert ((split == 1) == graph.train_mask.numpy()).all()
        if graph.get("edge_weight") is not None:
            weight = np.concatenate([p.weight for p in parts])
            assert (weight == graph.edge_weight.numpy()).all()
        assert all(part.last > part.first for part in parts)
        del parts


def test_parts_are_even_and_mapped_and_hold_no_pickle(tmp_path: Path) -> None:
    graph = synthetic(2000)
    shards = write_shards(graph, 4, tmp_path)
    sizes = [shards.open(place).graph_bytes for place in range(4)]
    assert max(sizes) < 1.15 * min(sizes)
    assert isinstance(shards.open(0).column, np.memmap)
    for path in tmp_path.glob("*.npy"):
        np.load(path, allow_pickle=False)


def test_shards_written_anew_forget_the_old_scaling(tmp_path: Path) -> None:
    graph = synthetic(300)
    shards = write_shards(graph, 2, tmp_path)
    shards.write_scale(1, np.ones(shards.cuts[2] - shards.cuts[1]))
    assert shards.open(1).scale is not None
    assert write_shards(graph, 2, tmp_path).open(1).scale is None


def test_no_kill_leaves_new_shards_beside_an_old_scaling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the old shards is left to be removed once the new ones are there."""
    graph, folder = synthetic(300), tmp_path / "shards"
    shards = write_shards(graph, 1, folder)
    shards.write_scale(0, np.ones(shards.num_nodes))

    def killed(path: Path, missing_ok: bool = False) -> None:
        raise KeyboardInterrupt

    def rewrite() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Path, "unlink", killed)
            write_shards(graph, 1, folder)

    with contextlib.suppress(KeyboardInterrupt):
        rewrite()
    assert Shards(folder).open(0).scale is None


@pytest.mark.parametrize(
    "name", ["abcde-notes.npy", "12345-notes.npy", "00000-y.npy", "hello.json", "notes.txt"]
)
def test_a_folder_with_files_of_others_is_refused_and_left_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(RawlsError, match=f"holds '{name}', which is no part"):
        write_shards(synthetic(300), 2, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_fewer_shards_replace_more(tmp_path: Path) -> None:
    write_shards(synthetic(300), 5, tmp_path)
    write_shards(synthetic(300), 2, tmp_path)
    assert {path.name[:5] for path in tmp_path.iterdir()} == {"00000", "00001", "shard"}


def test_what_does_not_fit_is_told(tmp_path: Path) -> None:
    graph = synthetic(300)
    shards = write_shards(graph, 2, tmp_path)
    with pytest.raises(RawlsError, match="holds no whole set of shards"):
        Shards(tmp_path / "elsewhere")
    with pytest.raises(RawlsError, match="1 to 300 shards"):
        write_shards(graph, 301, tmp_path)

    column = tmp_path / "00001-column.npy"
    content = column.read_bytes()
    column.write_bytes(content[:-40])
    with pytest.raises(RawlsError, match="damaged or cut short"):
        shards.open(1)
    column.unlink()
    with pytest.raises(RawlsError, match=r"00001-column\.npy is missing"):
        shards.open(1)
    column.write_bytes(content)

    (tmp_path / "00001.json").write_text(json.dumps({"graph": "another"}))
    with pytest.raises(RawlsError, match=r"shard 1 .* is of another graph"):
        shards.open(1)
    (tmp_path / "00001.json").unlink()
    with pytest.raises(RawlsError, match=r"cannot read 00001\.json"):
        shards.open(1)
    for text in ("{", "[]", "{}", '{"format": 7}'):
        (tmp_path / "shards.json").write_text(text)
        with pytest.raises(RawlsError, match="anew"):
            Shards(tmp_path)
