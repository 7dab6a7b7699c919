"""Write files and folders so that a full disk, a crash or a kill leaves nothing half-written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

from .errors import RawlsError
from .folder_replacement import folder_version, put_in_place, temporary_folder
from .temporary_files import is_temporary, remove, sync, temporary_file

#: How often to read a folder that changes during the reading.
_TRIES = 100
C = TypeVar("C", bound=Callable[..., Any])


@contextmanager
def atomic_file(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path`` that replaces ``path`` on success only.

    The temporary name keeps the suffix, because some writers (numpy, pandas) look at it. A link
    stays a link: what it points to is replaced. A device or a pipe cannot be replaced: it is
    written to as it is.
    """
    path = Path(path)
    if _is_stream(path):
        try:
            yield path
        except OSError as error:
            raise _cannot(path, error) from error
        return
    final = _resolved(path)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with temporary_file(final.parent, path.suffix) as temporary:
            yield temporary
            # What lies in a temporary folder is synchronized together with it.
            if not is_temporary(final.parent):
                sync(temporary)
            os.replace(temporary, final)
            if not is_temporary(final.parent):
                sync(final.parent)
    except OSError as error:
        raise _cannot(path, error) from error


@contextmanager
def atomic_directory(
    path: str | Path, outdated: Callable[[str], bool] = lambda name: False
) -> Iterator[Path]:
    """Yield a temporary folder whose content replaces that of ``path`` at once, on success only.

    Files of the same names in ``path`` are replaced, and those whose name is ``outdated`` are
    removed; others stay. For the procedure see :mod:`rawlsgcn._core.folder_replacement`.
    """
    path = Path(path)
    final = _resolved(path, into=True)
    _require_folder(path)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with temporary_folder(final) as temporary:
            try:
                yield temporary
                put_in_place(temporary, final, outdated)
            except RawlsError as error:
                # The temporary folder is gone by the time that anybody reads its name.
                raise RawlsError(str(error).replace(str(temporary), str(path))) from error
    except OSError as error:
        raise _cannot(path, error, into=True) from error


def remove_folder(path: Path) -> None:
    """Remove a folder so that after a kill all of it is left, or nothing."""
    with suppress(OSError):
        remove(path)


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


def check_file(path: str | Path) -> None:
    """Raise an error before a long computation if its result could not be written to ``path``."""
    path = Path(path)
    if path.is_dir():
        raise RawlsError(f"cannot write {path}: it is a folder; use the name of a file")
    if not _is_stream(path):
        _try(path, path.resolve().parent)


def same_file(path: str | Path, other: str | Path) -> bool:
    """Whether writing to ``path`` would change ``other``, also through links."""
    path, other = Path(path), Path(other).expanduser()
    if _is_stream(path):
        return False
    try:
        return path.samefile(other)
    except OSError:  # one of them does not exist
        return os.path.realpath(path) == os.path.realpath(other)


def check_folder(path: str | Path) -> None:
    """Raise an error before a long computation if ``path`` could not be written into."""
    path = Path(path)
    _require_folder(path)
    _try(path, path.resolve(), into=True)


def _try(path: Path, folder: Path, *, into: bool = False) -> None:
    """Write a nameless file into ``folder``, or the nearest one above it that exists."""
    try:
        while not folder.exists():
            folder = folder.parent
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (OSError, RuntimeError) as error:
        raise _cannot(path, error, into=into) from error


def _resolved(path: Path, *, into: bool = False) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:  # links in a circle
        raise _cannot(path, error, into=into) from error


def _require_folder(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise RawlsError(f"cannot write into {path}: it is a file, not a folder")


def _is_stream(path: Path) -> bool:
    """Whether writing to ``path`` reaches a device, a pipe or an open file of this process."""
    opened = path.parent in (Path("/dev/fd"), Path("/proc/self/fd"))
    if opened or path in (Path("/dev/stdout"), Path("/dev/stderr")):
        return True
    return path.exists() and not path.is_file() and not path.is_dir()


def _version(folder: object) -> tuple[int, int] | None:
    return folder_version(Path(folder).expanduser()) if isinstance(folder, str | Path) else None


def _cannot(path: Path, error: Exception, *, into: bool = False) -> RawlsError:
    why = getattr(error, "strerror", None) or error
    return RawlsError(f"cannot write {'into ' if into else ''}{path}: {why}")
