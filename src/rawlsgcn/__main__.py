"""``python -m rawlsgcn`` and the ``rawlsgcn`` command."""

from __future__ import annotations

import os
import sys
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
    try:
        from .cli import app
        from .cli.fast_start import postpone_unused_imports
    except KeyboardInterrupt:  # later ones are the command's
        sys.exit(130)
    postpone_unused_imports()
    app()


if __name__ == "__main__":
    main()
