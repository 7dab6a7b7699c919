"""The result of ``auto``: a result of one run, with the pool and a GCN to compare with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..._core.serialization import jsonable
from ..result import Result

if TYPE_CHECKING:
    import pandas as pd

    from ..comparison import Comparison

#: What the settings of an ensemble have only because every method has them.
_UNUSED = ("lr", "epochs", "normalization")


@dataclass
class AutoResult(Result):
    """What :func:`rawlsgcn.auto` found: a :class:`Result` of one run, and how it was chosen.

    Attributes:
        leaderboard: The pool, the lowest validation loss first: ``member``, ``chosen``,
            ``validation_loss`` (after temperature scaling), ``validation_accuracy``, ``accuracy``,
            ``low_degree_accuracy`` (in per cent), ``calibrated_bias``, ``parameters`` (the numbers
            to be kept), ``runs`` and ``seconds`` of training.
        validation_loss: The validation loss of the answer.
        explanation: Sentences that say what was chosen and why.
        baseline: A GCN tuned with as many runs, the mean of its best six; None if it was not asked
            for or not reached.

    Example:
        >>> import rawlsgcn as rg
        >>> best = rg.auto(rg.synthetic(300), baseline=False)
        >>> best.method, len(best.leaderboard) > 8
        ('auto', True)
    """

    leaderboard: pd.DataFrame = field(default=None, repr=False)  # type: ignore[assignment]
    validation_loss: float = float("nan")
    explanation: list[str] = field(default_factory=list)
    baseline: Result | None = None

    @property
    def chosen(self) -> list[str]:
        """The names of the members that the answer is the mean of."""
        return list(self.leaderboard.loc[self.leaderboard["chosen"], "member"])

    def comparison(self) -> Comparison:
        """Return the result beside the GCN, to be audited and shown together.

        Returns:
            A comparison of one or two results.
        """
        from ..comparison import Comparison

        return Comparison([self] if self.baseline is None else [self, self.baseline])

    def to_dict(self) -> dict[str, Any]:
        """Return the metrics and the leaderboard in the form that ``--json`` writes.

        Returns:
            Plain values by name; a number that is not defined is None.
        """
        figures = super().to_dict()
        for name in _UNUSED:
            del figures[name]
        return figures | {
            "chosen": self.chosen,
            "validation_loss": jsonable(self.validation_loss),
            "explanation": self.explanation,
            "leaderboard": jsonable(self.leaderboard.to_dict("records")),
            "baseline": None if self.baseline is None else self.baseline.to_dict(),
        }
