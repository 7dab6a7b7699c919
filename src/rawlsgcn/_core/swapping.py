"""How a folder is replaced as a whole, and how what a killed process left is told and removed.

A new version is written into a temporary folder, synchronized with the disk, and then put in the
place of the old one:

* On Linux and macOS both folders change places by one system call: whoever opens a file of the
  folder, at any moment and after any kill, finds the old version or the new one. Everything else
  in the folder is linked into the new version first.
* Where that is not possible the files are moved one by one, the old ones out first, then the new
  ones in. That is so where the system or the disk has no such call, for a mount point, for the
  home or the current folder (whose shells would be left in a deleted folder), below a folder
  without the right to write, and beside more than ``MOST_ENTRIES`` other entries. The temporary
  folder is renamed to ``…-ready`` before: from then on the new version counts, and the next process
  that reads or writes the folder finishes the move if this one is killed.

A temporary file or folder is locked (``flock``) by the process that writes it. The system ends the
lock with the process, so one that nobody holds is what a kill left, and is removed by whoever
writes there next. Where the disk knows no locks, nothing is removed.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, islice
from pathlib import Path

from .errors import RawlsError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PREFIX, _READY = ".rawlsgcn-", "-ready"
_TEMPORARY = re.compile(rf"\{PREFIX}[0-9a-f]{{8}}({_READY}|\.[^.]*)?")
#: In a folder that is ready to be moved in: the files that it replaced, and the names to remove.
_REPLACED, _REMOVED = f"{PREFIX}replaced", f"{PREFIX}removed"
#: More other entries of a folder, with those of its subfolders, are not linked anew.
MOST_ENTRIES = 1000
#: How long to wait for another process that puts a new version in place, which takes milliseconds.
PATIENCE_SECONDS = 30.0


def is_temporary(path: Path) -> bool:
    """Whether this is the name of a temporary file or folder of this package."""
    return _TEMPORARY.fullmatch(path.name) is not None


# ---- temporary files and folders -----------------------------------------------------------------


@contextmanager
def temporary_file(folder: Path, suffix: str) -> Iterator[Path]:
    """A new, empty file in ``folder``, removed in the end if it is still there."""
    with _temporary(folder, suffix, _make_file) as path:
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)


@contextmanager
def temporary_folder(final: Path) -> Iterator[Path]:
    """A new, empty folder whose content can become that of ``final``; removed in the end.

    It lies beside ``final``; or in it where it could not be swapped from there.
    """
    parent = final.parent
    if final.is_dir():
        remove_leftovers(final)
        parent = parent if _can_swap(final) else final
    with _temporary(parent, "", os.mkdir) as path:
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _temporary(folder: Path, suffix: str, make: Callable[[Path], None]) -> Iterator[Path]:
    remove_leftovers(folder)
    while True:
        path = folder / f"{PREFIX}{secrets.token_hex(4)}{suffix}"
        try:
            make(path)
        except FileExistsError:
            continue
        handle = _open(path)
        # Until it is locked, another process may take it for a leftover.
        if handle is None or (_lock(handle) is not False and _is_at(handle, path)):
            break
        os.close(handle)
    try:
        yield path
    finally:
        if handle is not None:
            os.close(handle)


def _make_file(path: Path) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))


def _can_swap(final: Path) -> bool:
    """Whether a folder beside ``final`` could take its place, as far as can be told before."""
    try:
        lived_in = (Path.cwd(), Path(os.path.expanduser("~")))
        if any(path.resolve().is_relative_to(final) for path in lived_in):
            return False
        # It can be made there, and moved to where the other way needs it.
        with _temporary(final.parent, "", os.mkdir) as probe:
            try:
                os.rename(probe, final / probe.name)
            except OSError:
                os.rmdir(probe)
                raise
            os.rmdir(final / probe.name)
    except (OSError, RuntimeError):
        return False
    return True


def remove_leftovers(folder: Path) -> None:
    """Finish or remove what killed processes left in ``folder``; what is in use stays."""
    try:
        with os.scandir(folder) as entries:
            found = [Path(entry) for entry in entries if entry.name.startswith(PREFIX)]
    except OSError:
        return
    for path in found:
        if not is_temporary(path) or path.is_symlink():
            continue
        handle = _open(path)
        if handle is None:
            continue
        try:
            if _lock(handle) and _is_at(handle, path):
                if path.name.endswith(_READY):
                    _move_in(path, folder)
                remove(path)
        except OSError:
            continue  # not ours to write; a reader is told by require_whole
        finally:
            os.close(handle)


def remove(path: Path) -> None:
    """Remove a file, or a folder by one rename out of sight first."""
    if not path.is_dir() or path.is_symlink():
        path.unlink(missing_ok=True)
        return
    if not is_temporary(path) or path.name.endswith(_READY):
        hidden = path.with_name(f"{PREFIX}{secrets.token_hex(4)}")
        os.rename(path, hidden)
        path = hidden
    shutil.rmtree(path, ignore_errors=True)


# ---- one version takes the place of another ------------------------------------------------------


def put_in_place(temporary: Path, final: Path, outdated: Callable[[str], bool]) -> None:
    """Make the content of a temporary folder that of ``final``; on an error nothing is changed.

    Other entries of ``final`` stay, but for those whose name is ``outdated``.
    """
    sync_all(temporary)
    if not final.exists():
        try:
            os.rename(temporary, final)
        except OSError:
            if not final.is_dir():
                raise
        else:
            sync(final.parent)
            return
    with _only_writer(final):
        _refuse_folders(temporary, final)
        if not (temporary.parent == final.parent and _swap(temporary, final, outdated)):
            _move(temporary, final, outdated)


def _swap(temporary: Path, final: Path, outdated: Callable[[str], bool]) -> bool:
    """Let both folders change places; False, and nothing changed, where that is not possible."""
    new = {entry.name for entry in temporary.iterdir()}
    others = [
        entry
        for entry in final.iterdir()
        if entry.name not in new and not outdated(entry.name) and not is_temporary(entry)
    ]
    below = chain(others, *(entry.rglob("*") for entry in others))
    if len(list(islice(below, MOST_ENTRIES + 1))) > MOST_ENTRIES:
        return False
    linked = []
    try:
        for entry in others:
            linked.append(temporary / entry.name)
            _link(entry, temporary / entry.name)
        _copy_rights(final, temporary)
        os.utime(temporary)
        sync(temporary)
        _exchange(temporary, final)
    except (OSError, NotImplementedError):
        for copy in linked:
            remove(copy)
        return False
    sync(final.parent)
    # The old version lies under the temporary name now. What others added to it meanwhile stays.
    _rescue(temporary, final, outdated)
    return True


def _link(source: Path, target: Path) -> None:
    """The same file under another name; a folder anew, with the same files."""
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


def _rescue(source: Path, target: Path, outdated: Callable[[str], bool]) -> None:
    for entry in source.iterdir():
        other = target / entry.name
        if outdated(entry.name):
            continue
        if not os.path.lexists(other):
            os.rename(entry, other)
        elif entry.is_dir() and not entry.is_symlink() and other.is_dir():
            _rescue(entry, other, lambda name: False)


def _exchange(one: Path, other: Path) -> None:
    """Let two paths change places by one system call."""
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


def _move(temporary: Path, final: Path, outdated: Callable[[str], bool]) -> None:
    """Move file by file: the old ones out, then the new ones in; on an error all the way back."""
    new = {entry.name for entry in temporary.iterdir()}
    old = [
        entry
        for entry in final.iterdir()
        if entry.name in new or (outdated(entry.name) and not is_temporary(entry))
    ]
    gone = [entry.name for entry in old if entry.name not in new]
    (temporary / _REMOVED).write_text(json.dumps(gone), encoding="utf-8")
    sync(temporary / _REMOVED)
    (temporary / _REPLACED).mkdir()
    sync(temporary)
    ready = final / f"{temporary.name}{_READY}"
    os.rename(temporary, ready)  # from here on the new version counts
    sync(final)
    try:
        _move_in(ready, final)
    except BaseException:
        for name in new:
            if not os.path.lexists(ready / name):
                os.replace(final / name, ready / name)
        for entry in old:
            if os.path.lexists(ready / _REPLACED / entry.name):
                os.replace(ready / _REPLACED / entry.name, entry)
        os.rename(ready, temporary)  # which its owner removes
        raise
    remove(ready)


def _move_in(ready: Path, final: Path) -> None:
    """Begin or finish the move of a folder that is ready."""
    new = sorted(entry.name for entry in ready.iterdir() if entry.name not in (_REMOVED, _REPLACED))
    for name in (*json.loads((ready / _REMOVED).read_text(encoding="utf-8")), *new):
        if os.path.lexists(final / name):
            os.replace(final / name, ready / _REPLACED / name)
    for name in new:
        os.replace(ready / name, final / name)
    sync(final)


def _refuse_folders(temporary: Path, final: Path) -> None:
    for entry in temporary.iterdir():
        if (final / entry.name).is_dir():
            raise RawlsError(
                f"cannot write {final / entry.name}: there is a folder of that name; move it away"
            )


# ---- readers -------------------------------------------------------------------------------------


def version(folder: Path) -> tuple[int, int] | None:
    """What changes whenever a folder's entries do; None where there is none.

    A move that a kill cut short is finished first.
    """
    until = time.monotonic() + PATIENCE_SECONDS
    while _unfinished(folder):
        remove_leftovers(folder)
        if not _unfinished(folder):
            break
        if time.monotonic() > until:
            raise RawlsError(
                f"{folder} holds a version that is not all in its place: a process was stopped "
                "while it wrote; write into the folder again, or read it with the right to write"
            )
        time.sleep(0.05)
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _unfinished(folder: Path) -> list[Path]:
    with suppress(OSError):
        return [path for path in folder.glob(f"{PREFIX}*{_READY}") if is_temporary(path)]
    return []


# ---- the disk and locks --------------------------------------------------------------------------


def sync(path: Path) -> None:
    """Wait until a file's content, or a folder's names, are on the disk."""
    handle = _open(path)
    if handle is None:
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a disk that knows no such thing
            raise
    finally:
        os.close(handle)


def sync_all(folder: Path) -> None:
    """The same for a folder and all that is in it."""
    for where, _, names in os.walk(folder):
        for name in names:
            if not Path(where, name).is_symlink():
                sync(Path(where, name))
        sync(Path(where))


def _open(path: Path) -> int | None:
    """To sync or to lock it; None where that cannot be."""
    if fcntl is None:
        return None
    try:
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None


def _lock(handle: int) -> bool | None:
    """Lock a file or folder until it is closed; False where another has, None without locks."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except OSError:
        return False


@contextmanager
def _only_writer(final: Path) -> Iterator[None]:
    """While it lasts, no other process puts a new version of this folder in place."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        handle = _open(final)
        if handle is None or (_lock(handle) is not False and _is_at(handle, final)):
            break
        os.close(handle)
        if time.monotonic() > until:
            raise RawlsError(f"cannot write into {final}: another process is writing there")
        time.sleep(0.01)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)
