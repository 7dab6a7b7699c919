"""``tune``: every combination of a grid, every seed, trained as one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from .._core.errors import RawlsError
from .._core.progress import ProgressCallback
from .._core.threads import fork_safe_threads
from ..methods import Settings, with_changes
from ..training import Job, train
from .fitting import checked, described, find_method, inputs_of, judged, seed_list
from .result import Result

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass(frozen=True)
class Tuning:
    """A grid of settings, each with its result; ``grid`` says what was varied.

    ``best`` was chosen by accuracy on the validation nodes, among the combinations none of whose
    runs diverged; where there is none, asking for it is an error. ``best_on_test`` is the choice by
    mean accuracy on the test nodes, as the paper's figures seem to have been chosen: it looks at
    the answers, and is here for comparison only.
    """

    method: str
    grid: dict[str, list[Any]]
    trials: list[Result]
    seconds: dict[str, float]

    @property
    def best(self) -> Result:
        return max(self._sound, key=lambda trial: trial.validation_accuracy.mean)

    @property
    def best_on_test(self) -> Result:
        return max(self._sound, key=lambda trial: trial.accuracy.mean)

    @property
    def _sound(self) -> list[Result]:
        """The trials to choose from: those in which no run diverged."""
        sound = [trial for trial in self.trials if not trial.diverged]
        if not sound:
            raise RawlsError(
                "nothing can be chosen: training diverged with every combination of the grid; "
                "try lower learning rates (lr)"
            )
        return sound

    def to_dict(self) -> dict[str, Any]:
        """The figures, in the form that ``--json`` writes."""
        return {
            "dataset": self.trials[0].dataset,
            "method": self.method,
            "grid": self.grid,
            "seeds": self.trials[0].seeds,
            "runs": len(self.trials) * len(self.trials[0].seeds),
            "seconds": self.seconds,
            "best": self.best.to_dict(),
            "best_on_test": self.best_on_test.to_dict(),
            "trials": [trial.to_dict() for trial in self.trials],
        }


@fork_safe_threads()
def tune(
    graph: Data | str,
    method: str = "rawlsgcn-graph",
    grid: Mapping[str, Iterable[Any]] | None = None,
    *,
    seeds: int | Iterable[int] = 5,
    device: str = "auto",
    engine: str = "auto",
    progress: ProgressCallback | None = None,
    **settings: Any,
) -> Tuning:
    """Train a method at every combination of a grid and choose by validation accuracy.

    Args:
        graph: A torch_geometric ``Data``, or the name of a dataset.
        method: The method's name.
        grid: For each setting the values to try; by default what the paper searched.
        seeds: How many runs of each combination, or the seeds themselves.
        **settings: Settings that stay the same throughout.

    The other arguments are those of :func:`rawlsgcn.fit`. Runs that differ in rate, weight decay,
    dropout, epochs or seed are trained side by side.
    """
    chosen = find_method(method)
    base = with_changes(chosen.defaults, settings)
    values = _values(chosen.grid if grid is None else grid)
    combinations = _combinations(base, values)
    clean, each_seed = checked(graph), seed_list(seeds)
    trials: dict[int, Result] = {}
    seconds = {"prepare": 0.0, "train": 0.0, "evaluate": 0.0}
    # Whether features are normalised decides the inputs, so such runs are trained apart.
    for normalised in sorted({each.normalize_features for each in combinations}):
        places = [i for i, c in enumerate(combinations) if c.normalize_features is normalised]
        inputs = inputs_of(clean, combinations[places[0]], device)
        jobs = [Job(combinations[place], seed) for place in places for seed in each_seed]
        runs, took = train(
            chosen, inputs, jobs, engine=engine, progress=described(progress, chosen.title)
        )
        for part, value in took.items():
            seconds[part] += value
        for at, place in enumerate(places):
            mine = runs[at * len(each_seed) : (at + 1) * len(each_seed)]
            share = {part: value / len(places) for part, value in took.items()}
            trials[place] = judged(
                clean,
                inputs,
                chosen,
                combinations[place],
                each_seed,
                mine,
                share,
                alone=len(combinations) == 1,
            )
    ordered = [trials[place] for place in range(len(combinations))]
    names = [name.replace("-", "_") for name in values]
    # The values as they were used: text from a command line has become numbers.
    shown = {
        name: list(dict.fromkeys(getattr(each, name) for each in combinations)) for name in names
    }
    return Tuning(chosen.name, shown, ordered, seconds)


def _values(grid: Any) -> dict[str, list[Any]]:
    if not isinstance(grid, Mapping):
        raise RawlsError(f"a grid is a dict of lists of values, not {grid!r}")
    for name, each in grid.items():
        if isinstance(each, str) or not isinstance(each, Iterable):
            raise RawlsError(f"the grid needs a list of values for {name}, not {each!r}")
    return {str(name): list(each) for name, each in grid.items()}


def _combinations(base: Settings, values: dict[str, list[Any]]) -> list[Settings]:
    for name, each in values.items():
        if not each:
            raise RawlsError(f"the grid has no value for {name}: give at least one")
    found = [
        with_changes(base, dict(zip(values, chosen, strict=True)))
        for chosen in product(*values.values())
    ]
    if len(set(found)) < len(found):
        raise RawlsError("the grid holds the same combination twice: drop the repeated value")
    return found
