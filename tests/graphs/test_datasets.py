"""Loading by name, when the raw files are missing, broken or malicious."""

from __future__ import annotations

import json
import pickle
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

import rawlsgcn as rg
from rawlsgcn._core.errors import RawlsError
from rawlsgcn.graphs import load, statistics
from rawlsgcn.graphs.catalog import CATALOG, MASKS, DatasetEntry, catalog_entry
from rawlsgcn.graphs.edges import clean_edges
from rawlsgcn.paper.plan import PAPER_DATASETS, Plan


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise OSError("the network is\nunreachable")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    monkeypatch.setattr("torch_geometric.io.fs.cp", refuse)


def small_npz(path: Path) -> None:
    """A graph in the form of the Amazon files: 60 nodes in 3 classes, in a directed ring."""
    adj = sp.csr_matrix((np.ones(60), (np.arange(60), (np.arange(60) + 1) % 60)))
    attr = sp.csr_matrix(np.arange(240).reshape(60, 4) % 3)
    path.parent.mkdir(parents=True)
    parts = {
        f"{prefix}_{part}": getattr(matrix, part)
        for prefix, matrix in (("adj", adj), ("attr", attr))
        for part in ("data", "indices", "indptr", "shape")
    }
    np.savez(path, **parts, labels=np.arange(60) % 3)


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("name", list(CATALOG))
def test_what_is_neither_there_nor_to_be_had_is_one_sentence(name: str, tmp_path: Path) -> None:
    with pytest.raises(RawlsError) as caught:
        load(name, root=tmp_path / "data")
    said = str(caught.value)
    assert "\n" not in said
    assert all(part in said for part in (name, "--data-root", "RAWLSGCN_DATA", "unreachable"))
    assert str(catalog_entry(name).raw_dir(tmp_path / "data")) in said
    assert list(tmp_path.iterdir()) == [], "no empty folders are left either"


@pytest.mark.usefixtures("offline")
def test_a_failed_download_leaves_the_folders_that_were_there(tmp_path: Path) -> None:
    (tmp_path / "data" / "Photo").mkdir(parents=True)
    with pytest.raises(RawlsError, match="unreachable"):
        load("amazon-photo", root=tmp_path / "data")
    assert list(tmp_path.rglob("*")) == [tmp_path / "data", tmp_path / "data" / "Photo"]


