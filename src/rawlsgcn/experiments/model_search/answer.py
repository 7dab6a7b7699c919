"""The answer of a search: what is chosen of the trained members, and how it is described."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from torch import Tensor

from ..._core.text import plural, share
from ...evaluation.run_metrics import evaluate_run
from ...graphs.notes import GraphFacts
from ...methods.ensemble import Ensemble, EnsembleLearner, EnsembleSettings, scores_of
from ...training import TrainedRun
from ..fitting import evaluate_runs
from .pool import Member, WeightedMean
from .result import AutoResult, EnsembleResult
from .selection import LEAST_LOSS

if TYPE_CHECKING:
    import pandas as pd

    from .auto_search import Search

Kind = TypeVar("Kind", bound=EnsembleResult)
#: The name of the GCN that the answer is compared with.
RIVAL_TITLE = "Tuned GCN"


def answer(search: Search) -> AutoResult:
    """Choose the answer and describe it."""
    chosen, gcn = WeightedMean.best(search.members, search.judge), search.gcn or _pool_gcn(search)
    own = time.perf_counter() - search.began - (search.gcn.seconds if search.gcn else 0.0)
    rival = None
    if gcn is not None:
        rival = _evaluated(
            EnsembleResult, search, WeightedMean({gcn: 1.0}), gcn.seconds, title=RIVAL_TITLE
        )
    result = _evaluated(
        AutoResult,
        search,
        chosen,
        own,
        leaderboard=_leaderboard(search, chosen),
        parts=_parts(search, chosen),
        validation_loss=search.judge.losses(chosen.probabilities).scaled,
        explanation=_explanation(search, chosen),
        baseline=rival,
    )
    result.notes += search.notes
    result.notes += dict.fromkeys(note for member in chosen.weights for note in member.notes)
    result.notes += [f"not trained ({_quoted(who)}): {why}." for why, who in search.failed.items()]
    result.notes += time_notes(search.skipped)
    return result


def time_notes(skipped: Sequence[str]) -> list[str]:
    """The note that names the members for which there was no time, if there are any."""
    said = f"the time limit was reached, so these were not trained: {_quoted(skipped)}."
    return [said] if skipped else []


def _pool_gcn(search: Search) -> Member | None:
    """The GCN that was tuned as every other member was, unless it diverged."""
    return next((each for each in search.members if each.candidate.method == "gcn"), None)


def _evaluated(
    kind: type[Kind], search: Search, mean_of: WeightedMean, trained: float, **about: Any
) -> Kind:
    """Trained runs as one model: their mean, scaled by a temperature on validation nodes."""
    began, seconds = time.perf_counter(), {"prepare": 0.0, "train": trained, "evaluate": 0.0}
    settings, state = EnsembleSettings.of(mean_of.runs()), mean_of.state()
    mean = EnsembleLearner(search.inputs, settings, state).probabilities()
    settings = replace(settings, temperature=search.judge.temperature(mean.cpu()))
    logits = scores_of(mean, settings.temperature).to(search.inputs.dtype).cpu()
    run = TrainedRun(sum(tensor.numel() for tensor in state.values()), state, logits)
    result = evaluate_runs(
        search.graph,
        search.inputs,
        Ensemble(),
        settings,
        [search.seed],
        [run],
        seconds,
        kind=kind,
        **about,
    )
    seconds["evaluate"] = time.perf_counter() - began
    return cast("Kind", result)


def _leaderboard(search: Search, chosen: WeightedMean) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(
        {
            "member": member.name,
            "weight": chosen.weights.get(member, 0.0),
            **_figures(search, member.probabilities),
            "parameters": sum(each.numel() for state in member.states for each in state.values()),
            "runs": member.trained,
            "seconds": member.seconds,
        }
        for member in sorted(search.members, key=lambda each: each.losses.rank)
    )


def _parts(search: Search, chosen: WeightedMean) -> pd.DataFrame:
    """The figures of the answer as one part after another is added."""
    import pandas as pd

    first = [each for each in search.members if not each.candidate.student]
    gcn = _pool_gcn(search)
    parts: dict[str, Member | WeightedMean] = {} if gcn is None else {gcn.name: gcn}
    parts["best member"] = min(first, key=lambda each: each.losses.rank)
    parts["mean without students"] = search.teacher or WeightedMean.best(first, search.judge)
    parts["mean with students"] = chosen
    return pd.DataFrame(
        {"part": name, **_figures(search, part.probabilities)} for name, part in parts.items()
    )


def _figures(search: Search, probabilities: Tensor) -> dict[str, float]:
    """The columns that describe predictions."""
    graph, degree = search.graph, search.inputs.degree.cpu()
    scores = scores_of(probabilities)
    metrics = evaluate_run(scores, graph.y, degree, graph.test_mask, graph.val_mask)
    return {
        "validation_loss": search.judge.losses(probabilities).scaled,
        "validation_accuracy": 100 * search.judge.accuracy(probabilities),
        "accuracy": metrics.accuracy,
        "low_degree_accuracy": metrics.low_degree_accuracy,
        "calibrated_bias": metrics.calibrated_bias,
    }


def _explanation(search: Search, chosen: WeightedMean) -> list[str]:
    """What was chosen and why, what it is compared with, and what it cannot do."""
    count = plural(len(search.judge.nodes), "validation node")
    sentences = [
        _choice(search, chosen),
        f"Judged by cross entropy on {count} after temperature scaling: "
        f"{plural(len(search.members), 'model')} of "
        f"{plural(sum(member.trained for member in search.members), 'run')}; the labels of the "
        "evaluated nodes were not used.",
    ]
    about_rival = f"{RIVAL_TITLE} is the mean of {{}}, chosen by the same validation nodes."
    if search.gcn is not None:
        made = f"the best six of {plural(search.gcn.trained, 'run')} of a GCN"
        sentences.append(about_rival.format(made))
    elif gcn := _pool_gcn(search):
        made = (
            f"{plural(len(gcn.runs), 'run')} with the best settings of the GCN in the pool, of "
            f"which {plural(gcn.trained, 'run')} were trained"
        )
        sentences.append(about_rival.format(made))
    if GraphFacts.of(search.graph).structural_features:
        sentences.append(
            "It was trained on the structure of this graph, which has no features, and cannot "
            "be used on another graph."
        )
    elif not all(member.candidate.transferable for member in chosen.weights):
        sentences.append(
            "It contains the rows of this graph's adjacency matrix and cannot be used on "
            "another graph; with transferable=True (--transferable) it can."
        )
    return sentences


def _choice(search: Search, chosen: WeightedMean) -> str:
    best = next(iter(chosen.weights))
    if len(search.members) == 1:
        return f"'{best.name}' is the only model that was trained."
    losses = search.judge.losses(chosen.probabilities)
    what, own, alone = "validation loss", losses.scaled, best.losses.scaled
    if alone < LEAST_LOSS:
        what = "cross entropy before temperature scaling (which decides where the validation loss "
        what, own, alone = what + "is zero)", losses.plain, best.losses.plain
    if len(chosen.weights) == 1:
        return (
            f"'{best.name}' was chosen alone: its {what} of {_loss(alone)} is the lowest, and no "
            "mean with others that was tried has a lower one."
        )
    heaviest = sorted(chosen.weights.items(), key=lambda pair: -pair[1])
    names = ", ".join(f"{share(weight)} '{member.name}'" for member, weight in heaviest)
    return (
        f"The answer is the mean of {names}: its {what} of {_loss(own)} is lower than that of the "
        f"best of them alone ({_loss(alone)})."
    )


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _loss(loss: float) -> str:
    """A loss in words; calibrated on nodes that are all right it is next to nothing, but not 0."""
    return f"{loss:.3f}" if loss >= 0.001 else "under 0.001"
