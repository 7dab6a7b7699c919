"""The next steps follow from the audit, and their commands name the audited graph."""

from __future__ import annotations

import numpy as np
import pytest

from rawlsgcn.experiments.comparison import Comparison
from rawlsgcn.reporting.next_steps import next_steps

TYPED = {
    "graph": "my edges.csv",
    "features": "features.csv",
    "labels": "labels.csv",
    "split": "0.6,0.2,0.2",
}


def test_the_next_steps_follow_the_findings(make_audit, three_models, graph_of):
    steps = next_steps(three_models)
    codes = [step.code for step in steps]
    assert "rawlsgcn compare --dataset invented --out out" in codes
    assert any("RawlsGCN-Graph serves low-degree nodes best" in step.words for step in steps)
    of_files = make_audit(graph_options={"graph": "my edges.csv", "labels": "labels.csv"})
    line = "rawlsgcn compare --graph 'my edges.csv' --labels labels.csv --out out"
    step = next(step for step in next_steps(of_files) if step.code == line)
    assert "Without --features FILE" in step.words
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


def test_commands_repeat_the_features_and_the_split_that_were_typed(three):
    audit = Comparison.of(three).audit(resamples=100, graph_options=TYPED | {"evaluate": "all"})
    codes = [step.code or "" for step in next_steps(audit)]
    graph = "--graph 'my edges.csv' --features features.csv --labels labels.csv"
    assert f"rawlsgcn tune {graph} --split 0.6,0.2,0.2 --method rawlsgcn-graph --out model" in codes
    assert f"rawlsgcn auto {graph} --split 0.6,0.2,0.2 --evaluate all --out best" in codes


def test_a_graph_made_in_python_gets_lines_of_python(make_audit):
    steps = {step.code: step.language for step in next_steps(make_audit())}
    assert steps["best = rg.auto(graph)"] == "python"
    assert steps["results = rg.compare(graph)"] == "python"
    assert not any("FILE" in (code or "") for code in steps)


def _more(audit) -> str:
    return next(step.code for step in next_steps(audit) if step.code and "report.html" in step.code)


def test_evaluating_more_keeps_the_column_and_uses_predictions_that_are_there(make_audit, graph_of):
    graph = graph_of()
    even = np.array([f"v{node % 40}" for node in range(600)])
    how = {"graph_options": {"graph": "g.npz", "by": "groups.csv", "bins": "quantile:3"}}
    how |= {"command": "rawlsgcn audit --graph g.npz", "column": ("group", even)}
    # The test nodes were evaluated, and the same predictions also cover others.
    graph.test_mask[graph.test_mask.nonzero().view(-1)[100:]] = False
    line = _more(make_audit({"GCN": (3.0, 0.0)}, graph=graph, **how))
    assert line.startswith("rawlsgcn audit --graph g.npz --by groups.csv --bins quantile:3 ")
    assert line.endswith("--evaluate all --out report.html")
    # There are no more predictions: a further file is wanted.
    line = _more(make_audit({"GCN": (3.0, 0.0)}, **how))
    assert "--by groups.csv" in line
    assert "--predictions FILE" in line


@pytest.mark.parametrize("command", ["train", "compare", "auto"])
def test_a_command_that_trained_is_repeated_with_more_nodes(make, graph_of, command):
    graph = graph_of()
    graph.test_mask[graph.test_mask.nonzero().view(-1)[30:]] = False
    typed = f"rawlsgcn {command} --graph g.npz --out out"
    audit = make(base=3.0, by_degree=0, graph=graph).audit(
        resamples=100, command=typed, graph_options={"graph": "g.npz"}
    )
    assert f"{typed} --evaluate all" in [step.code for step in next_steps(audit)]


def test_every_command_names_options_that_it_has():
    from typer.main import get_command

    from rawlsgcn.cli import app
    from rawlsgcn.reporting.next_steps import _OPTIONS

    commands = get_command(app).commands
    for name, options in _OPTIONS.items():
        known = {word for each in commands[name.split()[0]].params for word in each.opts}
        assert {f"--{option}" for option in options} <= known, name
