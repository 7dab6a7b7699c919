"""Show results and audits: the report, figures, terminal tables and words.

Everything is loaded on first use, because the command line's light commands must load neither
matplotlib nor torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core import homes, lazy_names

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

_HOMES = homes(
    {
        "audit_figures": "audit_figures",
        "audit_verdict": "verdict",
        "figures": "figures",
        "page": "report",
        "tables": "audit_table datasets_table leaderboard_table results_table tuning_table",
    }
)
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
