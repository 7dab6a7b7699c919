"""The result of ``auto``: a result of one run, with the pool and a GCN to compare with."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ..._core.serialization import jsonable
from ...methods import find_method
from ...methods.ensemble import EnsembleSettings
from ..result import Result

if TYPE_CHECKING:
    import pandas as pd

    from ..auditing.audit_result import Audit
    from ..comparison import Comparison

#: What the settings of an ensemble have only because every method has them.
_UNUSED = ("lr", "epochs", "normalization")


class EnsembleResult(Result):
    """The :class:`Result` of an ensemble: its settings are those of its runs."""

    @property
    def _ensemble(self) -> EnsembleSettings:
        settings = find_method(self.method).configure(self.settings)
        assert isinstance(settings, EnsembleSettings)
        return settings

    @property
    def described_settings(self) -> dict[str, Any]:
        """The settings by name, as tables show them: the different values over the runs."""
        return self._ensemble.described()

    @property
    def naming_settings(self) -> dict[str, Any]:
        """None: too many settings differ between two ensembles."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """Return the metrics in the form that ``--json`` writes.

        Returns:
            Plain values by name; a number that is not defined is None. ``settings`` has the
            ``runs`` (each with method, settings and weight) and the ``temperature``.
        """
        figures, ensemble = super().to_dict(), self._ensemble
        for name in _UNUSED:
            del figures[name]
        runs = jsonable([asdict(run) for run in ensemble.parsed])
        return figures | {"settings": {"runs": runs, "temperature": ensemble.temperature}}


@dataclass(repr=False)
class AutoResult(EnsembleResult):
    """What :func:`rawlsgcn.auto` found: a :class:`Result` of one run, and how it was chosen.

    Attributes:
        leaderboard: The pool, the lowest validation loss first: ``member``, ``weight`` (in the
            answer, 0 if it is not a part of it), ``validation_loss`` (after temperature scaling),
            ``validation_accuracy``, ``accuracy``, ``low_degree_accuracy`` (in per cent),
            ``calibrated_bias``, ``parameters`` (the numbers to be kept), ``runs`` and ``seconds``
            of training.
        parts: What each part brings, one row after another added: the GCN of the pool, the best
            member, the mean without students, and the mean with them; with the columns of the
            leaderboard that describe predictions.
        validation_loss: The validation loss of the answer.
        explanation: Sentences that say what was chosen and why.
        baseline: The GCN of the pool, or one tuned with as many runs as the whole pool if that
            was asked for; the mean of its best six runs. None if it diverged.

    Example:
        >>> import rawlsgcn as rg
        >>> best = rg.auto(rg.synthetic(300), time_limit=1)
        >>> best.method, best.chosen[0] in set(best.leaderboard["member"])
        ('auto', True)
    """

    leaderboard: pd.DataFrame = field(default=None, repr=False)  # type: ignore[assignment]
    parts: pd.DataFrame = field(default=None, repr=False)  # type: ignore[assignment]
    validation_loss: float = float("nan")
    explanation: list[str] = field(default_factory=list)
    baseline: EnsembleResult | None = None

    @property
    def chosen(self) -> list[str]:
        """The names of the members that the answer is the mean of."""
        return list(self.leaderboard.loc[self.leaderboard["weight"] > 0, "member"])

    def comparison(self) -> Comparison:
        """Return the result beside the GCN, to be audited and shown together.

        Returns:
            A comparison of one or two results.
        """
        from ..comparison import Comparison

        return Comparison([self] if self.baseline is None else [self, self.baseline])

    @property
    def described_settings(self) -> dict[str, Any]:
        """The settings by name, as tables show them: the members, and the values over the runs."""
        return {"members": "; ".join(self.chosen)} | super().described_settings

    def audit(self, **options: Any) -> Audit:
        """Audit the answer, compared with the GCN if there is one.

        Args:
            **options: The options of :func:`rawlsgcn.audit`.

        Returns:
            The audit; its page has a section on how the answer was chosen.

        Raises:
            RawlsError: If an option is wrong.
        """
        return self.comparison().audit(**options)

    def to_dict(self) -> dict[str, Any]:
        """Return the metrics and the leaderboard in the form that ``--json`` writes.

        Returns:
            Plain values by name; a number that is not defined is None.
        """
        return super().to_dict() | {
            "chosen": self.chosen,
            "validation_loss": jsonable(self.validation_loss),
            "explanation": self.explanation,
            "leaderboard": jsonable(self.leaderboard.to_dict("records")),
            "parts": jsonable(self.parts.to_dict("records")),
            "baseline": None if self.baseline is None else self.baseline.to_dict(),
        }

    def __repr__(self) -> str:
        return repr(self.comparison())

    def __str__(self) -> str:
        rival = [] if self.baseline is None else [str(self.baseline)]
        return "\n".join([super().__str__(), *rival, *self.explanation])
