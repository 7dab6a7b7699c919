"""The table of datasets needs no torch, and knows its names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import rawlsgcn as rg
from rawlsgcn._core.errors import RawlsError
from rawlsgcn.graphs.catalog import catalog_entry, data_root, datasets
from rawlsgcn.paper.plan import PAPER_DATASETS


def test_reading_the_table_imports_neither_torch_nor_scipy() -> None:
    code = (
        "import sys, rawlsgcn.graphs.catalog; "
        "print([name for name in ('torch', 'scipy', 'pandas', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_papers_seven_graphs_and_the_synthetic_one_are_known() -> None:
    assert datasets() == [*PAPER_DATASETS, "synthetic"]
    assert len(PAPER_DATASETS) == 7


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(RawlsError, match="did you mean amazon-photo"):
        catalog_entry("amazon-foto")


def test_root_is_the_argument_then_the_environment_then_a_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RAWLSGCN_DATA", str(tmp_path / "environment"))
    assert data_root(tmp_path) == tmp_path
    assert data_root() == tmp_path / "environment"
    monkeypatch.delenv("RAWLSGCN_DATA")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert data_root() == tmp_path / ".cache" / "rawlsgcn" / "data"


def test_on_disk_needs_every_file(tmp_path: Path) -> None:
    entry = catalog_entry("Citeseer")
    paths = entry.raw_paths(tmp_path)
    paths[0].parent.mkdir(parents=True)
    for path in paths[:-1]:
        path.touch()
    assert not entry.on_disk(tmp_path)
    paths[-1].touch()
    assert entry.on_disk(tmp_path)


@pytest.mark.parametrize("name", ["edges.csv", "folder/edges", "graph.npz"])
def test_a_file_in_the_place_of_a_graph_is_to_be_read_first(name: str) -> None:
    for graph in (name, Path(name)):
        for function in (rg.load, rg.fit, rg.auto, lambda graph: rg.audit(graph, [0, 1])):
            with pytest.raises(RawlsError) as caught:
                function(graph)
            assert f"with rg.read('{name}')" in str(caught.value)
