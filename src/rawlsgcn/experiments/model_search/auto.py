"""``auto``: the best classifier for a graph out of a pool, chosen by its validation nodes."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeVar, cast

from torch import Tensor
from torch_geometric.data import Data

from ..._core.argument_checks import whole_number
from ..._core.errors import RawlsError
from ..._core.progress import ProgressCallback
from ..._core.random_state import kept_random_state
from ..._core.text import plural, share
from ..._core.threads import fork_safe_threads
from ...evaluation.run_metrics import evaluate_run
from ...graphs.notes import GraphFacts
from ...graphs.splits import evaluate_on, missing_classes
from ...methods import Settings
from ...methods.ensemble import Ensemble, EnsembleLearner, EnsembleSettings, scores_of
from ...training import TrainedRun
from ..fitting import checked, evaluate_runs, prepare_inputs
from .pool import Member, WeightedMean, ranked
from .result import AutoResult, EnsembleResult
from .search import Search
from .selection import LEAST_LOSS, Judge
from .tuned_gcn import TITLE as TUNED_GCN_TITLE

if TYPE_CHECKING:
    import pandas as pd

Kind = TypeVar("Kind", bound=EnsembleResult)
#: With fewer validation nodes than this a note says so.
FEW_NODES = 30


@fork_safe_threads()
def auto(
    graph: Data | str,
    *,
    seed: int = 0,
    device: str = "auto",
    evaluate: str = "test",
    transferable: bool = False,
    baseline: bool = False,
    time_limit: float | None = None,
    progress: ProgressCallback | None = None,
) -> AutoResult:
    """Train a pool of models and return the best, chosen by the validation nodes.

    The pool has a GCN and MLPs on smoothed features (:mod:`rawlsgcn.methods.smoothed_mlp`). They
    are judged by their cross entropy on the validation nodes after temperature scaling. The best
    are trained again as students, on their own confident predictions for nodes of every degree.
    The answer is a weighted mean of members, with the weights that lower that loss most.

    Args:
        graph: A torch_geometric ``Data``, a networkx graph, or the name of a dataset.
        seed: Decides everything random: the same seed gives the same answer.
        device: ``"cpu"``, ``"cuda"``, or ``"auto"`` for a GPU if there is one.
        evaluate: ``"test"``, or ``"all"`` for every labeled node outside training and validation.
        transferable: Leave out models that cannot be used on another graph.
        baseline: Compare with a GCN that is tuned with as many runs as the whole pool; otherwise
            with the GCN of the pool. See ``result.baseline``.
        time_limit: Start nothing new after so many seconds, and use what there is by then. The
            answer then depends on the speed of the machine.
        progress: Called with the seconds spent, the estimated seconds in total (0 while they are
            not known) and what is trained.

    Returns:
        A result like that of :func:`rawlsgcn.fit`, of one run, with a :attr:`leaderboard`.

    Raises:
        RawlsError: If the graph or an argument is not valid, or the graph has no labeled validation
            nodes.

    Example:
        >>> import rawlsgcn as rg
        >>> best = rg.auto(rg.synthetic(300), time_limit=1)
        >>> best.leaderboard.columns[0]
        'member'
    """
    seed = whole_number(seed, "seed")
    if seed >= 2**62:
        raise RawlsError(f"a seed must be less than 2^62, {seed} is not")
    is_number = isinstance(time_limit, Real) and not isinstance(time_limit, bool)
    if time_limit is not None and not (is_number and time_limit > 0):
        raise RawlsError(f"time_limit must be a positive number of seconds, not {time_limit!r}")
    clean = evaluate_on(checked(graph), evaluate)
    nodes = (clean.val_mask & (clean.y >= 0)).nonzero().view(-1)
    inputs = prepare_inputs(clean, Settings(), device)
    search = Search(clean, inputs, Judge(nodes, clean.y[nodes]), seed)
    if len(nodes) < FEW_NODES:
        search.notes.append(
            f"everything is chosen by {plural(len(nodes), 'validation node')}, too few to tell "
            "good models apart: use more."
        )
    search.notes += missing_classes(clean)
    deadline = math.inf if time_limit is None else search.began + float(time_limit)
    with kept_random_state():
        interrupted = search.run(search.candidates(transferable), baseline, deadline, progress)
        try:
            return answer(search)
        except KeyboardInterrupt:  # all is trained: only a second one ends it
            if interrupted:
                raise
            return answer(search)


def answer(search: Search) -> AutoResult:
    """Choose the answer and describe it."""
    chosen, gcn = WeightedMean.best(search.members, search.judge), search.gcn or _pool_gcn(search)
    own = time.perf_counter() - search.began - (search.gcn.seconds if search.gcn else 0.0)
    rival = None
    if gcn is not None:
        rival = _evaluated(
            EnsembleResult, search, WeightedMean({gcn: 1.0}), gcn.seconds, title=TUNED_GCN_TITLE
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
        for member in ranked(search.members)
    )


def _parts(search: Search, chosen: WeightedMean) -> pd.DataFrame:
    """The figures of the answer as one part after another is added."""
    import pandas as pd

    first = [each for each in search.members if not each.candidate.student]
    gcn = _pool_gcn(search)
    parts: dict[str, Member | WeightedMean] = {} if gcn is None else {gcn.name: gcn}
    parts["best member"] = ranked(first)[0]
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
    about_tuned_gcn = f"{TUNED_GCN_TITLE} is the mean of {{}}, chosen by the same validation nodes."
    if search.gcn is not None:
        made = f"the best six of {plural(search.gcn.trained, 'run')} of a GCN"
        sentences.append(about_tuned_gcn.format(made))
    elif gcn := _pool_gcn(search):
        made = (
            f"{plural(len(gcn.runs), 'run')} with the best settings of the GCN in the pool, of "
            f"which {plural(gcn.trained, 'run')} were trained"
        )
        sentences.append(about_tuned_gcn.format(made))
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
