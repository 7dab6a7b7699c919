"""The formats of predictions (probabilities, logits or classes) and their checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._core.errors import RawlsError
from .predictions import PredictionChunk, Predictions

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
FORMATS = ("auto", "probabilities", "logits", "classes")
SUM_WITHIN = 0.01
"""Probabilities are rounded in files; their sum may be off by this much."""
FOUND_LOGITS = "they do not lie between 0 and 1 or do not sum to one"
"""Why scores are taken for logits where nobody says that they are."""
LARGEST_LOGIT = 1e12
"""Sums of squares of losses of this size still fit the single precision of the resampling."""
_IF_LOGITS = "if they are logits, use --scores logits (scores='logits')"


@dataclass(frozen=True)
class LabeledNodes:
    """The labels of a graph's nodes, and which of them are evaluated; arrays are (nodes,)."""

    y: Ints  #: the labels; -1 for a node without one
    eligible: Bools  #: which nodes may be evaluated
    validation: Bools  #: which nodes the temperature is found on, if any
    ids: Any = None  #: the user's node ids, if the graph has them

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


@dataclass(frozen=True)
class CheckedChunk:
    """Some rows of ``predictions``, whose checks name the row and the node."""

    predictions: Predictions
    nodes: LabeledNodes
    chunk: PredictionChunk

    def refuse(self, bad: Bools, say: Callable[[int], str]) -> None:
        """Raise an error for the first bad row, if there is one."""
        if bad.any():
            row = int(bad.argmax())
            where = self.predictions.row(self.chunk.first + row)
            who = self.nodes.who(int(self.chunk.nodes[row]))
            raise RawlsError(f"{where}: {who} {say(row)}")

    def first_of_each(self, seen_at: Ints) -> None:
        """Refuse a node that appears twice; ``seen_at`` has the row of each node until now."""
        at, first = self.chunk.nodes, self.chunk.first
        again = pd.Series(at).duplicated().to_numpy() | (seen_at[at] >= 0)

        def earlier(row: int) -> str:
            seen = int(seen_at[at[row]])
            seen = first + int((at == at[row]).argmax()) if seen < 0 else seen
            where = self.predictions.row(seen)
            return f"appears twice (first: {where}); keep one prediction for each node"

        self.refuse(again, earlier)
        seen_at[at] = first + np.arange(len(at))

    def classes(self) -> Ints:
        """The predicted classes, each one that the labels have."""
        values = self.chunk.values
        if values.ndim == 2:
            return np.asarray(values.argmax(1), dtype=np.int64)
        nodes = self.nodes
        self.refuse(
            (values != np.floor(values)) | (values < 0) | (values >= nodes.classes),
            lambda row: (
                f"is predicted as class {values[row]:g}, which the labels do not have: they are "
                f"{nodes.present[0]} to {nodes.classes - 1}"
            ),
        )
        return np.asarray(values, dtype=np.int64)

    def require_every_class(self) -> None:
        """Refuse scores of more or fewer classes than the labels have."""
        columns, nodes, source = self.chunk.values.shape[1], self.nodes, self.predictions.source
        if columns > nodes.classes:
            raise RawlsError(
                f"{source} has scores of {columns} classes, but the labels have {nodes.classes} "
                f"only (0 to {nodes.classes - 1}): is it the right graph, or are labels missing?"
            )
        if columns == nodes.classes:
            return
        first = int(np.flatnonzero(nodes.y >= columns)[0])
        cure = f"give a score of every class, 0 to {nodes.classes - 1}"
        present = nodes.present
        if len(present) < nodes.classes:
            some = ", ".join(map(str, present[:5])) + (", …" if len(present) > 5 else "")
            cure = (
                f"the labels are {some}, so number them 0 to {len(present) - 1} in the order of "
                f"the columns, or give {nodes.classes} columns, of classes without nodes too"
            )
        raise RawlsError(
            f"{source} has scores of {columns} classes only, but {nodes.who(first)} is of class "
            f"{nodes.y[first]}: {cure}"
        )

    @np.errstate(invalid="ignore", over="ignore", divide="ignore")
    def log_probabilities(self, format: str) -> Floats:
        """log p of every class: of probabilities over their sum, or of the softmax of logits."""
        scores = self.chunk.values
        if format == "logits":
            self.refuse(
                np.asarray(~(np.abs(scores) <= LARGEST_LOGIT).all(1)),
                lambda row: (
                    f"has a logit of size {np.abs(scores[row]).max():.1e}: the training diverged, "
                    "or give probabilities"
                ),
            )
            return scores - log_sum_exp(scores)
        total = scores.sum(1)
        bad = (scores < 0).any(1) | ~(np.abs(total - 1) <= SUM_WITHIN)

        def flaw(row: int) -> str:
            what = "are not all positive" if (scores[row] < 0).any() else f"sum to {total[row]:.6g}"
            more = f" (as have {bad.sum() - 1:,} more nodes near it)" if bad.sum() > 1 else ""
            return (
                f"has probabilities that {what}{more}: they must sum to 1 (divide percentages by "
                f"100); {_IF_LOGITS}"
            )

        self.refuse(bad, flaw)
        logs: Floats = np.log(scores / total[:, None])
        return logs

    @np.errstate(invalid="ignore", over="ignore")
    def detect_format(self) -> tuple[str, str]:
        """Probabilities or logits: by the columns' names if they say it, else by the first rows.

        Probabilities where most rows lie between 0 and 1 and sum to one; logits where any score is
        outside of that; anything else, and rows with the sum of percentages, raises an error.
        """
        scores = self.chunk.values
        if self.predictions.named_format is not None:
            return self.predictions.named_format, "the columns are called so"
        inside, total = ((scores >= 0) & (scores <= 1)).all(1), scores.sum(1)
        sums = np.abs(total - 1) <= SUM_WITHIN
        if (inside & sums).mean() > 0.5:
            return "probabilities", "they lie between 0 and 1 and sum to one"
        if inside.all():
            self.refuse(
                ~sums,
                lambda row: (
                    f"has scores between 0 and 1 that sum to {total[row]:.6g}: if they are "
                    f"probabilities, make them sum to one; {_IF_LOGITS}"
                ),
            )
        shared = ((scores > 0).sum(1) > 1).any()
        equal = len(scores) > 1 and np.ptp(total) <= SUM_WITHIN * total[0]
        if equal and shared and (scores >= 0).all():
            raise RawlsError(
                f"{self.predictions.source}: no score is negative and every row sums to "
                f"{total[0]:.6g}: if they are percentages or votes, divide them by "
                f"{total[0]:.6g}; {_IF_LOGITS}"
            )
        return "logits", FOUND_LOGITS


def log_sum_exp(z: Floats) -> Floats:
    """log Σ exp of every row, as a column."""
    top = z.max(1, keepdims=True)
    total: Floats = top + np.log(np.exp(z - top).sum(1, keepdims=True))
    return total
