"""The next steps follow from the audit, and their commands name the audited graph."""

from __future__ import annotations

import numpy as np

from rawlsgcn.experiments.comparison import Comparison
from rawlsgcn.reporting.next_steps import next_steps


def test_the_next_steps_follow_the_findings(make_audit, three_models, graph_of):
    steps = next_steps(three_models)
    codes = [step.code for step in steps]
    assert "rawlsgcn compare --dataset invented --out out" in codes
    assert any("RawlsGCN-Graph serves low-degree nodes best" in step.words for step in steps)
    of_files = make_audit(files={"graph": "my edges.csv", "labels": "labels.csv"})
    line = "rawlsgcn compare --graph 'my edges.csv' --labels labels.csv --features FILE --out out"
    assert line in [step.code for step in next_steps(of_files)]
    even = make_audit({"even": (3.0, 0.0)})
    assert not any((step.code or "").startswith("rawlsgcn compare") for step in next_steps(even))
    assert any("nothing to improve" in step.words for step in next_steps(even))
    other = make_audit(column=("group", np.array(["a", "b", "c"] * 200)))
    assert next_steps(other)[0].words.startswith("Nothing here shows")
    degree = np.bincount(graph_of().edge_index[0].numpy(), minlength=600)
    size = make_audit(column=("size", np.where(degree < 5, "small", "large")))
    assert "by degree" in next_steps(size)[0].words


def test_trained_methods_are_not_to_be_trained_again(three):
    codes = [step.code or "" for step in next_steps(Comparison.of(three).audit(resamples=100))]
    assert not any(code.startswith("rawlsgcn compare") for code in codes)
    assert "rawlsgcn tune --dataset amazon-photo --method rawlsgcn-graph --out model" in codes
    alone = [step.code or "" for step in next_steps(three[0].audit(resamples=100))]
    assert "rawlsgcn compare --dataset amazon-photo --out out" in alone
