"""The paper's seven graphs: every figure of its table, and equality with torch_geometric."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import torch
import torch_geometric.datasets as pyg
from torch_geometric.utils import coalesce, remove_self_loops, to_undirected

from rawlsgcn.graphs import graph_notes, load, paper_split, statistics
from rawlsgcn.graphs.catalog import CATALOG, catalog_entry

# nodes, edges, features, classes, median degree, isolated nodes
TABLE = {
    "cora-ml": (2995, 16316, 2879, 7, 3, 0),
    "citeseer": (3327, 9104, 3703, 6, 2, 48),
    "coauthor-cs": (18333, 163788, 6805, 15, 6, 0),
    "coauthor-physics": (34493, 495924, 8415, 5, 10, 0),
    "amazon-computers": (13752, 491722, 767, 10, 22, 281),
    "amazon-photo": (7650, 238162, 745, 8, 22, 115),
    "chameleon": (2277, 36101, 2325, 5, 12, 0),
}


@pytest.mark.parametrize("name", list(TABLE))
def test_statistics_match_the_table(name: str, data_root: Path) -> None:
    graph = load(name, root=data_root, sparse=True)
    figures = statistics(graph)
    found = (figures.nodes, figures.edges, figures.features, figures.classes)
    assert (*found, figures.median_degree, figures.isolated_nodes) == TABLE[name]
    assert graph.is_undirected()
    assert graph.is_coalesced()
    assert not graph.has_self_loops()
    sparse = name not in ("amazon-photo", "amazon-computers")
    assert graph.x.layout == (torch.sparse_csr if sparse else torch.strided)
    dense = load(name, root=data_root).x
    assert dense.layout == torch.strided
    assert torch.equal(dense, graph.x.to_dense())
    if name != "chameleon":
        assert graph_notes(graph) == []
        split = paper_split(graph.y)
        for key, mask in split._asdict().items():
            assert torch.equal(graph[key], mask)


def test_amazon_photo_has_248_distinct_degrees(data_root: Path) -> None:
    assert statistics(load("amazon-photo", root=data_root)).distinct_degrees == 248


@pytest.mark.slow
def test_chameleon_is_symmetrized_and_uses_its_first_stored_split(data_root: Path) -> None:
    graph = load("chameleon", root=data_root)
    assert graph.edge_index.size(1) == 62742
    assert graph.stored_edges == 36101
    masks = (graph.train_mask, graph.val_mask, graph.test_mask)
    assert [int(mask.sum()) for mask in masks] == [1092, 729, 456]
    said = " ".join(graph_notes(graph))
    assert "directed graph symmetrized" in said
    assert "50 self-loops" in said
    assert "stored split" in said
    assert graph_notes(load("chameleon", root=data_root, split="stored")) == graph_notes(graph)
    other = load("chameleon", root=data_root, split="paper")
    assert [int(m.sum()) for m in (other.train_mask, other.test_mask)] == [100, 1000]
    for split in ("paper", "random"):
        notes = graph_notes(load("chameleon", root=data_root, split=split))
        assert "stored split" not in " ".join(notes)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cora-ml", "citeseer", "amazon-photo", "chameleon"])
def test_equal_to_torch_geometrics_own_processing(
    name: str, data_root: Path, tmp_path: Path
) -> None:
    entry = catalog_entry(name)
    for path in entry.raw_paths(data_root):
        copy = tmp_path / path.relative_to(data_root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    theirs = getattr(pyg, entry.loader)(str(tmp_path), entry.loader_name)[0]

    ours = load(name, root=data_root, split=None if name != "citeseer" else "stored")

    assert torch.equal(ours.x, theirs.x)
    assert torch.equal(ours.y, theirs.y)
    edge_index = to_undirected(remove_self_loops(theirs.edge_index)[0], num_nodes=len(theirs.y))
    assert torch.equal(ours.edge_index, coalesce(edge_index))
    if name in ("citeseer", "chameleon"):
        for key in ("train_mask", "val_mask", "test_mask"):
            assert torch.equal(ours[key], theirs[key].view(len(theirs.y), -1)[:, 0])


def test_the_catalogue_names_the_files_that_torch_geometric_looks_for(data_root: Path) -> None:
    for entry in CATALOG.values():
        assert entry.on_disk(data_root)
        base = getattr(pyg, entry.loader)
        probe = type(
            "Probe", (base,), {"_download": _nothing, "_process": _nothing, "load": _nothing}
        )
        expected = [Path(path) for path in probe(str(data_root), entry.loader_name).raw_paths]
        assert entry.raw_paths(data_root) == expected


def _nothing(*_: object) -> None: ...


def test_nothing_is_written_under_the_root(data_root: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    shutil.copytree(data_root / "cora_ml" / "raw", root / "cora_ml" / "raw")
    shutil.copytree(data_root / "CiteSeer" / "raw", root / "CiteSeer" / "raw")
    before = sorted(root.rglob("*"))
    for folder in [root, *root.rglob("*")]:
        folder.chmod(0o555 if folder.is_dir() else 0o444)
    try:
        load("cora-ml", root=root)
        load("citeseer", root=root)
    finally:
        for folder in [root, *root.rglob("*")]:
            os.chmod(folder, 0o755)
    assert sorted(root.rglob("*")) == before


def test_sparse_coauthor_physics_stays_small(data_root: Path) -> None:
    graph = load("coauthor-physics", root=data_root, sparse=True)
    stored = sum(
        part.numel() * part.element_size()
        for part in (graph.x.values(), graph.x.col_indices(), graph.x.crow_indices())
    )
    assert stored < 20e6
