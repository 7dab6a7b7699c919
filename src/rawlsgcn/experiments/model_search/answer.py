"""The answer of a search: what is chosen of the trained members, and how it is described."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch_geometric.data import Data

from ..._core.text import plural, share
from ...evaluation.run_metrics import evaluate_run
from ...graphs.notes import GraphFacts
from ...methods import Inputs
from ...methods.ensemble import Ensemble, scores_of
from ...training import TrainedRun
from ..fitting import evaluate_runs
from ..result import Result
from .judge import Judge
from .pool import Member
from .result import AutoResult, EnsembleResult
from .selection import WeightedMean, select
from .trained_ensemble import TrainedEnsemble

if TYPE_CHECKING:
    import pandas as pd

#: The name of the GCN that the answer is compared with.
RIVAL = "Tuned GCN"


@dataclass(frozen=True)
class Answer:
    """What a search has trained, to be made a result.

    Attributes:
        graph: The graph.
        inputs: The same on its device.
        judge: The validation nodes.
        seed: The seed of ``auto``.
        members: The trained members.
        teacher: The mean of members that was the teacher; None if there was none.
        gcn: The GCN that was tuned with as many runs, and how many; None for that of the pool.
        gcn_seconds: The time that it took.
        notes: Sentences for the user.
        skipped: The names of members for which there was no time.
        began: When the search began.
    """

    graph: Data
    inputs: Inputs
    judge: Judge
    seed: int
    members: Sequence[Member]
    teacher: WeightedMean | None
    gcn: tuple[TrainedEnsemble, int] | None
    gcn_seconds: float
    notes: Sequence[str]
    skipped: Sequence[str]
    began: float

    def result(self) -> AutoResult:
        """Choose the answer and describe it."""
        chosen = select(self.members, self.judge)
        trained = time.perf_counter()
        answer = TrainedEnsemble.of(self.inputs, self.judge, chosen.runs(), chosen.states())
        own, rival = trained - self.began - self.gcn_seconds, self.gcn_seconds
        if self.gcn is None:
            baseline = self._gcn_of_pool()
        else:
            baseline = self._result(self.gcn[0], RIVAL, rival)
        found = self._result(answer, Ensemble.title, own)
        found.notes += self.notes
        found.notes += dict.fromkeys(note for member in chosen.members for note in member.notes)
        found.notes += time_notes(self.skipped)
        loss = self.judge.loss(chosen.probabilities)
        return AutoResult(
            **_fields(found),
            leaderboard=self._leaderboard(chosen),
            parts=self._parts(chosen),
            validation_loss=loss,
            explanation=self._explanation(chosen, loss),
            baseline=baseline,
        )

    def _gcn_of_pool(self) -> EnsembleResult | None:
        """The GCN that was tuned as every other member was; None if it diverged."""
        for member in self.members:
            if member.candidate.method == "gcn":
                runs, states = member.ensemble_runs(1.0), member.states
                model = TrainedEnsemble.of(self.inputs, self.judge, runs, states)
                return self._result(model, RIVAL, member.seconds)
        return None

    def _result(self, model: TrainedEnsemble, title: str, trained: float) -> EnsembleResult:
        count = sum(tensor.numel() for tensor in model.state.values())
        run = TrainedRun(count, model.state, model.logits)
        began, seconds = time.perf_counter(), {"prepare": 0.0, "train": trained, "evaluate": 0.0}
        made = evaluate_runs(
            self.graph, self.inputs, Ensemble(), model.settings, [self.seed], [run], seconds
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
            for member in sorted(self.members, key=lambda each: each.loss)
        )

    def _parts(self, chosen: WeightedMean) -> pd.DataFrame:
        """The figures of the answer as one part after another is added."""
        import pandas as pd

        first = [each for each in self.members if not each.candidate.student]
        parts: dict[str, Member | WeightedMean] = {
            each.name: each for each in first if each.candidate.method == "gcn"
        }
        parts["best member"] = min(first, key=lambda each: each.loss)
        parts["mean without students"] = self.teacher or select(first, self.judge)
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
            made = f"the best six of {plural(self.gcn[1], 'run')} of a GCN"
        else:
            pool = [each for each in self.members if each.candidate.method == "gcn"]
            if not pool:
                return []
            made = (
                f"{plural(len(pool[0].runs), 'run')} with the best settings of the GCN in the "
                f"pool, of which {plural(pool[0].trained, 'run')} were trained"
            )
        return [f"{RIVAL} is the mean of {made}, chosen by the same validation nodes."]

    def _explanation(self, chosen: WeightedMean, loss: float) -> list[str]:
        best = min(self.members, key=lambda member: member.loss)
        if len(self.members) == 1:
            first = f"'{best.name}' is the only model that was trained."
        elif len(chosen.members) == 1:
            first = (
                f"'{best.name}' was chosen alone: its validation loss of {best.loss:.3f} is the "
                "lowest, and no mean with others that was tried has a lower one."
            )
        else:
            pairs = sorted(zip(chosen.weights, chosen.members, strict=True), key=lambda it: -it[0])
            names = ", ".join(f"{share(weight)} '{member.name}'" for weight, member in pairs)
            first = (
                f"The answer is the mean of {names}: its validation loss of {loss:.3f} is lower "
                f"than that of the best of them alone ({best.loss:.3f})."
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
    names = ", ".join(f"'{name}'" for name in skipped)
    return [f"the time limit was reached, so these were not trained: {names}."] if skipped else []
