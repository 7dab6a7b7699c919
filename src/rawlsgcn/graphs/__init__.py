"""Where graphs come from: the paper's datasets, the user's files, and the synthetic graph.

Loaded on first use, so that the torch-free :mod:`.catalog` can be read on its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core import homes, lazy_names

if TYPE_CHECKING:
    from .datasets import load as load
    from .graph_statistics import statistics as statistics
    from .lifting.lifted_graph import LiftedGraph as LiftedGraph
    from .lifting.lifted_graph import lift_low_degrees as lift_low_degrees
    from .notes import graph_notes as graph_notes
    from .readers.read_graph import read as read
    from .splits import paper_split as paper_split
    from .splits import ratio_split as ratio_split
    from .synthetic_graph import synthetic as synthetic
    from .validation import check as check

_HOMES = homes(
    {
        "datasets": "load",
        "graph_statistics": "statistics",
        "lifting.lifted_graph": "LiftedGraph lift_low_degrees",
        "notes": "graph_notes",
        "readers.read_graph": "read",
        "splits": "paper_split ratio_split",
        "synthetic_graph": "synthetic",
        "validation": "check",
    }
)
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
