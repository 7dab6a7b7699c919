"""A shorter start of the program: what torch_geometric imports, and no command uses, waits.

Importing torch_geometric imports torch's compiler (``torch._dynamo``, with sympy) and, where it is
installed, transformers. Together they can take longer than all the rest.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType


def postpone_unused_imports() -> None:
    """Import torch's compiler on its first use, and transformers not with torch_geometric.

    Only for a process of its own: both can still be imported, but torch_geometric then takes
    transformers for missing where it asked for it while it was imported itself.
    """
    if "torch_geometric" not in sys.modules:
        sys.meta_path.insert(0, _PostponingFinder())


class _PostponingFinder(MetaPathFinder):
    def __init__(self) -> None:
        self.inside = False  # while torch_geometric is imported

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "transformers" and self.inside:
            raise ModuleNotFoundError("no command of rawlsgcn uses transformers", name=fullname)
        if fullname not in ("torch_geometric", "torch._dynamo"):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            lazy = fullname == "torch._dynamo"
            spec.loader = LazyLoader(spec.loader) if lazy else _WatchedLoader(spec.loader, self)
        return spec


class _WatchedLoader(Loader):
    """The loader of torch_geometric, which tells the finder while it works."""

    def __init__(self, loader: Loader, finder: _PostponingFinder) -> None:
        self.loader, self.finder = loader, finder

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.finder.inside = True
        try:
            self.loader.exec_module(module)
        finally:
            self.finder.inside = False
