"""Remove passwords and this machine's folders from what pages and files show to others."""

from __future__ import annotations

import re
from pathlib import Path


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


def shown_word(word: str) -> str:
    """Return one word of a command line without passwords and without this machine's folders.

    It may be a path, a URL, or either after ``--option=``.
    """
    option, equals, value = word.partition("=") if word.startswith("-") else ("", "", word)
    value = re.sub(r"(://[^:/@]*):[^@]*@", r"\1:…@", value)
    url = re.match(r"[a-z0-9+]+:///(?=/)", value)  # sqlite:////home/me/studies.db
    scheme = url.group() if url else ""
    file = value.removeprefix(scheme)
    return f"{option}{equals}{scheme}{shown_path(file) if Path(file).is_absolute() else file}"
