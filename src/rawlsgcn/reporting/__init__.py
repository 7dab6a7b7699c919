"""Show results and audits: the report, figures, terminal tables and words.

Everything is loaded on first use, because the command line's light commands must load neither
matplotlib nor torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core import lazy_names

if TYPE_CHECKING:
    from . import audit_figures as audit_figures
    from . import figures as figures
    from .audit_verdict import verdict as verdict
    from .page import report as report
    from .tables import audit_table as audit_table
    from .tables import datasets_table as datasets_table
    from .tables import leaderboard_table as leaderboard_table
    from .tables import results_table as results_table
    from .tables import tuning_table as tuning_table

_HOMES = {
    "audit_figures": "audit_figures",
    "audit_table": "tables",
    "datasets_table": "tables",
    "figures": "figures",
    "leaderboard_table": "tables",
    "report": "page",
    "results_table": "tables",
    "tuning_table": "tables",
    "verdict": "audit_verdict",
}
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
