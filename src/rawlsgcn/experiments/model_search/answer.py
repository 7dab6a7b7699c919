"""The answer of a search: what is chosen of the trained members, and how it is described."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch_geometric.data import Data

from ..._core.text import plural, share
from ...evaluation.run_metrics import evaluate_run
from ...graphs.notes import GraphFacts
from ...methods import Inputs
from ...methods.ensemble import (
    Ensemble,
    EnsembleLearner,
    EnsembleSettings,
    joined_states,
    scores_of,
)
from ...training import TrainedRun
from ..fitting import evaluate_runs
from ..result import Result
from .pool import Member, WeightedMean
from .result import AutoResult, EnsembleResult
from .selection import LEAST_LOSS, Judge

if TYPE_CHECKING:
    import pandas as pd

#: The name of the GCN that the answer is compared with.
RIVAL = "Tuned GCN"


@dataclass
class SearchState:
    """What a search has trained so far, and the answer that is made of it.

    Attributes:
        graph: The graph.
        inputs: The same on its device.
        judge: The validation nodes.
        seed: The seed of ``auto``.
        members: The trained members.
        teacher: The mean of members that was the teacher; None if there was none.
        gcn: The GCN that was tuned with as many runs; None for that of the pool.
        notes: Sentences for the user.
        skipped: The names of members for which there was no time.
        failed: The names of members that cannot be trained on this graph, for each reason.
        began: When the search began.
    """

    graph: Data
    inputs: Inputs
    judge: Judge
    seed: int
    members: list[Member] = field(default_factory=list)
    teacher: WeightedMean | None = None
    gcn: Member | None = None
    notes: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    failed: dict[str, list[str]] = field(default_factory=dict)
    began: float = field(default_factory=time.perf_counter)

    def result(self) -> AutoResult:
        """Choose the answer and describe it."""
        chosen = WeightedMean.best(self.members, self.judge)
        own = time.perf_counter() - self.began - (self.gcn.seconds if self.gcn else 0.0)
        found = self._result(chosen, Ensemble.title, own)
        found.notes += self.notes
        found.notes += dict.fromkeys(note for member in chosen.members for note in member.notes)
        found.notes += [f"not trained ({_quoted(who)}): {why}." for why, who in self.failed.items()]
        found.notes += time_notes(self.skipped)
        loss = self.judge.loss(chosen.probabilities)
        return AutoResult(
            **_fields(found),
            leaderboard=self._leaderboard(chosen),
            parts=self._parts(chosen),
            validation_loss=loss,
            explanation=self._explanation(chosen, loss),
            baseline=self._baseline(),
        )

    def _baseline(self) -> EnsembleResult | None:
        """The GCN to compare with; None if that of the pool diverged and there is no other."""
        gcn = self.gcn or self._pool_gcn()
        if gcn is None:
            return None
        return self._result(WeightedMean((gcn,), (1.0,)), RIVAL, gcn.seconds)

    def _pool_gcn(self) -> Member | None:
        """The GCN that was tuned as every other member was, unless it diverged."""
        return next((each for each in self.members if each.candidate.method == "gcn"), None)

    def _result(self, mean_of: WeightedMean, title: str, trained: float) -> EnsembleResult:
        """Trained runs as one model: their mean, scaled by a temperature on validation nodes."""
        began, seconds = time.perf_counter(), {"prepare": 0.0, "train": trained, "evaluate": 0.0}
        settings, state = EnsembleSettings.of(mean_of.runs()), joined_states(mean_of.states())
        mean = EnsembleLearner(self.inputs, settings, state).probabilities()
        scaling = self.judge.temperature(mean[self.judge.nodes.to(mean.device)].cpu())
        settings = replace(settings, temperature=scaling)
        logits = scores_of(mean, settings.temperature).to(self.inputs.dtype).cpu()
        run = TrainedRun(sum(tensor.numel() for tensor in state.values()), state, logits)
        made = evaluate_runs(
            self.graph, self.inputs, Ensemble(), settings, [self.seed], [run], seconds
        )
        seconds["evaluate"] = time.perf_counter() - began
        return EnsembleResult(**_fields(replace(made, title=title)))

    def _leaderboard(self, chosen: WeightedMean) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame(
            {
                "member": member.name,
                "weight": chosen.weight(member),
                **self._figures(member.probabilities),
                "parameters": member.parameters,
                "runs": member.trained,
                "seconds": member.seconds,
            }
            for member in sorted(self.members, key=lambda each: each.rank)
        )

    def _parts(self, chosen: WeightedMean) -> pd.DataFrame:
        """The figures of the answer as one part after another is added."""
        import pandas as pd

        first = [each for each in self.members if not each.candidate.student]
        gcn = self._pool_gcn()
        parts: dict[str, Member | WeightedMean] = {} if gcn is None else {gcn.name: gcn}
        parts["best member"] = min(first, key=lambda each: each.rank)
        parts["mean without students"] = self.teacher or WeightedMean.best(first, self.judge)
        parts["mean with students"] = chosen
        return pd.DataFrame(
            {"part": name, **self._figures(part.probabilities)} for name, part in parts.items()
        )

    def _figures(self, probabilities: Tensor) -> dict[str, float]:
        """The columns that describe predictions."""
        metrics = evaluate_run(
            scores_of(probabilities),
            self.graph.y,
            self.inputs.degree.cpu(),
            self.graph.test_mask,
            self.graph.val_mask,
        )
        return {
            "validation_loss": self.judge.loss(probabilities),
            "validation_accuracy": 100 * self.judge.accuracy(probabilities),
            "accuracy": metrics.accuracy,
            "low_degree_accuracy": metrics.low_degree_accuracy,
            "calibrated_bias": metrics.calibrated_bias,
        }

    def _about_rival(self) -> list[str]:
        """What the GCN is that the answer is compared with."""
        if self.gcn is not None:
            made = f"the best six of {plural(self.gcn.trained, 'run')} of a GCN"
        elif pool := self._pool_gcn():
            made = (
                f"{plural(len(pool.runs), 'run')} with the best settings of the GCN in the "
                f"pool, of which {plural(pool.trained, 'run')} were trained"
            )
        else:
            return []
        return [f"{RIVAL} is the mean of {made}, chosen by the same validation nodes."]

    def _explanation(self, chosen: WeightedMean, loss: float) -> list[str]:
        best, what, values = chosen.members[0], "validation loss", (loss, chosen.members[0].loss)
        if best.loss < LEAST_LOSS:
            rank = self.judge.rank(chosen.probabilities[self.judge.nodes].double())
            what, values = "cross entropy before temperature scaling", (rank[1], best.rank[1])
            what += " (which decides where the validation loss is zero)"
        if len(self.members) == 1:
            first = f"'{best.name}' is the only model that was trained."
        elif len(chosen.members) == 1:
            first = (
                f"'{best.name}' was chosen alone: its {what} of {_said(values[1])} is the "
                "lowest, and no mean with others that was tried has a lower one."
            )
        else:
            pairs = sorted(zip(chosen.weights, chosen.members, strict=True), key=lambda it: -it[0])
            names = ", ".join(f"{share(weight)} '{member.name}'" for weight, member in pairs)
            first = (
                f"The answer is the mean of {names}: its {what} of {_said(values[0])} is "
                f"lower than that of the best of them alone ({_said(values[1])})."
            )
        runs = sum(member.trained for member in self.members)
        sentences = [
            first,
            f"Judged by cross entropy on {plural(len(self.judge.nodes), 'validation node')} "
            f"after temperature scaling: {plural(len(self.members), 'model')} of "
            f"{plural(runs, 'run')}; the labels of the evaluated nodes were not used.",
        ]
        sentences += self._about_rival()
        if GraphFacts.of(self.graph).structural_features:
            sentences.append(
                "It was trained on the structure of this graph, which has no features, and cannot "
                "be used on another graph."
            )
        elif not all(member.candidate.transferable for member in chosen.members):
            sentences.append(
                "It contains the rows of this graph's adjacency matrix and cannot be used on "
                "another graph; with transferable=True (--transferable) it can."
            )
        return sentences


def _fields(result: Result) -> dict[str, Any]:
    return {each.name: getattr(result, each.name) for each in fields(Result)}


def time_notes(skipped: Sequence[str]) -> list[str]:
    """Return the note that names the members for which there was no time, if there are any."""
    said = f"the time limit was reached, so these were not trained: {_quoted(skipped)}."
    return [said] if skipped else []


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _said(loss: float) -> str:
    """A loss in words; calibrated on nodes that are all right it is next to nothing, but not 0."""
    return f"{loss:.3f}" if loss >= 0.001 else "under 0.001"
