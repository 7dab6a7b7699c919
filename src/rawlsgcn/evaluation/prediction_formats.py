"""The formats of predictions (probabilities, logits or classes) and their checks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._core.errors import RawlsError
from .predictions import PredictionChunk, Predictions

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
FORMATS = ("auto", "probabilities", "logits", "classes")
SUM_WITHIN = 0.01
"""Probabilities are rounded in files; their sum may be off by this much."""
FOUND_LOGITS = "they do not lie between 0 and 1 or do not sum to one"
"""Why scores are taken for logits where nobody says that they are."""
LARGEST_LOSS = -math.log(float(np.finfo(np.float32).tiny))
"""What a probability of exactly 0 counts as: about 87.3, the most that single precision tells."""
LARGEST_LOGIT = 1e12
"""Sums of squares of losses of this size still fit the single precision of the resampling."""


@dataclass(frozen=True)
class LabeledNodes:
    """The labels of a graph's nodes, and which of them are evaluated.

    Attributes:
        y: The labels, (nodes,); -1 for a node without one.
        eligible: Which nodes may be evaluated, (nodes,), bool.
        validation: Which nodes the temperature is found on, if any, (nodes,), bool.
        ids: The user's node ids, if the graph has them.
    """

    y: Ints
    eligible: npt.NDArray[np.bool_]
    validation: npt.NDArray[np.bool_]
    ids: Any = None

    @property
    def classes(self) -> int:
        """The number of classes."""
        return int(self.y.max()) + 1

    @property
    def present(self) -> Ints:
        """The classes that some node has."""
        return np.unique(self.y[self.y >= 0])

    def who(self, node: int) -> str:
        """A node's name in error messages."""
        return f"node {node if self.ids is None else self.ids[node]}"


def capped(loss: Floats) -> Floats:
    """Losses of which an infinite one counts as ``LARGEST_LOSS``."""
    return np.where(np.isinf(loss), LARGEST_LOSS, loss)


def log_sum_exp(z: Floats) -> Floats:
    """log Σ exp of every row, as a column."""
    top = z.max(1, keepdims=True)
    total: Floats = top + np.log(np.exp(z - top).sum(1, keepdims=True))
    return total


def log_probabilities(
    predictions: Predictions, chunk: PredictionChunk, format: str, nodes: LabeledNodes
) -> Floats:
    """log p of every class: of probabilities over their sum, or of the softmax of logits."""
    scores = chunk.values
    if format == "logits":
        bad = ~(np.abs(scores) <= LARGEST_LOGIT).all(1)
        if bad.any():
            row = int(bad.argmax())
            size = float(np.abs(scores[row]).max())
            what = "that is infinite" if math.isinf(size) else f"of size {size:.1e}"
            raise RawlsError(
                f"{predictions.row(chunk.first + row)}: {nodes.who(int(chunk.nodes[row]))} has a "
                f"logit {what}: the training diverged, or give probabilities"
            )
        return scores - log_sum_exp(scores)
    with np.errstate(invalid="ignore", over="ignore"):
        total = scores.sum(1)
        bad = (scores < 0).any(1) | ~(np.abs(total - 1) <= SUM_WITHIN)
    if bad.any():
        row = int(bad.argmax())
        what = f"sum to {total[row]:.6g}" if (scores[row] >= 0).all() else "are not all positive"
        more = f" (and those of {int(bad.sum()) - 1:,} more near it)" if bad.sum() > 1 else ""
        raise RawlsError(
            f"{predictions.row(chunk.first + row)}: the probabilities of "
            f"{nodes.who(int(chunk.nodes[row]))} {what}{more}: they must sum to 1 "
            "(divide percentages by 100); use --scores logits (scores='logits') if they are logits"
        )
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(scores / total[:, None])
    return logs


