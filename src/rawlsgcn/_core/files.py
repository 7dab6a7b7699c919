"""Writing results so that a full disk, a crash, a kill or Ctrl-C leaves nothing half-written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from .errors import RawlsError, reading
from .swapping import (
    is_temporary,
    put_in_place,
    remove,
    sync,
    temporary_file,
    temporary_folder,
    version,
)

#: How often to read a folder that is changed meanwhile.
_TRIES = 100
_MOST_BYTES = 1 << 30
C = TypeVar("C", bound=Callable[..., Any])


@contextmanager
def atomic_file(path: str | Path) -> Iterator[Path]:
    """A temporary path beside ``path`` to write to; it takes ``path``'s place on success only.

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
    """A temporary directory whose content becomes that of ``path`` at once, on success only.

    Files of the same names in ``path`` are replaced, and those whose name is ``outdated`` go with
    them; others there are left alone. How it is done is told in :mod:`rawlsgcn._core.swapping`.
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
    """Remove a folder so that a kill leaves the whole of it or nothing."""
    with suppress(OSError):
        remove(path)


def one_version(read: C) -> C:
    """For a function that reads several files of the folder it is given: all of one version.

    It is called again if the folder was replaced meanwhile.
    """

    @wraps(read)
    def whole(folder: Any, *args: Any, **kwargs: Any) -> Any:
        for _ in range(_TRIES):
            before = _version(folder)
            try:
                found = read(folder, *args, **kwargs)
            except RawlsError:
                if _version(folder) == before:
                    raise
            else:
                if _version(folder) == before:
                    return found
        raise RawlsError(f"{folder} is changed all the time: read it when that has ended")

    return cast(C, whole)


def check_file(path: str | Path) -> None:
    """Refuse now, before long work, a file that could not be written after it."""
    path = Path(path)
    if path.is_dir():
        raise RawlsError(f"cannot write {path}: it is a folder; give a file's name")
    if not _is_stream(path):
        _try(path, path.resolve().parent)


def same_file(path: str | Path, other: str | Path) -> bool:
    """Whether writing to ``path`` would reach ``other``, by another way or link even."""
    path, other = Path(path), Path(other).expanduser()
    if _is_stream(path):
        return False
    try:
        return path.samefile(other)
    except OSError:  # one of them is not there (yet)
        return os.path.realpath(path) == os.path.realpath(other)


def check_folder(path: str | Path) -> None:
    """Refuse now, before long work, a folder that could not be written into after it."""
    path = Path(path)
    _require_folder(path)
    _try(path, path.resolve(), into=True)


def plain_ids(node_ids: Sequence[Any] | NDArray[Any] | None, nodes: int) -> NDArray[Any]:
    """The nodes' ids as an array of numbers or of text, which needs no pickle to be stored.

    In an array of text each takes as much as the longest, which must not be all of the memory.
    """
    if node_ids is None:
        return np.arange(nodes)
    if not isinstance(node_ids, np.ndarray) or node_ids.dtype == object:
        longest = max((len(str(each)) for each in node_ids), default=0)
        if 4 * longest * len(node_ids) > _MOST_BYTES:
            raise RawlsError(
                f"a node id of {longest:,} letters makes an array of {len(node_ids):,} ids too "
                "large: shorten it"
            )
    with reading("the node ids", "an array"):
        ids = np.asarray(node_ids)
    if ids.shape != (nodes,):
        raise RawlsError(
            f"there are node ids of the shape {ids.shape} for {nodes} nodes: give one for each"
        )
    return ids if ids.dtype.kind in "biufU" else np.asarray([str(each) for each in node_ids])


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
    return version(Path(folder).expanduser()) if isinstance(folder, str | Path) else None


def _cannot(path: Path, error: Exception, *, into: bool = False) -> RawlsError:
    why = getattr(error, "strerror", None) or error
    return RawlsError(f"cannot write {'into ' if into else ''}{path}: {why}")
