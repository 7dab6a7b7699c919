"""``tune``: train a method at every combination of a grid and choose by validation accuracy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from .._core.errors import RawlsError
from .._core.progress import ProgressCallback
from .._core.threads import fork_safe_threads
from ..methods import Method, Settings, find_method
from .fitting import best_result, checked, seed_list, train_settings
from .result import Result

if TYPE_CHECKING:
    from torch_geometric.data import Data
    from typing_extensions import Unpack

    from ..methods.settings import SettingsKeywords

#: The learning rates that the paper searched (Section 4.1).
LEARNING_RATES = (0.075, 0.05, 0.025, 0.01, 0.0075, 0.005, 0.0025)
#: The weight decays that are searched by default: the paper's, and less of it.
WEIGHT_DECAYS = (5e-4, 5e-5, 5e-6, 0.0)
RATE_AND_DECAY = {"lr", "weight_decay"}


def paper_grid(method: Method) -> Mapping[str, Sequence[float]]:
    """What the paper searched for a method: its own grid, or the paper's learning rates."""
    return method.grid or {"lr": LEARNING_RATES}


def default_grid(
    method: Method, fixed: Iterable[str] = (), *, only_rate_and_decay: bool = False
) -> dict[str, Sequence[float]]:
    """What is searched for a method by default: :func:`paper_grid` and weight decays.

    The paper's weight decay is too large for some graphs, so that a search of learning rates alone
    compares models none of which fits its training nodes. Settings that were given a value, the
    ``fixed`` ones, are not searched. With ``only_rate_and_decay`` nothing else is, and learning
    rates are searched also for a method whose own grid has none.
    """
    grid = dict(paper_grid(method))
    if only_rate_and_decay:
        grid = {"lr": LEARNING_RATES} | {name: grid[name] for name in RATE_AND_DECAY & grid.keys()}
    grid.setdefault("weight_decay", WEIGHT_DECAYS)
    given = {name.replace("-", "_") for name in fixed}
    return {name: values for name, values in grid.items() if name not in given}


