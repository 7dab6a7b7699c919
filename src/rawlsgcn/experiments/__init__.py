"""Train, compare, tune and audit: results, saved models and audits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core import lazy_names

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

_HOMES = {
    "Audit": "auditing.audit_result",
    "AutoResult": "model_search.result",
    "Comparison": "comparison",
    "Result": "result",
    "TrainedModel": "saved_models",
    "Tuning": "tuning",
    "audit": "auditing.audit_predictions",
    "auto": "model_search.auto",
    "check_method": "method_checks",
    "compare": "comparison",
    "fit": "fitting",
    "fit_rows": "large_graphs.step_fits",
    "fit_sampled": "large_graphs.step_fits",
    "load_model": "saved_models",
    "tune": "tuning",
}
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
