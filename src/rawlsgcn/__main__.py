"""``python -m rawlsgcn`` and the ``rawlsgcn`` command."""

from __future__ import annotations

import sys
from importlib.util import find_spec

#: What the extra ``cli`` brings.
_PACKAGES = ("typer", "rich", "matplotlib", "jinja2")


def main() -> None:
    """Run the command line, or say in one sentence what it needs."""
    if not all(map(find_spec, _PACKAGES)):
        from ._core.errors import missing_extra

        print(f"rawlsgcn: {missing_extra('the command line', 'cli')}", file=sys.stderr)
        sys.exit(2)
    try:
        from .cli import app, startup

        startup.hide_foreign_warnings()
        startup.repeat_lost_interrupts()
        startup.postpone_unused_imports()
        app()
    except KeyboardInterrupt:  # before a command begins, or after it
        sys.exit(130)


if __name__ == "__main__":
    main()
