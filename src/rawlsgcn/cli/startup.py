"""The start of the program, before torch is imported: threads, warnings, Ctrl-C and imports."""

from __future__ import annotations

import _thread
import os
import sys
import threading
import warnings
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType


def set_waiting_of_threads() -> None:
    """Let torch's threads spin for some microseconds only, unless the user has chosen.

    Threads that spin while they wait for each other cost several times what they save on a machine
    with other work to do; asleep they miss what comes next at once. Torch reads it when loaded.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def hide_foreign_warnings() -> None:
    """Show no warnings of other packages, unless the user asks for warnings.

    They are for developers (a FutureWarning of torch, say), and a user of a command can do nothing
    about them; what rawlsgcn has to say are notes and errors. ``python -W default -m rawlsgcn`` and
    the variable PYTHONWARNINGS show them.
    """
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
        os.environ["PYTHONWARNINGS"] = "ignore"  # for processes that a command starts


def repeat_lost_interrupts() -> None:
    """Raise Ctrl-C again, a moment later, where it came in code that cannot raise anything."""

    def unraisable(what: sys.UnraisableHookArgs) -> None:
        if issubclass(what.exc_type, KeyboardInterrupt):
            threading.Timer(0.05, _thread.interrupt_main).start()
        else:
            sys.__unraisablehook__(what)

    sys.unraisablehook = unraisable


def postpone_unused_imports() -> None:
    """Import torch's compiler on its first use, and transformers not with torch_geometric.

    Importing torch_geometric imports both, which can take longer than all the rest.
    Only for a process of its own: both can still be imported, but torch_geometric then takes
    transformers for missing where it asked for it while it was imported itself.
    """
    if "torch_geometric" not in sys.modules:
        sys.meta_path.insert(0, _PostponingFinder())


class _PostponingFinder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        importer = sys.modules.get("torch_geometric")  # has a version when its parts are imported
        if fullname == "transformers" and importer and not hasattr(importer, "__version__"):
            raise ModuleNotFoundError("no command of rawlsgcn uses transformers", name=fullname)
        if fullname != "torch._dynamo":
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec
