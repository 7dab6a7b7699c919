"""Which nodes an audit evaluates: by masks, a column ``split`` and predictions; notes on others."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..._core.errors import RawlsError, unknown_name
from ...evaluation.prediction_formats import LabeledNodes
from ...evaluation.predictions import Predictions
from ...graphs.notes import GraphFacts
from ...graphs.split_choice import has_own_split
from ...graphs.splits import EVALUATE, MASKS

if TYPE_CHECKING:
    from torch_geometric.data import Data

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
EVALUATE_AUDIT = (*EVALUATE, "labeled")
"""The values of ``evaluate=`` and of ``audit --evaluate``."""
LABELED = "all labeled nodes with a prediction"
"""Which nodes are evaluated where there is no split, in words."""


def without_made_split(data: Data, *, noted: bool = True) -> Data:
    """Remove masks that the validation made: the predictions come from elsewhere."""
    if has_own_split(data) or not all(key in data for key in MASKS):
        return data
    data = copy.copy(data)
    for key in MASKS:
        del data[key]
    facts = GraphFacts.of(data)
    facts.split_made, facts.split_drawn, facts.split_removed = "", "", noted
    data.facts = facts.pairs()
    return data


def marked_split(sources: Sequence[Predictions]) -> Ints | None:
    """Which nodes the files mark as train (0), val (1) or test (2); -1 for others.

    A node that several files mark differently is what comes first: one model was trained on it.
    """
    marked = [codes for source in sources if (codes := source.split()) is not None]
    if not marked:
        return None
    first: Ints = np.minimum.reduce([np.where(codes < 0, 3, codes) for codes in marked])
    return np.where(first == 3, -1, first)


def labeled_nodes(
    data: Data, evaluate: str | None, marked: Ints | None
) -> tuple[LabeledNodes, str]:
    """The labels and which nodes may be evaluated, and in words which these are."""
    y, ids = data.y.numpy(), data.get("node_ids")
    if evaluate not in (None, *EVALUATE_AUDIT):
        raise unknown_name("choice of nodes", evaluate, EVALUATE_AUDIT)
    if all(data.get(key) is not None for key in MASKS):
        train, validation, test = (data[key].numpy() for key in MASKS)
    elif marked is not None:
        train, validation, test = (marked == code for code in range(3))
    elif evaluate == "test":
        raise RawlsError("the graph has no masks, so no test nodes: omit --evaluate")
    else:
        evaluate, validation = "labeled", np.zeros(len(y), bool)
    if evaluate == "labeled":
        return LabeledNodes(y, y >= 0, validation, ids), LABELED
    eligible, words = test, "the test nodes"
    if evaluate == "all" or not test.any():
        eligible, words = ~(train | validation), "all nodes outside training and validation"
    if marked is not None:
        eligible = eligible & (marked != 0) & (marked != 1)
    return LabeledNodes(y, eligible & (y >= 0), validation, ids), words


def split_notes(marked: Ints | None, nodes: LabeledNodes, evaluate: str | None) -> list[str]:
    """How many nodes are not evaluated because a file marks them, or are although it does."""
    if marked is None:
        return []
    train, val = (int(((marked == code) & (nodes.y >= 0)).sum()) for code in range(2))
    if evaluate == "labeled":
        return [
            f"{train + val:,} nodes that the predictions mark as train or val are judged too, as "
            "evaluate is 'labeled': accuracies may be too high."
        ]
    return [
        f"the predictions say in their column 'split' that {train:,} nodes were trained on and "
        f"{val:,} validated on: these are not judged (--evaluate labeled judges them too)."
    ]


def evaluated_nodes(
    predicted: Bools, nodes: LabeledNodes, evaluated: str, others: bool, models: int
) -> tuple[Ints, list[str]]:
    """The evaluated nodes, which are eligible and predicted by every model; and notes on the rest.

    ``others`` says whether ``evaluate="all"`` would find some.
    """
    notes = []
    chosen = np.flatnonzero(predicted & nodes.eligible)
    unlabeled = int((predicted & (nodes.y < 0)).sum())
    if not len(chosen):
        if unlabeled and unlabeled == int(predicted.sum()):
            raise RawlsError("none of the predicted nodes has a label: label some of them")
        wider = "all" if others else "labeled"
        raise RawlsError(
            f"none of the predicted nodes is among {evaluated}: predict those, or use "
            f"--evaluate {wider} (evaluate='{wider}')"
        )
    of = int(nodes.eligible.sum())
    if missing := of - len(chosen):
        why = "are not predicted by every model" if models > 1 else "have no prediction"
        whose = "labeled nodes" if evaluated == LABELED else evaluated.split(maxsplit=1)[1]
        notes.append(f"{missing:,} of the {of:,} {whose} {why} and are ignored.")
    if unlabeled:
        notes.append(f"{unlabeled:,} predicted nodes have no label and are ignored.")
    return chosen, notes
