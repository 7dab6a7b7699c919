"""``python -m rawlsgcn`` and the ``rawlsgcn`` command."""

from __future__ import annotations

import os
import sys
import warnings

from .cli import app


def main() -> None:
    """Run the command line, without the warnings of other packages.

    They are for developers (a FutureWarning of torch, say), and a user of a command can do nothing
    about them; what rawlsgcn has to say are notes and errors. ``python -W default -m rawlsgcn`` and
    the variable PYTHONWARNINGS show them.
    """
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
        os.environ["PYTHONWARNINGS"] = "ignore"  # for processes that a command starts
    app()


if __name__ == "__main__":
    main()
