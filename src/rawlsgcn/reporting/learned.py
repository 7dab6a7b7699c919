"""Which results have learned: no headline, comparison or best figure is built on the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..evaluation.learning import Learning
    from ..result import Result


def learnings(result: Result) -> list[Learning]:
    """Every run on the training nodes, in the order of the seeds."""
    from ..evaluation.learning import Learning

    nodes = result.graph.train_mask & (result.graph.y >= 0)
    labels = result.graph.y[nodes]
    return [Learning.of(logits[nodes].argmax(-1), labels) for logits in result.logits]


def not_learned(result: Result) -> Learning | None:
    """The run of median training accuracy where that has not learned; None where it has.

    So a result has learned where at least half of its runs have.
    """
    runs = sorted(learnings(result), key=lambda run: run.right)
    typical = runs[len(runs) // 2]
    return None if typical.learned else typical
