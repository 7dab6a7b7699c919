"""``compare``: train several methods on one graph, with default or with tuned settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._core.errors import RawlsError
from .._core.progress import ProgressCallback
from .._core.threads import fork_safe_threads
from ..graphs.splits import evaluate_on
from ..methods import MAIN_METHODS, Method, Settings, find_method
from .comparison import Comparison
from .fitting import checked, seed_list, train_and_evaluate
from .tuning import tuned_result

if TYPE_CHECKING:
    from torch_geometric.data import Data
    from typing_extensions import Unpack

    from ..methods.settings import SettingsKeywords


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
    for method, changed in zip(chosen, configured, strict=True):
        given = (clean, method, changed, each_seed, device, engine, progress)
        check = check_weight_decay
        if tune:
            result = tuned_result(*given, fixed=settings, check_weight_decay=check)
        else:
            only = len(chosen) == 1
            result = train_and_evaluate(*given, only=only, check_weight_decay=check)
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
