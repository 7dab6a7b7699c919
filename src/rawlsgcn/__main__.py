"""``python -m rawlsgcn`` and the ``rawlsgcn`` command."""

from __future__ import annotations

import _thread
import os
import sys
import threading
import warnings
from importlib.util import find_spec

#: What the extra ``cli`` brings.
_PACKAGES = ("typer", "rich", "matplotlib", "jinja2")


def main() -> None:
    """Run the command line, or say in one sentence what it needs.

    Warnings of other packages are not shown. They are for developers (a FutureWarning of torch,
    say), and a user of a command can do nothing about them; what rawlsgcn has to say are notes and
    errors. ``python -W default -m rawlsgcn`` and the variable PYTHONWARNINGS show them.
    """
    if not all(map(find_spec, _PACKAGES)):
        from ._core.errors import missing_extra

        print(f"rawlsgcn: {missing_extra('the command line', 'cli')}", file=sys.stderr)
        sys.exit(2)
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
        os.environ["PYTHONWARNINGS"] = "ignore"  # for processes that a command starts
    sys.unraisablehook = _unraisable
    try:
        from .cli import app
        from .cli.fast_start import postpone_unused_imports

        postpone_unused_imports()
        app()
    except KeyboardInterrupt:  # before a command runs, or after it
        sys.exit(130)


def _unraisable(what: sys.UnraisableHookArgs) -> None:
    """Raise Ctrl-C again, a moment later, where it came in code that cannot raise anything."""
    if issubclass(what.exc_type, KeyboardInterrupt):
        threading.Timer(0.05, _thread.interrupt_main).start()
    else:
        sys.__unraisablehook__(what)


if __name__ == "__main__":
    main()
