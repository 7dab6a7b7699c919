"""Read several files of a folder that another process may replace meanwhile, all of one version."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

from .atomic_files import PATIENCE_SECONDS, PREFIX, READY, is_temporary, remove_leftovers
from .errors import RawlsError

#: How often to read a folder that changes during the reading.
_TRIES = 100
C = TypeVar("C", bound=Callable[..., Any])


def one_version(read: C) -> C:
    """Decorate a function that reads several files of a folder, so that all are of one version.

    It is called again if the folder was replaced during the call.
    """

    @wraps(read)
    def whole(folder: Any, *args: Any, **kwargs: Any) -> Any:
        for _ in range(_TRIES):
            before = _version(folder)
            try:
                result = read(folder, *args, **kwargs)
            except RawlsError:
                if _version(folder) == before:
                    raise
            else:
                if _version(folder) == before:
                    return result
        raise RawlsError(f"{folder} changes all the time: read it again later")

    return cast(C, whole)


def _version(given: object) -> tuple[int, int] | None:
    """Return a value that changes with the folder's entries; None if there is no folder.

    A move that a kill interrupted is finished first.
    """
    if not isinstance(given, str | Path):
        return None
    folder = Path(given).expanduser()
    until = time.monotonic() + PATIENCE_SECONDS
    while _unfinished(folder):
        remove_leftovers(folder)
        if not _unfinished(folder):
            break
        if time.monotonic() > until:
            raise RawlsError(
                f"{folder} holds a version whose files are not all in place: a process was stopped "
                "while it wrote; write into the folder again, or read it with the right to write"
            )
        time.sleep(0.05)
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _unfinished(folder: Path) -> list[Path]:
    with suppress(OSError):
        return [path for path in folder.glob(f"{PREFIX}*{READY}") if is_temporary(path)]
    return []
