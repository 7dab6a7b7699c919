"""Columns of predictions are found by name, and scores are matched with the classes by name."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

import rawlsgcn as rg
from rawlsgcn._core.errors import RawlsError
from rawlsgcn.evaluation.node_index import NodeIndex
from rawlsgcn.evaluation.predictions import Predictions

SCORES = np.array([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [0.125, 0.125, 0.75], [0.75, 0.25, 0.0]])
WORDS = ["cat", "dog", "Owl"]


def written(path: Path, columns: dict[str, Any]) -> Path:
    frame = pd.DataFrame(columns)
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    else:
        frame.to_csv(path, index=False, sep="," if path.suffix == ".csv" else "\t")
    return path


def read(path: Path, class_names: list[str] | None = None) -> Any:
    """The scores of all rows, or their predicted classes."""
    (chunk,) = Predictions(path, NodeIndex(None, 4), class_names=class_names).chunks()
    assert chunk.nodes.tolist() == [0, 1, 2, 3]
    return chunk.values


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_y_true_is_the_label_and_no_score(tmp_path: Path, suffix: str) -> None:
    columns = {"node": range(4), "y_true": [0, 1, 2, 0], "y_pred": [2, 1, 2, 0]}
    assert read(written(tmp_path / f"p{suffix}", columns)).tolist() == [2, 1, 2, 0]


@pytest.mark.parametrize("label", ["label", "y_true", "target", "split", "confidence"])
def test_columns_beside_the_scores_are_ignored(tmp_path: Path, label: str) -> None:
    columns = {label: [5, 6, 7, 8], "p_1": SCORES[:, 1], "p_0": SCORES[:, 0], "node": range(4)}
    columns |= {"p_2": SCORES[:, 2], "y_pred": [9, 9, 9, 9]}
    np.testing.assert_array_equal(read(written(tmp_path / "p.csv", columns)), SCORES)


@pytest.mark.parametrize("form", ["p{}", "prob_{}", "{}", "class_{}", "logit {}", "net.{}", "P-{}"])
def test_numbered_columns_are_the_classes_of_those_numbers(tmp_path: Path, form: str) -> None:
    for order in permutations(range(3)):
        columns = {"node": range(4), **{form.format(c): SCORES[:, c] for c in order}}
        np.testing.assert_array_equal(read(written(tmp_path / "p.csv", columns)), SCORES)


@pytest.mark.parametrize("form", ["{}", "prob_{}", "score_{}", "Logit-{}", "p {}"])
@pytest.mark.parametrize("change", [str, str.lower, str.upper])
def test_columns_named_by_class_are_those_classes(tmp_path: Path, form: str, change: Any) -> None:
    for order in permutations(range(3)):
        columns = {form.format(change(WORDS[c])): SCORES[:, c] for c in order}
        columns |= {"node": range(4), "y_true": ["cat"] * 4}
        found = read(written(tmp_path / "p.csv", columns), WORDS)
        np.testing.assert_array_equal(found, SCORES)


def test_a_class_may_be_called_like_a_role(tmp_path: Path) -> None:
    names = ["label", "true"]
    columns = {"node": range(4), "true": [1.0] * 4, "label": [0.0] * 4}
    assert read(written(tmp_path / "p.csv", columns), names).tolist() == [[0, 1]] * 4


def test_predicted_words_are_the_classes_of_those_names(tmp_path: Path) -> None:
    columns = {"node": range(4), "y_pred": ["Owl", "cat", "dog ", "cat"]}
    for suffix in (".csv", ".parquet"):
        path = written(tmp_path / f"p{suffix}", columns)
        assert read(path, WORDS).tolist() == [2, 0, 1, 0]
    np.savez(tmp_path / "p.npz", node=np.arange(4), predicted=np.array(["Owl", "cat"] * 2))
    assert read(tmp_path / "p.npz", WORDS).tolist() == [2, 0, 2, 0]
    columns["y_pred"][1] = "cow"
    with pytest.raises(RawlsError, match=r"line 3, column 'y_pred' is 'cow'.*cat, dog, Owl"):
        read(written(tmp_path / "p.csv", columns), WORDS)


@pytest.mark.parametrize(
    ("names", "class_names", "said"),
    [
        (["node", "cat", "dog"], None, "classes of column 'cat', column 'dog' are not known"),
        (["node", "cat", "dog"], WORDS, "no score of the class 'Owl'.*p_Owl"),
        (["node", "cat", "prob_dog", "Owl"], WORDS, "several scores of the same classes"),
        (["node", "p_0", "p_1", "logit_0", "logit_1"], None, "several scores"),
        (["node", "p_0", "p0", "p_1"], None, "are of the same class"),
        (["node", "p_1", "p_2"], None, "numbered from 1"),
        (["node", "p_0", "p_2"], None, "not numbered 0 to 1"),
        (["y_true", "y_pred"], None, "no column of node ids, .* called one of id, ids, node"),
        (["node", "y_true"], None, "no predictions.*called one of pred, pred_class"),
        (["node"], None, "no predictions"),
    ],
)
def test_what_is_missing_is_said_with_the_accepted_names(
    tmp_path: Path, names: list[str], class_names: list[str] | None, said: str
) -> None:
    columns = {name: range(4) for name in names}
    with pytest.raises(RawlsError, match=said) as caught:
        read(written(tmp_path / "p.csv", columns), class_names)
    assert "p.csv" in str(caught.value)


def test_the_order_of_score_columns_does_not_change_an_audit(tmp_path: Path) -> None:
    nodes = 120
    rng = np.random.default_rng(0)
    ring = pd.DataFrame({"source": range(nodes), "target": np.roll(range(nodes), -1)})
    ring.to_csv(tmp_path / "g.csv", index=False)
    y = rng.integers(3, size=nodes)
    labels = pd.DataFrame({"node": range(nodes), "label": np.array(sorted(WORDS))[y]})
    labels.to_csv(tmp_path / "y.csv", index=False)
    logits = rng.normal(size=(nodes, 3)) + 2 * np.eye(3)[y]
    graph = rg.read(tmp_path / "g.csv", labels=tmp_path / "y.csv", need_features=False)
    assert graph.class_names == sorted(WORDS)
    expected = rg.audit(graph, logits, scores="logits", resamples=100).models[0]
    for order in permutations(range(3)):
        scores = {f"logit_{sorted(WORDS)[c]}": logits[:, c] for c in order}
        path = written(tmp_path / "p.csv", {"node": range(nodes), **scores})
        model = rg.audit(graph, path, resamples=100).models[0]
        assert model.accuracy == expected.accuracy
        assert model.loss.value == pytest.approx(expected.loss.value, rel=1e-12)


def test_class_names_may_be_an_attribute_of_the_graph(tmp_path: Path) -> None:
    ends = torch.arange(4)
    edges = torch.stack([ends, (ends + 1) % 4])
    graph = Data(edge_index=edges, y=ends % 2, num_nodes=4, class_names=["owl", "cat"])
    columns = {"node": range(4), "y_pred": ["owl", "cat", "owl", "owl"]}
    found = rg.audit(graph, written(tmp_path / "p.csv", columns), resamples=100)
    assert found.models[0].accuracy.value == 75.0
