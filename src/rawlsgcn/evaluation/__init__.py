"""Evaluate predictions by degree: metrics of a run, the audit, and each node's influence.

Loaded on first use. The statistics of the audit are in :mod:`.audit`, predictions in files in
:mod:`.predictions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core import homes, lazy_names

if TYPE_CHECKING:
    from .calibration import CalibrationOutcome as CalibrationOutcome
    from .calibration import calibration_error as calibration_error
    from .calibration import temperature as temperature
    from .degree_bias import degree_quarters as degree_quarters
    from .degree_bias import node_scores as node_scores
    from .influence import column_influence as column_influence
    from .influence import node_influence as node_influence
    from .influence import row_influence as row_influence
    from .majority_baseline import Learning as Learning
    from .majority_baseline import has_learned as has_learned
    from .run_metrics import RunMetrics as RunMetrics
    from .run_metrics import degree_frame as degree_frame
    from .run_metrics import evaluate_run as evaluate_run
    from .run_metrics import worst_off as worst_off

_HOMES = homes(
    {
        "calibration": "CalibrationOutcome calibration_error temperature",
        "degree_bias": "degree_quarters node_scores",
        "influence": "column_influence node_influence row_influence",
        "majority_baseline": "Learning has_learned",
        "run_metrics": "RunMetrics degree_frame evaluate_run worst_off",
    }
)
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
