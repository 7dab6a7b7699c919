"""Files read in batches: the shards of the graph that is read in memory, or the same refusal."""

from __future__ import annotations

import hashlib
import re
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rawlsgcn as rg
from rawlsgcn._core.errors import RawlsError
from rawlsgcn.graphs.notes import GraphFacts, graph_notes
from rawlsgcn.graphs.readers import edge_lists, features, node_tables
from rawlsgcn.graphs.shards import Shards, write_shards
from rawlsgcn.graphs.streaming import arc_sorter
from rawlsgcn.graphs.streaming.file_shards import shard_files


def contents(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of a few rows, so that small files have many."""
    monkeypatch.setattr(arc_sorter, "_FEWEST", 40)
    monkeypatch.setattr(arc_sorter, "_SAMPLED", 4)
    monkeypatch.setattr(edge_lists, "ROWS", 13)
    monkeypatch.setattr(features, "CELLS", 30)
    monkeypatch.setattr(node_tables, "ROWS", 7)


class Files:
    """A random graph in files of any of the formats."""

    def __init__(self, folder: Path, random: np.random.Generator, **how: Any) -> None:
        self.folder, self.random, self.how = folder, random, how
        nodes, arcs = how["nodes"], how["arcs"]
        self.ids: np.ndarray = np.arange(nodes)
        if how["ids"] == "shuffled":
            self.ids = random.permutation(nodes)
        elif how["ids"] == "any":
            self.ids = random.choice(10**15, nodes, replace=False) - 10**14
        elif how["ids"] == "near":
            self.ids = random.permutation(3 * nodes)[:nodes] - nodes
        elif how["ids"] == "words":
            self.ids = np.array([f"{'n' if i % 3 else '0'}{i}" for i in random.permutation(nodes)])
        ends = (random.random((2, arcs)) ** 2 * nodes).astype(int)
        if how["ring"]:  # every node has an edge
            ends = np.concatenate([ends, [range(nodes), [*range(1, nodes), 0]]], axis=1)
            ends, arcs = ends[:, random.permutation(arcs + nodes)], arcs + nodes
        edges = {"source": self.ids[ends[0]], "target": self.ids[ends[1]]}
        if how["weighted"]:
            edges["weight"] = random.choice([0, 0.25, 1, 1.5], arcs)
        self.graph = self.write("edges", pd.DataFrame(edges), how["edges"])
        y = random.integers(0, 3, nodes)
        y[:12] = [0, 1, 2] * 4
        label = np.array(["left", "mid", "right"])[y] if how["class_words"] else y
        table = pd.DataFrame({"id": self.ids, "label": label})
        if how["listed"] < 1:
            table = table[(random.random(nodes) < how["listed"]) | (np.arange(nodes) < 12)]
            table = table.iloc[random.permutation(len(table))]
        if how["labels"] == ".npy":
            self.labels = folder / "labels.npy"
            np.save(self.labels, y)
        else:
            self.labels = self.write("labels", table, how["labels"])
        x = np.round(random.normal(size=(nodes, 4)), 3) * (random.random((nodes, 4)) < how["full"])
        x[:, 0] = random.integers(0, 5, nodes)
        if how["features"] == ".npy":
            self.features = folder / "x.npy"
            np.save(self.features, x if how["full"] else np.asfortranarray(x))
        elif how["features"] == ".npz":
            self.features = folder / "x.npz"
            np.savez(self.features, x=x)
        else:
            order = random.permutation(nodes) if how["reordered"] else np.arange(nodes)
            frame = pd.DataFrame(x, columns=list("abcd"))
            frame.insert(0, "id", self.ids)
            self.features = self.write("x", frame.iloc[order], how["features"])

    def write(self, name: str, frame: pd.DataFrame, suffix: str) -> Path:
        path = self.folder / f"{name}{suffix}"
        if suffix == ".parquet":
            frame.to_parquet(path, index=False)
        else:
            frame.to_csv(path, index=False, sep={".tsv": "\t", ".txt": " "}.get(suffix, ","))
        return path


PARQUET = [".parquet"] if find_spec("pyarrow") else []
TABLES = st.sampled_from([".csv", ".tsv", ".txt", *PARQUET])


@pytest.mark.parametrize("listed", [1, 0.3, 0.9])
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_the_shards_are_those_of_the_graph_in_memory(listed: float, data: st.DataObject) -> None:
    draw = data.draw
    how = {
        "nodes": draw(st.integers(20, 60)),
        "arcs": draw(st.integers(1, 150)),
        "ids": draw(st.sampled_from(["range", "shuffled", "near", "any", "words"])),
        "weighted": draw(st.booleans()),
        "edges": draw(TABLES),
        "labels": draw(TABLES),
        "features": draw(st.sampled_from([".csv", ".npy", ".npz", *PARQUET])),
        "class_words": draw(st.booleans()),
        "listed": listed,
        "ring": draw(st.booleans()),
        "reordered": draw(st.booleans()),
        "full": draw(st.sampled_from([0.0, 0.05, 1.0])),
    }
    if how["ids"] == "range" and listed == 1 and draw(st.booleans()):
        how["labels"] = ".npy"
    if how["ids"] in ("near", "any") and how["features"] in (".npy", ".npz"):
        how["features"] = ".csv"
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(1, 4))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = Files(folder, random, **how)
        split = draw(st.sampled_from(["random", None]))
        given_files = {"features": files.features, "labels": files.labels, "split": split}
        try:
            graph = rg.read(files.graph, **given_files)
        except RawlsError as error:  # every arc is a loop, or not all nodes are known
            with pytest.raises(RawlsError, match=f"^{re.escape(str(error))}$"):
                shard_files(folder / "streamed", count, files.graph, memory=1, **given_files)
            return
        write_shards(graph, count, folder / "whole")
        shards, nodes = shard_files(
            folder / "streamed", count, files.graph, memory=1, **given_files
        )
        assert contents(folder / "streamed") == contents(folder / "whole")
        assert GraphFacts.of(nodes) == GraphFacts.of(graph)
        assert graph_notes(nodes) == graph_notes(graph)
        ids = [each for part in shards.open_all() for each in part.node_ids(part.first, part.last)]
        known = graph.get("node_ids")
        assert ids == (list(range(graph.num_nodes)) if known is None else list(known))
        assert shards.class_names == graph.get("class_names")
        assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def write_files(folder: Path) -> tuple[Path, Path, Path]:
    edges, x, y = folder / "edges.csv", folder / "x.csv", folder / "labels.csv"
    rows = [f"{i},{(i + 1) % 40},1.5" for i in range(40)]
    edges.write_text("\n".join(["source,target,weight", *rows]) + "\n")
    x.write_text("\n".join(["id,a,b", *(f"{i},{i % 3},0.5" for i in range(40))]) + "\n")
    y.write_text("\n".join(["id,label", *(f"{i},{i % 2}" for i in range(40))]) + "\n")
    return edges, x, y


def replace_line(path: Path, number: int, line: str) -> None:
    lines = path.read_text().splitlines()
    lines[number - 1] = line
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("file", "line", "said"),
    [
        ("edges.csv", "17,x7,1", "node x7 is not in labels.csv: list every"),
        ("edges.csv", "17,1.5,1", "node 1.5 is not in labels.csv: list every"),
        ("edges.csv", "17,,1", "the id in column 'target' is empty"),
        ("edges.csv", "17", "the id in column 'target' is empty"),
        ("edges.csv", "17,40,1", "node 40 is out of range: labels.csv numbers"),
        ("edges.csv", "17,-1,1", "node -1 is out of range"),
        ("edges.csv", "17,18,1,5", ""),
        ("edges.csv", "17,18,heavy", "column 'weight': 'heavy' is not a number"),
        ("edges.csv", "17,18,-2", "the edge between node 17 and node 18 has the weight -2"),
        ("edges.csv", "17,18,", "the edge between node 17 and node 18 has the weight nan"),
        ("x.csv", "17,1,2", "node 17 appears twice"),
        ("x.csv", "99,1,2", "node 99 is out of range"),
        ("x.csv", "28,one,2", "column 'a': 'one' is not a number"),
        ("x.csv", "28,,2", "the node has a feature that is NaN"),
        ("x.csv", "28,1e60,2", "the node has a feature over 3e38"),
    ],
)
def test_a_damaged_row_is_named(file: str, line: str, said: str, tmp_path: Path) -> None:
    refused(tmp_path, file, line, rf"{file}.*line 30.*{said}")


def test_what_is_wrong_in_no_single_row_names_the_node(tmp_path: Path) -> None:
    refused(tmp_path, "x.csv", "29,1,2", r"x.csv, line 3[01]: node 29 appears twice")
    refused(tmp_path, "x.csv", "", r"x.csv has no row for node 28")
    refused(tmp_path, "labels.csv", "28,0.5", r"labels.csv, line 30: node 28 .*has the label 0.5")


def refused(folder: Path, file: str, line: str, said: str) -> None:
    edges, x, y = write_files(folder)
    replace_line(folder / file, 30, line)
    with pytest.raises(RawlsError, match=said) as caught:
        shard_files(folder / "shards", 2, edges, x, y, split="random", memory=1)
    assert "\n" not in str(caught.value)
    assert {path.name for path in folder.iterdir()} == {"edges.csv", "x.csv", "labels.csv"}


def test_rows_that_do_not_fit_each_other_are_refused(tmp_path: Path) -> None:
    edges, _, y = write_files(tmp_path)
    np.save(tmp_path / "x.npy", np.ones((39, 2)))
    with pytest.raises(RawlsError, match=r"not in|out of range|sizes disagree"):
        shard_files(tmp_path / "shards", 2, edges, tmp_path / "x.npy", y, split="random")
    np.save(tmp_path / "y.npy", np.arange(41) % 2)
    np.save(tmp_path / "x.npy", np.ones((40, 2)))
    with pytest.raises(RawlsError, match=r"sizes disagree: x\.npy has 40 rows"):
        shard_files(tmp_path / "s", 2, edges, tmp_path / "x.npy", tmp_path / "y.npy")


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.ones(40), "must be a matrix"),
        (np.ones((40, 0)), "must be a matrix"),
        (np.full((40, 1), "a"), "must be real numbers"),
        (np.ones((40, 2)) * 1j, "must be real numbers"),
        (np.array([["a", None]] * 40, dtype=object), "must be real numbers|pickled"),
    ],
)
def test_arrays_that_are_no_features_are_refused(
    array: np.ndarray, said: str, tmp_path: Path
) -> None:
    edges, _, y = write_files(tmp_path)
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(RawlsError, match=said):
        shard_files(tmp_path / "shards", 2, edges, tmp_path / "x.npy", y, split="random")


def test_an_array_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    edges, _, y = write_files(tmp_path)
    np.save(tmp_path / "x.npy", np.ones((40, 2)))
    content = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(content[:-9])
    with pytest.raises(RawlsError, match="damaged or cut short"):
        shard_files(tmp_path / "shards", 2, edges, tmp_path / "x.npy", y, split="random")


def test_progress_reaches_the_end_of_every_stage(tmp_path: Path) -> None:
    edges, x, y = write_files(tmp_path)
    seen: dict[str, tuple[int, int]] = {}

    def note(done: int, total: int, description: str | None = None) -> None:
        seen[str(description)] = done, total

    shard_files(tmp_path / "s", 2, edges, x, y, split="random", progress=note)
    stages = ("merging the arcs", "writing the features", "hashing the graph")
    assert all(seen[stage][0] == seen[stage][1] for stage in stages)
    assert seen["reading edges.csv"][0] == 40
    assert len(Shards(tmp_path / "s")) == 2


@pytest.mark.slow
@pytest.mark.parametrize("ids", ["range", "any", "words"])
def test_a_million_rows_are_those_of_the_graph_in_memory(
    ids: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the sizes of batches and runs that large files have, but for the memory."""
    monkeypatch.undo()
    how = {"nodes": 100_000, "arcs": 1_000_000, "ids": ids, "weighted": ids == "any", "full": 1.0}
    how |= {"edges": ".csv", "labels": ".csv", "features": ".csv", "class_words": True}
    how |= {"listed": 0.9, "ring": False}
    files = Files(tmp_path, np.random.default_rng(0), reordered=True, **how)
    given_files = {"features": files.features, "labels": files.labels}
    write_shards(rg.read(files.graph, **given_files), 3, tmp_path / "whole")
    shard_files(tmp_path / "streamed", 3, files.graph, memory=40_000_000, **given_files)
    assert contents(tmp_path / "streamed") == contents(tmp_path / "whole")
