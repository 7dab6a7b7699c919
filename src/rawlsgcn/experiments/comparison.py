"""Several results on one graph: a list that draws and shows itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Comparison(list[Result]):
    """What ``compare`` gives: a plain list of results, with a rich display in notebooks."""

    def accuracy_bias_plot(self) -> Figure:
        """Accuracy against bias, as it stands and calibrated, of what was tried."""
        from ..reporting.accuracy_bias_plot import accuracy_bias_plot

        return accuracy_bias_plot(self)

    def _repr_html_(self) -> str:
        from ..reporting.notebook import results_html

        return results_html(self)
