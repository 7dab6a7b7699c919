"""The methods by name: the package's own, registered classes, and those of installed packages.

The names are known without importing a method, so that ``rawlsgcn --help`` does not load torch.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

from .._core.errors import RawlsError, unknown_name

if TYPE_CHECKING:
    from .base import Method

#: The package's own methods: the module in this folder and the class of each name.
BUILT_IN = {
    "advfair": "advfair:AdvFair",
    "demo-net": "demo_net:DemoNet",
    "dsgcn": "dsgcn:DSGCN",
    "gcn": "gcn:GCN",
    "rawlsgcn-grad": "rawlsgcn_grad:RawlsGCNGrad",
    "rawlsgcn-graph": "rawlsgcn_graph:RawlsGCNGraph",
    "redress": "redress:Redress",
    "smoothed-mlp": "smoothed_mlp:SmoothedMLP",
    "tail-gnn": "tail_gnn:TailGNN",
}
#: Methods that are not trained by themselves, only saved and loaded.
SAVED_ONLY = {"auto": "ensemble:Ensemble"}
#: GCN and the paper's two methods, which ``compare`` trains by default.
MAIN_METHODS = ("gcn", "rawlsgcn-graph", "rawlsgcn-grad")
#: The group of entry points by which an installed package offers methods of its own.
ENTRY_POINT_GROUP = "rawlsgcn.methods"

_registered: dict[str, type[Method]] = {}


def register(method: type[Method]) -> type[Method]:
    """Make a method of your own known by its name, in Python and on the command line.

    An installed package can do the same with an entry point of the group ``rawlsgcn.methods``,
    which the command line finds too.

    Args:
        method: A :class:`Method` subclass with a ``name``.

    Returns:
        The class itself, so that ``register`` can be a decorator.

    Raises:
        RawlsError: If it is not a complete ``Method`` class, or if another method has the name.

    Example:
        >>> from rawlsgcn.methods import Settings, find_method, register
        >>> from rawlsgcn.methods.gcn import GCN
        >>> @register
        ... class WideGCN(GCN):
        ...     name, title = "wide-gcn", "Wide GCN"
        ...     defaults = Settings(hidden_channels=256)
        >>> find_method("wide-gcn").title
        'Wide GCN'
    """
    _require_method(method)
    name = method.name
    known = _registered.get(name)
    if name in BUILT_IN | SAVED_ONLY or (
        known is not None and known.__qualname__ != method.__qualname__
    ):
        raise RawlsError(f"there is a method called '{name}' already: choose another name")
    _registered[name] = method
    return method


def method_names() -> tuple[str, ...]:
    """Return the names of all methods, sorted.

    Returns:
        The names that :func:`find_method` knows.

    Example:
        >>> from rawlsgcn.methods import method_names
        >>> "rawlsgcn-graph" in method_names()
        True
    """
    return tuple(sorted({*BUILT_IN, *_registered, *_installed()}))


def find_method(method: str | Method | type[Method]) -> Method:
    """Return a method by its name; a :class:`Method` (object or class) is returned as an object.

    Args:
        method: A name of :func:`method_names`, or a method of your own, registered or not.

    Returns:
        The method.

    Raises:
        RawlsError: If no method has the name; the error suggests the nearest ones.

    Example:
        >>> from rawlsgcn.methods import find_method
        >>> find_method("gcn").defaults.epochs
        200
    """
    if isinstance(method, str):
        return _class_of(method)()
    from .base import Method

    if isinstance(method, Method):
        return method
    if isinstance(method, type) and issubclass(method, Method):
        return _require_method(method)()
    raise unknown_name("method", method, method_names())


def _class_of(name: str) -> type[Method]:
    if name in BUILT_IN | SAVED_ONLY:
        module, _, kind = (BUILT_IN | SAVED_ONLY)[name].partition(":")
        return getattr(import_module(f".{module}", __package__), kind)  # type: ignore[no-any-return]
    if name in _registered:
        return _registered[name]
    entry = _installed().get(name)
    if entry is None:
        others = "; a method of another package must be installed or registered"
        raise unknown_name("method", name, method_names(), others)
    try:
        found = entry.load()
    except Exception as error:
        raise RawlsError(
            f"the method '{name}' cannot be imported from its entry point {entry.value}: {error!r}"
        ) from error
    return _require_method(found)


def _installed() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}


def _require_method(method: Any) -> type[Method]:
    from inspect import isabstract

    from .base import Method

    if not (isinstance(method, type) and issubclass(method, Method)) or isabstract(method):
        raise RawlsError(
            f"a method is a subclass of rawlsgcn.methods.Method with a learner, not {method!r}"
        )
    for attribute in ("name", "title", "defaults"):
        if not hasattr(method, attribute):
            raise RawlsError(f"the method {method.__qualname__} has no '{attribute}': set it")
    return method
