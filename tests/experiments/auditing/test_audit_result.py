"""An audit as an object: its table and its models by name."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import rawlsgcn as rg
from rawlsgcn._core.errors import RawlsError
from rawlsgcn.experiments.auditing.audit_result import Audit


@pytest.fixture(scope="module")
def audit() -> Audit:
    graph = rg.synthetic()
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(graph.num_nodes, int(graph.y.max()) + 1))
    logits[np.arange(graph.num_nodes), graph.y] += 2
    return rg.audit(graph, {"scores": logits, "classes": logits.argmax(1)}, resamples=100)


def test_the_frame_has_a_row_for_each_model_and_group(audit: Audit) -> None:
    frame = audit.to_frame()
    assert isinstance(frame, pd.DataFrame)
    for name, rows in frame.groupby("model", sort=False):
        model = audit.model(str(name))
        assert rows["group"].tolist() == [group.label for group in model.groups]
        assert rows["nodes"].sum() == audit.how.nodes
        assert rows["loss_high"].tolist() == [group.loss.high for group in model.groups]
        gaps = [group.accuracy_against_rest.low for group in model.groups]
        assert rows["accuracy_against_rest_low"].tolist() == gaps
    known = frame.groupby("model")["calibration_error"].count()
    assert known["scores"] == len(audit.models[0].groups)
    assert known["classes"] == 0


def test_a_model_that_is_not_there_is_an_error(audit: Audit) -> None:
    assert audit.model("classes") is audit.models[1]
    with pytest.raises(RawlsError, match=r"unknown model 'mine'.*scores, classes"):
        audit.model("mine")