@dataclass(frozen=True)
class Tuning:
    """The results of a grid of settings; returned by :func:`tune`.

    Attributes:
        method: The method's name.
        grid: For each setting that was varied its values.
        trials: A result for each combination.
        seconds: The seconds of preparing, training and evaluating all of them.
    """

    method: str
    grid: dict[str, list[Any]]
    trials: list[Result]
    seconds: dict[str, float]

    @property
    def best(self) -> Result:
        """The trial with the highest mean validation accuracy, among those without divergence.

        Raises:
            RawlsError: If training diverged with every combination.
        """
        return best_result(self.trials)

    @property
    def best_on_test(self) -> Result:
        """The trial with the highest mean test accuracy, for comparison only.

        The paper's figures seem to have been chosen like this; the choice uses the test labels.

        Raises:
            RawlsError: If training diverged with every combination.
        """
        return best_result(self.trials, "accuracy")

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as ``--json`` writes them.

        Returns:
            A dictionary that can be written as JSON.
        """
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

    def __repr__(self) -> str:
        from ..reporting.text_tables import tuning_text

        return tuning_text(self)

    def _repr_html_(self) -> str:
        from ..reporting.notebook import tuning_html

        return tuning_html(self)


@fork_safe_threads()
def tune(
    graph: Data | str,
    method: str | Method | type[Method] = "rawlsgcn-graph",
    grid: Mapping[str, Iterable[Any]] | None = None,
    *,
    seeds: int | Iterable[int] = 5,
    device: str = "auto",
    engine: str = "auto",
    method_settings: Mapping[str, Any] | None = None,
    check_weight_decay: bool = True,
    progress: ProgressCallback | None = None,
    **settings: Unpack[SettingsKeywords],
) -> Tuning:
    """Train a method at every combination of a grid and choose by validation accuracy.

    Runs that differ only in learning rate, weight decay, dropout, epochs or seed are trained at
    once.

    Args:
        graph: A torch_geometric ``Data``, a networkx graph, or the name of a dataset.
        method: A name or a method of your own, as for :func:`rawlsgcn.fit`.
        grid: For each setting the values to try; by default :data:`LEARNING_RATES` (or what the
            paper searched for the method) with :data:`WEIGHT_DECAYS`, without the settings that
            are given here. For the paper's search pass ``grid={"lr": LEARNING_RATES}``, or
            ``weight_decay=5e-4``.
        seeds: The number of runs of each combination (seeds 0 to N-1), or the seeds themselves.
        device: ``"cpu"``, ``"cuda"``, or ``"auto"`` for a GPU if there is one.
        engine: ``"auto"``, ``"reference"`` or ``"stacked"``, as for :func:`rawlsgcn.fit`.
        method_settings: Settings that only this method has, the same in all combinations.
        check_weight_decay: As for :func:`rawlsgcn.fit`, for the best trial only, and not if the
            grid varies ``weight_decay``.
        progress: Called with the epochs done, the epochs in total and the method's title.
        **settings: Settings that are the same in all combinations, as for :func:`rawlsgcn.fit`.

    Returns:
        The trials and the best of them.

    Raises:
        RawlsError: If the graph, the method, the grid, a setting or another argument is not valid.

    Example:
        >>> import rawlsgcn as rg
        >>> tuning = rg.tune(rg.synthetic(300), "gcn", {"lr": [0.1, 0.01]}, seeds=1, epochs=10)
        >>> len(tuning.trials), tuning.best.settings["lr"] in (0.1, 0.01)
        (2, True)
    """
    chosen = find_method(method)
    base = {**settings, **(method_settings or {})}
    values = default_grid(chosen, base) if grid is None else grid
    combinations = _combinations(chosen, base, values)
    names = [name.replace("-", "_") for name in values]
    trials, seconds = train_settings(
        checked(graph),
        chosen,
        combinations,
        seed_list(seeds),
        device=device,
        engine=engine,
        progress=progress,
        check_weight_decay=check_weight_decay and "weight_decay" not in names,
    )
    # The values as they were used: text from a command line has become numbers.
    shown = {
        name: list(dict.fromkeys(getattr(each, name) for each in combinations)) for name in names
    }
    return Tuning(chosen.name, shown, trials, seconds)


def tuned_result(
    graph: Data,
    method: Method,
    settings: Settings,
    seeds: list[int],
    *,
    fixed: Iterable[str],
    check_weight_decay: bool,
    **how: Any,
) -> Result:
    """The result at the learning rate and weight decay that are best on the validation nodes.

    Those among the ``fixed`` settings are not searched. A note says what was chosen. ``how`` is as
    for :func:`train_settings`.
    """
    grid = default_grid(method, fixed, only_rate_and_decay=True)
    combinations = _combinations(method, asdict(settings), grid)
    how["check_weight_decay"] = check_weight_decay and "weight_decay" not in grid
    trials, seconds = train_settings(graph, method, combinations, seeds, **how)
    best = best_result(trials)
    best.seconds = seconds
    if grid:
        named = {"lr": "learning rate", "weight_decay": "weight decay"}
        chosen = " and ".join(f"{named[name]} {best.settings[name]:g}" for name in grid)
        best.notes.append(
            f"{method.title} was trained with {chosen}, the best on the validation nodes of "
            f"{len(combinations)} combinations."
        )
    return best


def _combinations(method: Method, base: Mapping[str, Any], grid: Any) -> list[Settings]:
    """The settings of each combination of a grid, which is the user's."""
    if not isinstance(grid, Mapping):
        raise RawlsError(f"a grid is a dict of lists of values, not {grid!r}")
    values: dict[str, list[Any]] = {}
    for name, each in grid.items():
        if isinstance(each, str) or not isinstance(each, Iterable):
            raise RawlsError(f"the grid needs a list of values for {name}, not {each!r}")
        values[str(name)] = list(each)
        if not values[str(name)]:
            raise RawlsError(f"the grid has no value for {name}: give at least one")
    found = [
        method.configure({**base, **dict(zip(values, chosen, strict=True))})
        for chosen in product(*values.values())
    ]
    if len(set(found)) < len(found):
        raise RawlsError("the grid has the same combination twice: remove the repeated value")
    return found
