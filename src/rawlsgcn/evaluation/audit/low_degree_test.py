"""Are low-degree nodes misclassified more often than the others? Error rates and an exact test."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ..degree_bias import SMALLEST_GROUP
from .findings import Estimate, LowAgainstRest
from .intervals import difference, ratio, wilson

Floats = npt.NDArray[np.float64]


def low_against_rest(
    low: npt.NDArray[np.bool_], low_degree: float, right: Floats
) -> LowAgainstRest | None:
    """Compare the quarter of lowest degree with all other nodes: a comparison fixed in advance.

    Args:
        low: Which of the evaluated nodes are low-degree nodes, (nodes,).
        low_degree: The degree up to which they are.
        right: Whether each node is classified correctly, 0 or 1, (nodes,).

    Returns:
        The error rates and Fisher's exact test; None where there are no others or either side is
        too small.
    """
    from scipy.stats import fisher_exact

    nodes = np.array([low.sum(), (~low).sum()])
    if nodes.min() < SMALLEST_GROUP:
        return None
    wrong = np.array([(1 - right[low]).sum(), (1 - right[~low]).sum()])
    ends = wilson(wrong, nodes)
    error, rest = (
        Estimate(100 * float(wrong[i] / nodes[i]), 100 * float(ends[0][i]), 100 * float(ends[1][i]))
        for i in (0, 1)
    )
    table = np.round([wrong, nodes - wrong]).astype(np.int64)
    return LowAgainstRest(
        at_most=math.floor(low_degree),
        nodes=int(nodes[0]),
        share=100 * float(low.mean()),
        error=error,
        rest_error=rest,
        difference=difference(error, rest),
        ratio=ratio(error, rest),
        p=float(fisher_exact(table).pvalue),
    )
