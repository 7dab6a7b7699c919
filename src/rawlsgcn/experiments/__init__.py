"""Train, compare, tune and audit: results, saved models and audits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core import homes, lazy_names

if TYPE_CHECKING:
    from .auditing.audit_predictions import audit as audit
    from .auditing.audit_result import Audit as Audit
    from .comparison import Comparison as Comparison
    from .comparison import compare as compare
    from .fitting import fit as fit
    from .large_graphs.step_fits import fit_rows as fit_rows
    from .large_graphs.step_fits import fit_sampled as fit_sampled
    from .method_checks import check_method as check_method
    from .model_search.auto import auto as auto
    from .model_search.result import AutoResult as AutoResult
    from .result import Result as Result
    from .saved_models import TrainedModel as TrainedModel
    from .saved_models import load_model as load_model
    from .tuning import Tuning as Tuning
    from .tuning import tune as tune

_HOMES = homes(
    {
        "auditing.audit_predictions": "audit",
        "auditing.audit_result": "Audit",
        "comparison": "Comparison compare",
        "fitting": "fit",
        "large_graphs.step_fits": "fit_rows fit_sampled",
        "method_checks": "check_method",
        "model_search.auto": "auto",
        "model_search.result": "AutoResult",
        "result": "Result",
        "saved_models": "TrainedModel load_model",
        "tuning": "Tuning tune",
    }
)
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
