"""The paper's experiments in one command, compared cell by cell with the published numbers.

:mod:`.plan` lists the cells, :mod:`.workers` trains them, :mod:`.studies` keeps each cell in an
Optuna study, and :mod:`.results` turns the studies into one JSON document, from which all tables,
figures and pages are drawn. Names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core import homes, lazy_names

if TYPE_CHECKING:
    from .output import redraw as redraw
    from .output import training_hours as training_hours
    from .plan import PARTS as PARTS
    from .plan import Plan as Plan
    from .reproduction import reproduce as reproduce
    from .reproduction import unfinished as unfinished
    from .significance import bias_significance as bias_significance
    from .terminal import print_summary as print_summary
    from .terminal import work_ahead as work_ahead

_HOMES = homes(
    {
        "output": "redraw training_hours",
        "plan": "PARTS Plan",
        "reproduction": "reproduce unfinished",
        "significance": "bias_significance",
        "terminal": "print_summary work_ahead",
    }
)
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
