"""Files read at once and in batches: the same shards and notes, or the same sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rawlsgcn as rg
from rawlsgcn._core.errors import RawlsError
from rawlsgcn.graphs import graph_notes
from rawlsgcn.graphs.readers import edge_lists, features, node_tables
from rawlsgcn.graphs.shards import write_shards
from rawlsgcn.graphs.shards.shard_writer import ShardWriter
from rawlsgcn.graphs.streaming.file_shards import shard_files

Files = dict[str, Any]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_lists, "ROWS", 13)
    monkeypatch.setattr(features, "CELLS", 30)
    monkeypatch.setattr(node_tables, "ROWS", 7)


def text(header: str, *rows: str) -> str:
    return "\n".join([header, *rows]) + "\n"


EDGES = [f"{i},{(i + 1) % 40}" for i in range(40)]
FEATURES = [f"{i},{i % 3},0.5" for i in range(40)]
LABELS = [f"{i},{i % 2}" for i in range(40)]
WORD_EDGES = [f"n{i},n{(i + 1) % 40}" for i in range(40)]
WORD_FEATURES = [f"n{row}" for row in FEATURES]
WORD_LABELS = [f"n{row}" for row in LABELS]
ARRAY = np.round(np.random.default_rng(0).random((42, 2)), 3)


def numbered(**changes: Any) -> Files:
    """Files of 40 nodes 0 to 39; ``g``, ``x`` and ``y`` are other texts or arrays."""
    files = {"g": text("source,target", *EDGES), "x": text("id,a,b", *FEATURES)}
    return files | {"y": text("id,label", *LABELS)} | changes


def words(**changes: Any) -> Files:
    """The same with the nodes n0 to n39."""
    files = {"g": text("src,dst", *WORD_EDGES), "x": text("id,a,b", *WORD_FEATURES)}
    return files | {"y": text("id,label", *WORD_LABELS)} | changes


def write(folder: Path, files: Files) -> list[Path]:
    paths = []
    for name, content in files.items():
        path = folder / f"{name}.csv"
        if isinstance(content, str):
            path.write_text(content)
        elif content is not None:
            path = path.with_suffix(".npy")
            np.save(path, content)
        paths.append(path)
    return paths


def in_memory(folder: Path, graph: Path, features: Path, labels: Path | None = None) -> list[str]:
    data = rg.read(graph, features=features, labels=labels, need_labels=labels is not None)
    write_shards(data, 2, folder)
    return graph_notes(data)


def in_batches(folder: Path, graph: Path, features: Path, labels: Path | None = None) -> list[str]:
    return graph_notes(shard_files(folder, 2, graph, features, labels, memory=1)[1])


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


SOME = text("id,label", *LABELS[25:], *LABELS[:5])
SOME_WORDS = text("id,label", *WORD_LABELS[10:30])
LATE_WORDS = [f"{i % 40},{(i + 1) % 40}" for i in range(150)]
GRAPHS = {
    "labels of some": numbered(y=SOME),
    "labels of some, array": numbered(y=SOME, x=ARRAY[:40]),
    "labels of some, words": words(y=SOME_WORDS),
    "labels of some, words, array": words(y=SOME_WORDS, x=ARRAY[:40]),
    "labels of some, with -1": numbered(y=text("id,label", *LABELS[:30], "30,-1")),
    "labels of some, split": numbered(
        y=text("id,label,split", "1,0,train", "9,1,train", "3,0,val", "7,1,test", "5,1,")
    ),
    "features with further nodes": numbered(x=text("id,a,b", *FEATURES, "77,1,1")),
    "a word in the features": numbered(x=text("id,a,b", *FEATURES, "w,1,1"), y=SOME),
    "a word in edges and features": numbered(
        g=text("source,target", *EDGES, "w,3"), x=text("id,a,b", *FEATURES, "w,1,1")
    ),
    "words in the edges alone": numbered(
        g=text("source,target", *EDGES, "v,w"), x=ARRAY, y=text("id,label", *LABELS[10:30])
    ),
    "labels in the order of features of words": words(y=np.arange(40) % 2),
    "names of columns as nodes": words(
        g=text("src,dst", *WORD_EDGES[:20], "u,v", *WORD_EDGES[20:]),
        x=text("id,a,b", *WORD_FEATURES, "u,1,1", "v,1,1"),
    ),
    "no header, though numbers follow": numbered(
        g=text("k,m", *LATE_WORDS, "k,m"), x=text("id,a,b", *FEATURES, "k,1,1", "m,1,1")
    ),
    "no header of features, though numbers follow": numbered(
        g=text("source,target", *EDGES, "v,3"),
        x=text("v,2001,2002", *(f"{i},1,1" for i in range(120)), "w,1,1"),
    ),
    "no header, the first class is of one node": words(
        y=text("n3,c", *(f"n{i},{'ab'[i % 2]}" for i in range(40) if i != 3))
    ),
    "no header, the first node has neither edge nor label": words(
        g=text("n1,n2", *WORD_EDGES[3:30]), x=text(*(f"n{row}" for row in FEATURES))
    ),
    "no header, a first edge that comes again late": words(
        g=text("v,w", *WORD_EDGES, "w,n1"),
        x=text("id,a,b", *WORD_FEATURES, "v,1,1", "w,1,1"),
    ),
    "empty lines above": {name: f"\n\n{file}" for name, file in numbered(y=SOME).items()},
    "columns of an index": numbered(
        g=text(",source,target", *(f"9,{row}" for row in EDGES)),
        x=text(",id,a,b", *(f"9,{row}" for row in FEATURES)),
        y=text(",id,label,more", *(f"9,{row},1" for row in LABELS[:20])),
    ),
}


@pytest.mark.parametrize("case", GRAPHS)
def test_both_give_the_same_shards_and_notes(case: str, tmp_path: Path) -> None:
    paths = write(tmp_path, GRAPHS[case])
    notes = in_memory(tmp_path / "memory", *paths)
    assert in_batches(tmp_path / "batches", *paths) == notes
    assert contents(tmp_path / "batches") == contents(tmp_path / "memory")


LOOPS = text("source,target", "3,3", "7,7")


@pytest.mark.parametrize("files", [numbered(), words(), numbered(x=ARRAY), numbered(g=LOOPS)])
def test_both_read_graphs_without_labels(files: Files, tmp_path: Path) -> None:
    graph, features, labels = write(tmp_path, files)
    notes = in_memory(tmp_path / "memory", graph, features)
    assert in_batches(tmp_path / "batches", graph, features) == notes
    assert contents(tmp_path / "batches") == contents(tmp_path / "memory")
    assert not list((tmp_path / "batches").glob("*-y.npy"))
    labels.write_text(text("id,label", *(f"{row.split(',')[0]},-1" for row in FEATURES)))
    if files["x"] is numbered()["x"]:
        in_batches(tmp_path / "absent", graph, features, labels)
        assert contents(tmp_path / "absent") == contents(tmp_path / "memory")


def test_few_labels_are_split_and_noted_in_the_same_way(tmp_path: Path) -> None:
    notes = in_batches(tmp_path / "s", *write(tmp_path, GRAPHS["labels of some"]))
    assert "20 of 40 nodes are not in the file of labels, and so unlabeled." in notes
    assert "the split 0.5,0.25,0.25 is drawn class by class: 10 nodes train" in notes[-1]


FROM_ONE = text("id,label", *LABELS[1:], "40,1")
REFUSED: dict[str, tuple[Files, str]] = {
    "semicolons": (numbered(g="source;target\n0;1\n"), "separated by ';': separate them by commas"),
    "tabs in x": (numbered(x="id\ta\n0\t1\n"), "x.csv has one column, as .* or call it .tsv"),
    "semicolons in y": (numbered(y="id;label\n0;1\n"), "y.csv has one column, as .* by ';'"),
    "one column": (numbered(g="source\n0\n"), "has one column: an edge list has source and target"),
    "one column of x": (
        numbered(x="id\n0\n"),
        "has one column: give the node id first and the",
    ),
    "one column of y": (
        numbered(y="label\n0\n1\n"),
        "y.csv has one column: give the node id",
    ),
    "a header again": (
        numbered(g=text("source,target", *EDGES[:20], "source,target", *EDGES[20:])),
        "g.csv, line 22: 'source' and 'target' are names of columns",
    ),
    "a header in the middle": (
        numbered(g=text(EDGES[0], *EDGES[1:20], "Src,Dst", *EDGES[20:])),
        "g.csv, line 21: 'src' and 'dst' are names of columns",
    ),
    "a header in the middle, array": (
        numbered(g=text(EDGES[0], *EDGES[1:], "src,dst"), x=ARRAY, y=SOME),
        "g.csv, line 41: 'src' and 'dst' are names of columns",
    ),
    "a header among words": (
        words(g=text("src,dst", *WORD_EDGES, "u,v", "src,dst")),
        "g.csv, line 43: 'src' and 'dst' are names of columns",
    ),
    "a header in y": (
        numbered(y=text("id,label", *LABELS[:9], "id,label", *LABELS[9:])),
        "y.csv, line 11.* 'label' .* the name of a column",
    ),
    "a header in x": (
        numbered(x=text("id,a,b", *FEATURES[:9], "id,a,b", *FEATURES[9:])),
        "x.csv, line 11, column 'a': 'a' is not a number",
    ),
    "a title": (numbered(g="our graph\nsource,target\n0,1\n"), "remove titles and comments above"),
    "a title of x": (numbered(x="our table\nid,a\n0,1\n"), "x.csv, line 2 has 2 cells"),
    "empty lines, then a wrong node": (
        numbered(g="\n\n" + text("source,target", *EDGES, "1,99")),
        "g.csv, line 44: node 99 is out of range: y.csv",
    ),
    "an unknown header": (
        words(g=text("who,whom", *WORD_EDGES)),
        "g.csv, line 1: 'who' and 'whom' are in no other line and in no other file: if they are",
    ),
    "an unknown header, array": (
        words(g=text("who,whom", *WORD_EDGES), x=ARRAY[:40], y=SOME_WORDS),
        "g.csv, line 1: 'who' and 'whom' are in no other line",
    ),
    "an unknown header of y": (
        words(y=text("who,what", *(f"n{i},{'ab'[i % 2]}" for i in range(40)))),
        "y.csv, line 1: node 'who' has no edge, and its class 'what' is in no other line: if "
        "these are names of columns, call them 'id' and 'label'",
    ),
    "an unknown header of some y, array": (
        words(y=text("who,what", *(f"n{i},{'ab'[i % 2]}" for i in range(20))), x=ARRAY[:40]),
        "y.csv, line 1: node 'who' has no edge",
    ),
    "an unknown header of x": (
        words(x=text("who,2001,2002", *WORD_FEATURES)),
        "x.csv, line 1: node 'who' has no edge and no label: if .* call it 'id'",
    ),
    "no rows": (numbered(g="source,target\n"), "g.csv has no rows"),
    "no rows of x": (numbered(x="id,a\n"), "x.csv has no rows"),
    "short rows": (
        numbered(g=text("source,target,weight", *EDGES)),
        "has 3 columns in its header and 2 below it",
    ),
    "short rows of x": (
        numbered(x=text("id,a,b,c", *FEATURES)),
        "has 4 columns in its header and 3 below it",
    ),
    "no file": (numbered(x=None), "x.csv does not exist"),
    "numbered from 1": (numbered(y=FROM_ONE), "g.csv, line 2: node 0 is not in y.csv: list every"),
    "numbered from 1, without an edge of 0": (
        numbered(y=FROM_ONE, g=text("source,target", *EDGES[1:-1])),
        "x.csv, line 2: node 0 is not in g.csv or y.csv",
    ),
    "a label beyond the array": (
        numbered(y=text("id,label", *LABELS[:15], "40,1"), x=ARRAY[:40]),
        "y.csv, line 17: node 40 is out of range: x.npy numbers its nodes from 0 to 39",
    ),
    "a word without edge in y": (
        words(y=text("id,label", *WORD_LABELS[10:30], "z,1"), x=ARRAY[:41]),
        "g.csv, line 2: node n0 is not in y.csv: list every node there",
    ),
    "a short array": (
        words(y=SOME_WORDS, x=ARRAY[:39]),
        "sizes disagree: g.csv has 40 node ids",
    ),
    "a word that is not in y, array": (
        words(g=text("src,dst", *WORD_EDGES, "n5,z"), x=ARRAY[:40]),
        "g.csv, line 42: node z is not in y.csv: list every node there",
    ),
    "words and arrays": (
        words(y=np.arange(40) % 2, x=ARRAY[:40]),
        "g.csv has text for ids, but the rows of y.npy have none",
    ),
    "a word in the edges": (
        numbered(g=text("source,target", *EDGES, "w,3"), y=SOME),
        "g.csv, line 42: node w is not in y.csv",
    ),
    "a word in y": (
        numbered(y=text("id,label", *LABELS, "w,1")),
        "x.csv has no row for node w: every node needs one",
    ),
    "a node without features": (
        numbered(x=text("id,a,b", *FEATURES[:-2]), y=SOME),
        "g.csv, line 6: node 5 is not in y.csv",
    ),
    "a node twice": (
        numbered(x=text("id,a,b", *FEATURES, "7,1,1"), y=SOME),
        "x.csv, line 42: node 7 appears twice",
    ),
    "a sum of weights over 3e38": (
        numbered(g=text("source,target,weight", *(f"{row},2e38" for row in [*EDGES, *EDGES]))),
        "g.csv: weights over 3e38 do not fit: divide them first",
    ),
    "a number among words": (
        numbered(y=text("id,label", "0,a", "1,3", *(f"{i},b" for i in range(2, 40)))),
        "y.csv, line 3, column 'label': the label '3' is a number among words: labels are all",
    ),
    "words among numbers": (
        numbered(
            y=text("id,label", *LABELS[:20], *(f"{i},a" for i in range(20, 23)), *LABELS[23:])
        ),
        "y.csv, line 22, column 'label': the label 'a' is a word among numbers",
    ),
    "a number among words, array": (
        numbered(x=ARRAY[:40], y=np.array(["a", "3", *["b"] * 38])),
        r"y.npy, label 1 \(counted from 0\): the label '3' is a number among words",
    ),
    "a negative weight": (
        numbered(g=text("source,target,weight", *(f"{row},1" for row in EDGES), "3,4,-2")),
        "g.csv, line 42: the edge between node 3 and node 4 has the weight -2: weights must be",
    ),
    "nan among features": (
        numbered(x=text("id,a,b", *FEATURES[:7], "7,nan,1", *FEATURES[8:])),
        "x.csv, line 9, column 'a': 'nan' is not a number",
    ),
    "a word for a missing feature": (
        words(x=text("id,a,b", *WORD_FEATURES[:7], "n7,NA,1", *WORD_FEATURES[8:])),
        "x.csv, line 9, column 'a': 'NA' is not a number: fill it in or leave that column out",
    ),
    "an underscore in a feature": (
        numbered(x=text("id,a,b", *FEATURES[:7], "7,1_0,1", *FEATURES[8:])),
        "x.csv, line 9, column 'a': '1_0' is not a number",
    ),
    "too few labels": (numbered(y="id,label\n0,0\n1,1\n"), "y.csv: there are 2 labeled nodes in 2"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_both_refuse_with_the_same_sentence(case: str, tmp_path: Path) -> None:
    files, said = REFUSED[case]
    paths = write(tmp_path, files)
    with pytest.raises(RawlsError, match=said) as in_memory_error:
        in_memory(tmp_path / "memory", *paths)
    with pytest.raises(RawlsError) as in_batches_error:
        in_batches(tmp_path / "batches", *paths)
    assert str(in_batches_error.value) == str(in_memory_error.value)
    assert "\n" not in str(in_batches_error.value)
    assert not [path for path in tmp_path.iterdir() if path.suffix not in (".csv", ".npy")]


def test_words_found_in_the_edges_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first attempt takes ids for numbers: it must not go on from the arcs between words."""

    def killed(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    paths = write(tmp_path, GRAPHS["words in the edges alone"])
    in_memory(tmp_path / "memory", *paths)
    with monkeypatch.context() as patch:
        patch.setattr(ShardWriter, "finish", killed)
        with pytest.raises(KeyboardInterrupt):
            in_batches(tmp_path / "batches", *paths)
    in_batches(tmp_path / "batches", *paths)
    assert contents(tmp_path / "batches") == contents(tmp_path / "memory")
