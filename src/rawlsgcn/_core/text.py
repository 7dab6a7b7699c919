"""Text that others read: without control characters and without this machine's folders."""

from __future__ import annotations

from pathlib import Path


def printable(text: object) -> str:
    """Return ``text`` on one line, without the control characters that could steer a terminal."""
    line = " ".join(str(text).split())
    return "".join(character if character.isprintable() else "\ufffd" for character in line)


def shown_path(path: str | Path) -> str:
    """Return ``path`` without this machine's folders, for pages and files that others may read.

    A relative path is unchanged; of an absolute one the part inside the working directory is
    shown, or else its last name only.
    """
    path = Path(path)
    if not path.is_absolute():
        return str(path)
    here = Path.cwd()
    if here != Path(here.anchor) and path != here and path.is_relative_to(here):
        return str(path.relative_to(here))
    return path.name or "."
