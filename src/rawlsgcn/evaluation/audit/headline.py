"""The one comparison fixed in advance: the quarter of lowest degree against all other nodes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .intervals import SMALLEST, difference, ratio, wilson
from .parts import Estimate, LowAgainstRest

if TYPE_CHECKING:
    from .model import Settings


def low_against_rest(
    degree: npt.NDArray[np.int64], right: npt.NDArray[np.float64], settings: Settings
) -> LowAgainstRest | None:
    """Nodes at or under the 25th percentile of the evaluated degrees against all others.

    As ``low_degree_accuracy`` has it. None where there are no others or either side is too small.
    """
    from scipy.stats import fisher_exact

    at_most = math.floor(np.percentile(degree, 25))
    low = degree <= at_most
    nodes = np.array([low.sum(), (~low).sum()])
    if nodes.min() < SMALLEST:
        return None
    wrong = np.array([(1 - right[low]).sum(), (1 - right[~low]).sum()])
    ends = wilson(wrong, nodes, settings.level)
    error, rest = (
        Estimate(100 * float(wrong[i] / nodes[i]), 100 * float(ends[0][i]), 100 * float(ends[1][i]))
        for i in (0, 1)
    )
    table = np.round([wrong, nodes - wrong]).astype(np.int64)
    return LowAgainstRest(
        at_most=at_most,
        nodes=int(nodes[0]),
        share=100 * float(low.mean()),
        error=error,
        rest_error=rest,
        difference=difference(error, rest),
        ratio=ratio(error, rest),
        p=float(fisher_exact(table).pvalue),
    )
