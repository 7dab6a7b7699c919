"""Graphs of one's own through the commands: names of classes, no features, splits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import rawlsgcn as rg
from rawlsgcn._core.errors import RawlsError
from rawlsgcn.cli import app
from rawlsgcn.evaluation.prediction_writing import write_predictions

NAMES = ["Dog fish", "cat", "owl"]


def call(*words: object) -> Result:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A graph of 90 nodes in three blocks, without features; the labels are words, shuffled."""
    folder = tmp_path_factory.mktemp("own")
    rng = np.random.default_rng(0)
    label = np.arange(90) % 3
    pairs = rng.integers(0, 90, (900, 2))
    pairs = pairs[(label[pairs[:, 0]] == label[pairs[:, 1]]) | (rng.random(900) < 0.1)]
    (folder / "edges.txt").write_text("".join(f"n{a} n{b}\n" for a, b in pairs if a != b))
    rows = "".join(f"n{node},{NAMES[label[node]]}\n" for node in rng.permutation(90))
    (folder / "labels.csv").write_text(f"id,label\n{rows}")
    return {"--graph": folder / "edges.txt", "--labels": folder / "labels.csv"}


@pytest.fixture(scope="module")
def trained(files: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained") / "model"
    graph = rg.read(files["--graph"], labels=files["--labels"], split="0.6,0.2,0.2")
    result = rg.fit(graph, "gcn", seeds=1, epochs=60, lr=0.05, check_weight_decay=False)
    result.save(out)
    result.to_predictions(out / "predictions.csv")
    return out


def test_train_says_which_split_and_features_are_used(files: dict[str, Path]) -> None:
    words = [word for pair in files.items() for word in pair]
    said = call("train", *words, "--seeds", 1, "--epochs", 2, "--split", "0.6,0.2,0.2").output
    said = " ".join(said.split())
    assert "the split 0.6,0.2,0.2 is drawn class by class: 54 nodes train" in said
    assert "its structure alone is used" in said


def test_words_are_in_predictions_and_models(trained: Path) -> None:
    table = pd.read_csv(trained / "predictions.csv")
    assert list(table.columns) == ["node", "predicted", *(f"p_{n}" for n in NAMES), "split"]
    assert set(table["predicted"]) == set(NAMES)
    assert table["split"].value_counts().to_dict() == {"train": 54, "val": 18, "test": 18}
    assert rg.load_model(trained).class_names == NAMES


def test_predict_knows_names_and_split_though_the_nodes_are_in_another_order(
    trained: Path, files: dict[str, Path], tmp_path: Path
) -> None:
    call("predict", "--model", trained, "--graph", files["--graph"], "--out", tmp_path / "p.csv")
    first, again = (
        pd.read_csv(path).set_index("node").sort_index()
        for path in (trained / "predictions.csv", tmp_path / "p.csv")
    )
    assert list(pd.read_csv(tmp_path / "p.csv")["node"]) != sorted(first.index)
    assert (first["split"] == again["split"]).all()
    assert (first["predicted"] == again["predicted"]).all()
    assert np.allclose(first.filter(like="p_"), again.filter(like="p_"), atol=1e-6)


def test_a_model_of_a_structure_refuses_another_graph(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("n0 n1\nn1 n2\n")
    words = ["predict", "--model", trained, "--graph", tmp_path / "other.txt"]
    words += ["--out", tmp_path / "p.csv"]
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 2
    assert "can only be used on that graph" in result.stderr


@pytest.mark.parametrize("suffix", [".csv", ".npz", ".parquet"])
def test_audit_names_classes_and_does_not_judge_training_nodes(
    trained: Path, files: dict[str, Path], tmp_path: Path, suffix: str
) -> None:
    result = rg.load_model(trained)
    graph = rg.read(files["--graph"], labels=files["--labels"])
    path = tmp_path / f"p{suffix}"
    scores, split = result.predict(graph), result.split(graph)
    write_predictions(scores, graph.node_ids, path, class_names=NAMES, split=split)
    options = ["--graph", files["--graph"], "--labels", files["--labels"], "--predictions", path]

    def audited(*more: str) -> dict[str, Any]:
        words = ["audit", *options, "--resamples", 100, "--json", "-", *more]
        return dict(json.loads(call(*words).stdout))

    found = audited("--out", str(tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text()
    assert '["Dog fish","cat","owl"]' in page
    assert "<td>Dog fish</td>" in page
    assert found["how"]["nodes"] == 18
    assert found["how"]["evaluated"] == "the test nodes"
    assert found["training_nodes_excluded"] is True
    assert any("54 nodes were trained on and 18 validated on" in note for note in found["notes"])
    assert found["nodes"]["classes"] == NAMES
    every = audited("--evaluate", "labeled")
    assert every["how"]["nodes"] == 90
    assert every["training_nodes_excluded"] is False
    assert audited("--evaluate", "all")["how"]["nodes"] == 18


@pytest.mark.parametrize("word", ["holdout", "2"])
def test_a_split_column_of_other_words_is_refused(
    files: dict[str, Path], tmp_path: Path, word: str
) -> None:
    """Ignored as a whole, the nodes that the model was trained on would be judged."""
    graph = rg.read(files["--graph"], labels=files["--labels"])
    words = [NAMES[label] for label in graph.y.tolist()]
    frame = pd.DataFrame({"node": graph.node_ids, "predicted": words, "split": "training"})
    frame.loc[60:, "split"] = "dev"
    frame.loc[80:, "split"] = "test"
    frame.to_csv(tmp_path / "p.csv", index=False)
    assert rg.audit(graph, tmp_path / "p.csv", resamples=100).how.nodes == 10
    frame.loc[80:, "split"] = word
    frame.to_csv(tmp_path / "p.csv", index=False)
    for each in (tmp_path / "p.csv", frame):
        with pytest.raises(RawlsError, match=f"column 'split': '{word}' is not train, val or test"):
            rg.audit(graph, each, resamples=100)


def test_samples_and_shards_need_features(files: dict[str, Path], tmp_path: Path) -> None:
    words = [str(word) for pair in files.items() for word in pair]
    for command in (
        ["train", "--num-neighbors", "5,5", "--out", str(tmp_path / "m")],
        ["shard", "--count", "2", "--out", str(tmp_path / "s")],
    ):
        result = CliRunner().invoke(app, [*command, *words])
        assert result.exit_code == 2
        assert "needs node features, and this graph has none: give --features" in result.stderr