def test_a_root_that_is_a_file_is_named_as_such(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("x")
    with pytest.raises(RawlsError, match="is a file, not a folder") as caught:
        load("amazon-photo", root=tmp_path / "data")
    assert "delete" not in str(caught.value)


def test_a_download_goes_into_the_root_and_half_a_download_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_npz(tmp_path / "origin" / "photo.npz")
    content = (tmp_path / "origin" / "photo.npz").read_bytes()
    target = catalog_entry("amazon-photo").raw_paths(tmp_path)[0]

    def cut_short(url: str, folder: str, *args: Any, **kwargs: Any) -> None:
        (Path(folder) / target.name).write_bytes(content[:100])
        assert not target.exists(), "after a kill, half of a file would pass for the whole"
        raise KeyboardInterrupt

    def complete(url: str, folder: str, *args: Any, **kwargs: Any) -> None:
        (Path(folder) / target.name).write_bytes(content)

    monkeypatch.setattr("torch_geometric.datasets.amazon.download_url", cut_short)
    with pytest.raises(KeyboardInterrupt):
        load("amazon-photo", root=tmp_path)
    assert not target.exists()
    monkeypatch.setattr("torch_geometric.datasets.amazon.download_url", complete)
    assert load("amazon-photo", root=tmp_path, split="random").num_nodes == 60
    assert target.exists()


def test_raw_files_are_enough_and_nothing_is_written(tmp_path: Path) -> None:
    path = catalog_entry("amazon-photo").raw_paths(tmp_path)[0]
    small_npz(path)
    graph = load("amazon-photo", root=tmp_path, split="random")
    assert statistics(graph).edges == 120
    assert graph.name == "amazon-photo"
    assert graph.x.max() == 1
    assert [item for item in tmp_path.rglob("*") if item.is_file()] == [path]


@pytest.mark.parametrize("name", ["amazon-photo", "citeseer", "chameleon"])
@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not a zip", b"\x80\x04garbage"])
def test_corrupt_raw_files_are_one_sentence(name: str, content: bytes, tmp_path: Path) -> None:
    for path in catalog_entry(name).raw_paths(tmp_path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    with pytest.raises(RawlsError, match=f"{name}: the files in .* cannot be read") as caught:
        load(name, root=tmp_path)
    assert "\n" not in str(caught.value)


class _Trap:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_code_in_a_planetoid_file_is_not_run(tmp_path: Path) -> None:
    for path in catalog_entry("citeseer").raw_paths(tmp_path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(_Trap(tmp_path / "sprung")))
    with pytest.raises(RawlsError, match="no plain array"):
        load("citeseer", root=tmp_path)
    assert not (tmp_path / "sprung").exists()


def test_names_and_splits_are_checked_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(RawlsError, match="unknown dataset 'cora': did you mean cora-ml"):
        load("cora", root=tmp_path)
    with pytest.raises(RawlsError, match="unknown split"):
        load("cora-ml", root=tmp_path, split="thirds")
    small_npz(catalog_entry("amazon-photo").raw_paths(tmp_path)[0])
    with pytest.raises(RawlsError, match="stores no train_mask"):
        load("amazon-photo", root=tmp_path, split="stored")


def test_the_synthetic_graph_has_a_name_too() -> None:
    graph = load("Synthetic")
    assert graph.synthetic is True
    assert torch.equal(graph.y, load("synthetic").y)


@pytest.mark.parametrize("loader", ["Amazon", None])
def test_another_dataset_is_one_entry_of_the_catalog(
    loader: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = None if loader is None else "Photo"
    folder, file = "tiny/raw" if loader is None else "Photo/raw", "amazon_electronics_photo.npz"
    entry = DatasetEntry("Tiny", loader, name, folder, (file,), split="random")
    monkeypatch.setitem(CATALOG, "tiny", entry)
    small_npz(entry.raw_paths(tmp_path)[0])
    graph = load("Tiny", root=tmp_path)
    assert graph.num_nodes == 60
    assert graph.name == "tiny"
    assert all(key in graph for key in MASKS)
    assert entry.on_disk(tmp_path)
    assert Plan().datasets == PAPER_DATASETS
    assert "tiny" not in PAPER_DATASETS


def test_an_entry_names_its_labels_and_features(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ring = [(f"n{i}", f"n{(i + 1) % 12}") for i in range(12)]
    (tmp_path / "g.csv").write_text("\n".join(["source,target", *map(",".join, ring)]))
    labels = "\n".join(["id,label", *(f"n{i},{'ab'[i % 2]}" for i in range(12))])
    (tmp_path / "y.csv").write_text(labels)
    nodes = [{"id": i, "age": i, "team": "ab"[i % 2]} for i in range(12)]
    links = [{"source": i, "target": (i + 1) % 12} for i in range(12)]
    (tmp_path / "g.json").write_text(json.dumps({"nodes": nodes, "links": links}))

    def added(*files: str, **given: str) -> Data:
        entry = DatasetEntry("Tiny", None, None, "", files, "random", **given)
        monkeypatch.setitem(CATALOG, "tiny", entry)
        return load("tiny", root=tmp_path)

    assert added("g.csv", "y.csv", labels="y.csv").class_names == ["a", "b"]
    graph = added("g.json", labels="team", features="age")
    assert graph.y.tolist() == [0, 1] * 6
    assert graph.x[:, 0].tolist() == list(range(12))
    with pytest.raises(RawlsError, match=r"Tiny has no labels: .* as in labels='age'"):
        added("g.json")


def test_a_graph_is_cleaned_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A dataset by name is validated when it is loaded, and not again by ``fit``."""
    calls = []

    def counted(*arguments: Any) -> Any:
        calls.append(len(arguments[0]))
        return clean_edges(*arguments)

    monkeypatch.setattr("rawlsgcn.graphs.validation.clean_edges", counted)
    monkeypatch.setenv("RAWLSGCN_DATA", str(tmp_path))
    small_npz(catalog_entry("amazon-photo").raw_paths(tmp_path)[0])
    monkeypatch.setitem(
        CATALOG, "amazon-photo", replace(catalog_entry("amazon-photo"), split="random")
    )
    rg.fit("amazon-photo", "gcn", seeds=1, epochs=1)
    assert len(calls) == 1
