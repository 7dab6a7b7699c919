"""Train, compare, tune and audit: results, saved models and audits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core import lazy_names

if TYPE_CHECKING:
    from .audit_result import Audit as Audit
    from .auditing import audit as audit
    from .comparing import compare as compare
    from .comparison import Comparison as Comparison
    from .fitting import fit as fit
    from .method_checks import check_method as check_method
    from .model_search import AutoResult as AutoResult
    from .model_search import auto as auto
    from .result import Result as Result
    from .row_fit import fit_rows as fit_rows
    from .sampled_fit import fit_sampled as fit_sampled
    from .saved_models import TrainedModel as TrainedModel
    from .saved_models import load_model as load_model
    from .tuning import Tuning as Tuning
    from .tuning import tune as tune

_HOMES = {
    "Audit": "audit_result",
    "AutoResult": "model_search",
    "Comparison": "comparison",
    "Result": "result",
    "TrainedModel": "saved_models",
    "Tuning": "tuning",
    "audit": "auditing",
    "auto": "model_search",
    "check_method": "method_checks",
    "compare": "comparing",
    "fit": "fitting",
    "fit_rows": "row_fit",
    "fit_sampled": "sampled_fit",
    "load_model": "saved_models",
    "tune": "tuning",
}
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
