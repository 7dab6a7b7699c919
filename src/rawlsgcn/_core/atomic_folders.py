"""Write folders as a whole, so that readers see the old version or the new one; read them so.

A new version is written into a temporary folder, synchronized with the disk, and then put in the
place of the old one:

* On Linux and macOS both folders change places by one system call: a reader that opens a file of
  the folder, at any moment and after any kill, reads the old version or the new one. Everything
  else in the folder is linked into the new version first.
* Where that is not possible the files are moved one by one, the old ones out first, then the new
  ones in. That is so where the system or the disk has no such call, for a mount point, for the
  home or the current folder (whose shells would be left in a deleted folder), below a folder
  without the right to write, and beside more than ``MOST_ENTRIES`` other entries. The temporary
  folder is renamed to ``…-ready`` before: from then on the new version counts, and the next process
  that reads or writes the folder finishes the move if this one is killed.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar, cast

from .atomic_files import (
    PATIENCE_SECONDS,
    PREFIX,
    READY,
    REMOVED,
    REPLACED,
    cannot_write,
    finish_move,
    is_temporary,
    locked_temporary,
    only_writer,
    remove,
    remove_leftovers,
    require_folder,
    resolved,
    sync,
    sync_tree,
)
from .errors import RawlsError

#: A folder with more other entries, subfolders included, is not swapped: linking them takes long.
MOST_ENTRIES = 1000
#: How often to read a folder that changes during the reading.
_TRIES = 100
C = TypeVar("C", bound=Callable[..., Any])


@contextmanager
def atomic_directory(
    path: str | Path, outdated: Callable[[str], bool] = lambda name: False
) -> Iterator[Path]:
    """Yield a temporary folder whose content replaces that of ``path`` at once, on success only.

    Files of the same names in ``path`` are replaced, and those whose name is ``outdated`` are
    removed; others stay. For the procedure see the top of this module.
    """
    path = Path(path)
    final = resolved(path, into=True)
    require_folder(path)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        if final.is_dir():
            remove_leftovers(final)
        # Beside ``final``, or in it where folders cannot be swapped.
        beside = not final.is_dir() or _can_swap(final)
        with locked_temporary(final.parent if beside else final, "", os.mkdir) as temporary:
            try:
                yield temporary
                _put_in_place(temporary, final, outdated)
            except RawlsError as error:
                # The temporary folder is gone by the time that anybody reads its name.
                raise RawlsError(str(error).replace(str(temporary), str(path))) from error
    except OSError as error:
        raise cannot_write(path, error, into=True) from error


def _can_swap(final: Path) -> bool:
    """Whether a folder beside ``final`` could be swapped with it, as far as is known before."""
    try:
        in_use = (Path.cwd(), Path(os.path.expanduser("~")))
        if any(path.resolve().is_relative_to(final) for path in in_use):
            return False
        # It can be made there, and moved to where the other way needs it.
        with locked_temporary(final.parent, "", os.mkdir) as probe:
            os.rename(probe, final / probe.name)
            os.rmdir(final / probe.name)
    except (OSError, RuntimeError):
        return False
    return True


def _put_in_place(temporary: Path, final: Path, outdated: Callable[[str], bool]) -> None:
    """Make the content of a temporary folder that of ``final``; on an error nothing is changed.

    Other entries of ``final`` stay, except those whose name is ``outdated``.
    """
    sync_tree(temporary)
    if not final.exists():
        try:
            os.rename(temporary, final)
        except OSError:
            if not final.is_dir():
                raise
        else:
            sync(final.parent)
            return
    with only_writer(final):
        for entry in temporary.iterdir():
            if (final / entry.name).is_dir():
                raise RawlsError(
                    f"cannot write {final / entry.name}: there is a folder of that name; move it "
                    "away"
                )
        if not (temporary.parent == final.parent and _swap(temporary, final, outdated)):
            _move(temporary, final, outdated)


# ---- both folders change places ------------------------------------------------------------------


def _swap(temporary: Path, final: Path, outdated: Callable[[str], bool]) -> bool:
    """Swap both folders; False, and nothing changed, where that is not possible."""
    new = {entry.name for entry in temporary.iterdir()}
    others = [
        entry
        for entry in final.iterdir()
        if entry.name not in new and not outdated(entry.name) and not is_temporary(entry)
    ]
    below = chain(others, *(entry.rglob("*") for entry in others))
    if len(list(islice(below, MOST_ENTRIES + 1))) > MOST_ENTRIES:
        return False
    try:
        for entry in others:
            _link(entry, temporary / entry.name)
        _copy_rights(final, temporary)
        os.utime(temporary)
        sync(temporary)
        _exchange(temporary, final)
    except (OSError, NotImplementedError):
        for entry in others:
            remove(temporary / entry.name)
        return False
    sync(final.parent)
    # The old version has the temporary name now. What others added to it meanwhile is kept.
    _keep_added(temporary, final, outdated)
    return True


def _link(source: Path, target: Path) -> None:
    """Link a file to a second name; a folder is made again, with links to its files."""
    if source.is_symlink() or not source.is_dir():
        os.link(source, target, follow_symlinks=False)
        return
    target.mkdir()
    for entry in source.iterdir():
        _link(entry, target / entry.name)
    _copy_rights(source, target)
    sync(target)


def _copy_rights(source: Path, target: Path) -> None:
    old, new = source.stat(), target.stat()
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        os.chown(target, old.st_uid, old.st_gid)
    shutil.copystat(source, target)


def _keep_added(source: Path, target: Path, outdated: Callable[[str], bool]) -> None:
    for entry in source.iterdir():
        other = target / entry.name
        if outdated(entry.name):
            continue
        if not os.path.lexists(other):
            os.rename(entry, other)
        elif entry.is_dir() and not entry.is_symlink() and other.is_dir():
            _keep_added(entry, other, lambda name: False)


def _exchange(one: Path, other: Path) -> None:
    """Exchange two paths by one system call."""
    names, swap, here = (os.fsencode(one), os.fsencode(other)), 2, -100
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            failed = library.renamex_np(*names, swap)
        else:
            failed = library.renameat2(here, names[0], here, names[1], swap)
    except (AttributeError, TypeError) as error:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS)) from error
    if failed:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(other))


# ---- file by file --------------------------------------------------------------------------------


def _move(temporary: Path, final: Path, outdated: Callable[[str], bool]) -> None:
    """Move the old files out, then the new ones in; on an error undo all of it."""
    new = {entry.name for entry in temporary.iterdir()}
    old = [
        entry
        for entry in final.iterdir()
        if entry.name in new or (outdated(entry.name) and not is_temporary(entry))
    ]
    gone = [entry.name for entry in old if entry.name not in new]
    (temporary / REMOVED).write_text(json.dumps(gone), encoding="utf-8")
    sync(temporary / REMOVED)
    (temporary / REPLACED).mkdir()
    sync(temporary)
    ready = final / f"{temporary.name}{READY}"
    os.rename(temporary, ready)  # from here on the new version counts
    sync(final)
    try:
        finish_move(ready, final)
    except BaseException:
        for name in new:
            if not os.path.lexists(ready / name):
                os.replace(final / name, ready / name)
        for entry in old:
            if os.path.lexists(ready / REPLACED / entry.name):
                os.replace(ready / REPLACED / entry.name, entry)
        os.rename(ready, temporary)  # which is removed
        raise
    remove(ready)


# ---- reading -------------------------------------------------------------------------------------


def one_version(read: C) -> C:
    """Decorate a function that reads several files of a folder, so that all are of one version.

    It is called again if the folder was replaced during the call.
    """

    @wraps(read)
    def whole(folder: Any, *args: Any, **kwargs: Any) -> Any:
        for _ in range(_TRIES):
            before, failure = _version(folder), None
            try:
                result = read(folder, *args, **kwargs)
            except RawlsError as error:
                failure = error
            if _version(folder) == before:
                if failure is not None:
                    raise failure
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


def _unfinished(folder: Path) -> bool:
    with suppress(OSError):
        return any(map(is_temporary, folder.glob(f"{PREFIX}*{READY}")))
    return False