def detect_format(predictions: Predictions, chunk: PredictionChunk) -> tuple[str, str]:
    """Probabilities or logits: by the columns' names if they say it, else by the first rows.

    Probabilities where most rows lie between 0 and 1 and sum to one; logits where any score is
    outside of that; anything else, and rows with the sum of percentages, raises an error.
    """
    scores = chunk.values
    if predictions.named_format is not None:
        return predictions.named_format, "the columns are called so"
    inside = ((scores >= 0) & (scores <= 1)).all(1)
    with np.errstate(invalid="ignore", over="ignore"):
        sums = np.abs(scores.sum(1) - 1) <= SUM_WITHIN
    if (inside & sums).mean() > 0.5:
        return "probabilities", "they lie between 0 and 1 and sum to one"
    if not inside.all():
        shared = ((scores > 0).sum(1) > 1).any()
        with np.errstate(invalid="ignore", over="ignore"):
            total = scores.sum(1)
            equal = len(scores) > 1 and np.ptp(total) <= SUM_WITHIN * total[0]
        if equal and shared and (scores >= 0).all():
            raise RawlsError(
                f"{predictions.source}: no score is negative and every row sums to "
                f"{total[0]:.6g}: if they are percentages or votes, divide them by "
                f"{total[0]:.6g}; if they are logits, use --scores logits (scores='logits')"
            )
        return "logits", FOUND_LOGITS
    row = int((~sums).argmax())
    raise RawlsError(
        f"{predictions.row(chunk.first + row)}: the scores lie between 0 and 1 but sum to "
        f"{scores[row].sum():.6g}: if they are probabilities, make them sum to one; if they "
        "are logits, use --scores logits (scores='logits')"
    )


def check_class_count(
    predictions: Predictions, chunk: PredictionChunk, nodes: LabeledNodes
) -> None:
    """Raise an error for scores of more or fewer classes than the labels have."""
    columns = chunk.values.shape[1]
    if columns == nodes.classes:
        return
    if columns > nodes.classes:
        raise RawlsError(
            f"{predictions.source} has scores of {columns} classes, but the labels have "
            f"{nodes.classes} only (0 to {nodes.classes - 1}): is it the right graph, or are "
            "labels missing?"
        )
    first = int(np.flatnonzero(nodes.y >= columns)[0])
    cure = f"give a score of every class, 0 to {nodes.classes - 1}"
    present = nodes.present
    if len(present) < nodes.classes:
        some = ", ".join(map(str, present[:5])) + (", …" if len(present) > 5 else "")
        cure = (
            f"the labels are {some}, so number them 0 to {len(present) - 1} in the order of the "
            f"columns, or give {nodes.classes} columns, of classes without nodes too"
        )
    raise RawlsError(
        f"{predictions.source} has scores of {columns} classes only, but {nodes.who(first)} is of "
        f"class {nodes.y[first]}: {cure}"
    )


def predicted_classes(
    predictions: Predictions, chunk: PredictionChunk, nodes: LabeledNodes
) -> Ints:
    """The predicted classes, each one that the labels have."""
    values = chunk.values
    if values.ndim == 2:
        return np.asarray(values.argmax(1), dtype=np.int64)
    bad = (values != np.floor(values)) | (values < 0) | (values >= nodes.classes)
    if bad.any():
        row = int(bad.argmax())
        raise RawlsError(
            f"{predictions.row(chunk.first + row)}: {nodes.who(int(chunk.nodes[row]))} is "
            f"predicted as class {values[row]:g}, which the labels do not have: they are "
            f"{nodes.present[0]} to {nodes.classes - 1}"
        )
    return np.asarray(values, dtype=np.int64)


def check_duplicates(
    predictions: Predictions, chunk: PredictionChunk, seen_at: Ints, nodes: LabeledNodes
) -> None:
    """Raise an error for a node that appears twice, in this chunk or in an earlier one."""
    again = pd.Series(chunk.nodes).duplicated().to_numpy() | (seen_at[chunk.nodes] >= 0)
    if again.any():
        row = int(again.argmax())
        node = int(chunk.nodes[row])
        earlier = int(seen_at[node])
        if earlier < 0:
            earlier = chunk.first + int((chunk.nodes == node).argmax())
        raise RawlsError(
            f"{predictions.row(chunk.first + row)}: {nodes.who(node)} appears twice "
            f"(first: {predictions.row(earlier)}); keep one prediction for each node"
        )
    seen_at[chunk.nodes] = chunk.first + np.arange(len(chunk.nodes))
