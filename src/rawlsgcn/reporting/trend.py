"""The regression lines of Figures 1 and 3: which degrees they see, and their slopes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from ..evaluation.degree_bias import LINE_NODES, regression_line

if TYPE_CHECKING:
    import pandas as pd

    from ..experiments.result import Result


@dataclass(frozen=True)
class Trend:
    """A least-squares line through the dots: loss or accuracy = intercept + slope · degree."""

    slope: float
    intercept: float

    def at(self, degree: np.ndarray) -> np.ndarray:
        return self.intercept + self.slope * degree


def shown_groups(result: Result) -> pd.DataFrame:
    """The degrees of more than five evaluated nodes, which the paper's figures show."""
    return result.frame[result.frame["count"] >= LINE_NODES]


def trend(groups: pd.DataFrame, name: str) -> Trend | None:
    """The line through the groups' averages, each group counting once; None below two groups."""
    if len(groups) < 2:
        return None
    slope, intercept = regression_line(
        torch.tensor(groups.index.to_numpy(float)), torch.tensor(groups[name].to_numpy(float))
    )
    return Trend(slope, intercept)
