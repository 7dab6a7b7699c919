"""``compare``: train several methods on one graph; the results, named, audited and shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from .._core.errors import RawlsError, needs_extra
from .._core.progress import ProgressCallback
from .._core.text import printable
from .._core.threads import fork_safe_threads
from ..graphs.splits import evaluate_on
from ..methods import MAIN_METHODS, Method, Settings, find_method
from .fitting import checked, seed_list, train_settings
from .result import Result
from .tuning import tuned_result

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from torch_geometric.data import Data
    from typing_extensions import Unpack

    from ..methods.settings import SettingsKeywords
    from .auditing.audit_result import Audit


class Comparison(list[Result]):
    """Results of one or several methods on one graph: a list of :class:`Result`.

    :meth:`of` checks that the results belong together.

    Args:
        iterable: The results.

    Example:
        >>> import rawlsgcn as rg
        >>> graph = rg.synthetic(300)
        >>> results = rg.compare(graph, ["gcn", "rawlsgcn-graph"], seeds=1, epochs=5)
        >>> results.names
        ['GCN', 'RawlsGCN-Graph']
        >>> results.to_frame().shape[0]
        2
    """

    @classmethod
    def of(cls, results: Result | Sequence[Result]) -> Comparison:
        """Return ``results`` as a comparison, checked to belong together.

        Args:
            results: A result, or several on the same graph and the same evaluated nodes.

        Returns:
            The results in their order.

        Raises:
            RawlsError: There is no result, something else than a result, or the graphs or the
                evaluated nodes differ.
        """
        chosen = cls(results if isinstance(results, Sequence) else [results])
        if not chosen:
            raise RawlsError("there is nothing to show: give at least one result")
        if other := [type(each).__name__ for each in chosen if not isinstance(each, Result)]:
            raise RawlsError(f"a result of fit or compare can be shown, not {other[0]}")
        datasets = list(dict.fromkeys(printable(result.dataset) for result in chosen))
        if len(datasets) > 1:
            raise RawlsError(
                f"results on {' and '.join(datasets)} cannot be shown together: "
                "show the results of each graph on their own"
            )
        first = chosen[0]
        for result in chosen[1:]:
            same = torch.equal(result.mask, first.mask)
            if not (same and torch.equal(result.degree, first.degree)):
                raise RawlsError(
                    f"results on {datasets[0]} with different evaluated nodes cannot be compared: "
                    "train both methods with the same split"
                )
        return chosen

    @property
    def names(self) -> list[str]:
        """A distinct name for each result: its title, and the settings that differ if needed.

        Ensembles of the same title are numbered, as they differ in too many settings.
        """
        chosen = []
        for result in self:
            title = printable(result.title)
            alike = [other for other in self if printable(other.title) == title]
            differing = [
                f"{printable(key)} {printable(value)}"
                for key, value in result.naming_settings.items()
                if any(other.settings.get(key) != value for other in alike)
            ]
            chosen.append(f"{title} ({', '.join(differing)})" if differing else title)
        return [
            name if chosen.count(name) == 1 else f"{name} #{chosen[:place].count(name)}"
            for place, name in enumerate(chosen, start=1)
        ]

    def to_frame(self) -> pd.DataFrame:
        """Return the metrics of all runs.

        Returns:
            The rows of :meth:`Result.to_frame` for each result, after a column ``method`` with
            the result's name.
        """
        import pandas as pd

        frames = [result.to_frame() for result in self]
        for name, frame in zip(self.names, frames, strict=True):
            frame.insert(0, "method", name)
        return pd.concat(frames, ignore_index=True)

    def audit(self, **options: Any) -> Audit:
        """Audit for each method the run with the highest validation accuracy.

        A method of which every run diverged is left out.

        Args:
            **options: The options of :func:`rawlsgcn.audit`.

        Returns:
            The audit of all methods and of each pair of them.

        Raises:
            RawlsError: Every run of every method diverged, or an option is wrong.
        """
        from .auditing.audit_predictions import audit

        results = dict(zip(self.names, self, strict=True))
        sound = {name: each for name, each in results.items() if set(each.seeds) - {*each.diverged}}
        made = audit(self[0].graph, sound or results, **options)
        return replace(made, results=results)

    def accuracy_bias_plot(self) -> Figure:
        """Draw the accuracy against the bias of each method, before and after calibration.

        Returns:
            A matplotlib figure with two axes.

        Raises:
            RawlsError: If the extra ``report`` is not installed.
        """
        with needs_extra("the plot"):
            from ..reporting.figures import accuracy_bias_plot

        return accuracy_bias_plot(self)

    def __repr__(self) -> str:
        from ..reporting.text_tables import results_text

        return results_text(self)

    def _repr_html_(self) -> str | None:
        try:
            from ..reporting.notebook import results_html
        except ModuleNotFoundError:  # without the extra ``report``: the text is shown
            return None
        return results_html(self)


@fork_safe_threads()
def compare(
    graph: Data | str,
    methods: str | Method | Iterable[str | Method | type[Method]] = MAIN_METHODS,
    *,
    seeds: int | Iterable[int] = 5,
    device: str = "auto",
    engine: str = "auto",
    evaluate: str = "test",
    tune: bool = False,
    check_weight_decay: bool = True,
    progress: ProgressCallback | None = None,
    **settings: Unpack[SettingsKeywords],
) -> Comparison:
    """Train several methods on one graph, with the same seeds and evaluated on the same nodes.

    Args:
        graph: A torch_geometric ``Data``, a networkx graph, or the name of a dataset.
        methods: Names or methods of your own, as for :func:`fit`; by default GCN and the paper's
            two methods.
        seeds: The number of runs of each method (seeds 0 to N-1), or the seeds themselves.
        device: ``"cpu"``, ``"cuda"``, or ``"auto"`` for a GPU if there is one.
        engine: ``"auto"``, ``"reference"`` or ``"stacked"``, as for :func:`fit`.
        evaluate: ``"test"``, or ``"all"`` for every labeled node outside training and validation.
        tune: Whether each method is trained at the learning rate and weight decay with the highest
            validation accuracy, as :func:`rawlsgcn.tune` finds them; a rate or decay among the
            settings is used for all methods and not searched.
        check_weight_decay: As for :func:`fit`; not where the decay is searched.
        progress: Called with the epochs done, the epochs in total and the method's title.
        **settings: Settings of all methods, as for :func:`fit`. A ``normalization`` applies to the
            methods that have a choice; the others keep their own, which is noted in their results.

    Returns:
        The results, in the order of the methods.

    Raises:
        RawlsError: If the graph, a method, a setting or another argument is not valid.

    Example:
        >>> import rawlsgcn as rg
        >>> results = rg.compare(rg.synthetic(300), ["gcn", "rawlsgcn-grad"], seeds=1, epochs=10)
        >>> [result.title for result in results]
        ['GCN', 'RawlsGCN-Grad']
    """
    if isinstance(methods, str) or not isinstance(methods, Iterable):
        methods = [methods]
    chosen = [find_method(each) for each in methods]
    if not chosen:
        raise RawlsError("no method to compare: name at least one")
    configured = configure_all(chosen, settings)
    clean, each_seed = evaluate_on(checked(graph), evaluate), seed_list(seeds)
    results = Comparison()
    how: dict[str, Any] = {"device": device, "engine": engine, "progress": progress}
    how |= {"check_weight_decay": check_weight_decay, "only": len(chosen) == 1}
    for method, changed in zip(chosen, configured, strict=True):
        if tune:
            result = tuned_result(clean, method, changed, each_seed, fixed=settings, **how)
        else:
            (result,), _ = train_settings(clean, method, [changed], each_seed, **how)
        if settings.get("normalization") not in (None, changed.normalization):
            result.notes.append(
                f"{method.title} has no choice of normalization and was trained with its own."
            )
        results.append(result)
    return results


def configure_all(methods: Sequence[Method], changes: Mapping[str, Any]) -> list[Settings]:
    """The methods' settings; a normalization is ignored by methods without a choice of it.

    Where no method has a choice, asking for one is an error.
    """
    others = {name: value for name, value in changes.items() if name != "normalization"}
    choice = [len(method.normalizations) > 1 for method in methods]
    return [
        method.configure(changes if own or not any(choice) else others)
        for method, own in zip(methods, choice, strict=True)
    ]
