"""Write files so that a full disk, a crash or a kill leaves nothing half-written.

What is written has a temporary name at first. A temporary file or folder is locked (``flock``) by
the process that writes it. The system releases the lock with the process, so an unlocked one was
left by a killed process, and the next process that writes there removes it. On a disk without locks
nothing is removed.

A temporary folder that is complete but not yet moved into its place has a name that ends in
``-ready`` (see :mod:`rawlsgcn._core.atomic_folders`); what a killed process left of that move is
finished here.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from .errors import RawlsError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PREFIX, READY = ".rawlsgcn-", "-ready"
_TEMPORARY = re.compile(rf"\{PREFIX}[0-9a-f]{{8}}({READY}|\.[^.]*)?")
#: What numpy says of an array that was written in part; it does not say why.
_CUT_SHORT = re.compile(r"\d+ requested and \d+ written")
#: In a folder that is ready to be moved in: the files that it replaced, and the names to remove.
REPLACED, REMOVED = f"{PREFIX}replaced", f"{PREFIX}removed"
#: How long to wait for another process that puts a new version in place, which takes milliseconds.
PATIENCE_SECONDS = 30.0


@contextmanager
def atomic_file(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path`` that replaces ``path`` on success only.

    The temporary name keeps the suffix, because some writers (numpy, pandas) look at it. A link
    stays a link: what it points to is replaced. A device or a pipe cannot be replaced: it is
    written to as it is.
    """
    path = Path(path)
    try:
        if _is_stream(path):
            yield path
            return
        final = resolved(path)
        final.parent.mkdir(parents=True, exist_ok=True)
        make_file = partial(Path.touch, exist_ok=False)
        # What lies in a temporary folder is synchronized together with it.
        synced = not is_temporary(final.parent)
        with locked_temporary(final.parent, path.suffix, make_file) as temporary:
            yield temporary
            if synced:
                sync(temporary)
            os.replace(temporary, final)
        if synced:
            sync(final.parent)
    except OSError as error:
        raise cannot_write(path, error) from error


def check_file(path: str | Path) -> None:
    """Raise an error before a long computation if its result could not be written to ``path``."""
    path = Path(path)
    if path.is_dir():
        raise RawlsError(f"cannot write {path}: it is a folder; use the name of a file")
    if not _is_stream(path):
        _try(path, path.resolve().parent)


def check_page(path: str | Path) -> None:
    """Raise an error for the name of a page that browsers would not open as one."""
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm") and not _is_stream(path):
        raise RawlsError(f"cannot write a page to {path}: end its name in .html")


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
    require_folder(path)
    _try(path, path.resolve(), into=True)


def _try(path: Path, folder: Path, *, into: bool = False) -> None:
    """Write a nameless file into ``folder``, or the nearest one above it that exists."""
    try:
        while not folder.exists():
            folder = folder.parent
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (OSError, RuntimeError) as error:
        raise cannot_write(path, error, into=into) from error


def resolved(path: Path, *, into: bool = False) -> Path:
    """Follow all links of a path that is written to, or ``into`` which files are written."""
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:  # links in a circle
        raise cannot_write(path, error, into=into) from error


def require_folder(path: Path) -> None:
    """Raise an error for a path that is a file."""
    if path.exists() and not path.is_dir():
        raise RawlsError(f"cannot write into {path}: it is a file, not a folder")


def _is_stream(path: Path) -> bool:
    """Whether writing to ``path`` reaches a device, a pipe or an open file of this process."""
    opened = path.parent in (Path("/dev/fd"), Path("/proc/self/fd"))
    if opened or path in (Path("/dev/stdout"), Path("/dev/stderr")):
        return True
    return path.exists() and not path.is_file() and not path.is_dir()


def cannot_write(path: Path, error: Exception, *, into: bool = False) -> RawlsError:
    """Return the error for a path that cannot be written to, or into."""
    why = str(getattr(error, "strerror", None) or error)
    if _CUT_SHORT.fullmatch(why):
        why = "not all of it could be written: the disk is full"
    return RawlsError(f"cannot write {'into ' if into else ''}{path}: {why}")


def is_temporary(path: Path) -> bool:
    """Whether this is the name of a temporary file or folder of this package."""
    return _TEMPORARY.fullmatch(path.name) is not None


@contextmanager
def locked_temporary(folder: Path, suffix: str, make: Callable[[Path], None]) -> Iterator[Path]:
    """Make a temporary file or folder by ``make`` and hold its lock; remove it at the end."""
    remove_leftovers(folder)
    while True:
        path = folder / f"{PREFIX}{secrets.token_hex(4)}{suffix}"
        try:
            make(path)
        except FileExistsError:
            continue
        # Until it is locked, another process may take it for a leftover.
        with _lock(path) as held:
            if held is not False:
                try:
                    yield path
                finally:
                    remove(path)
                return


def remove_leftovers(folder: Path) -> None:
    """Remove what killed processes left in ``folder``, or finish its move; locked ones stay."""
    try:
        with os.scandir(folder) as entries:
            leftovers = [Path(entry) for entry in entries if entry.name.startswith(PREFIX)]
    except OSError:
        return
    for path in leftovers:
        if not is_temporary(path) or path.is_symlink():
            continue
        # Without the right to write here, a reader gets the error of one_version.
        with suppress(OSError), _lock(path) as held:
            if held:
                if path.name.endswith(READY):
                    finish_move(path, folder)
                remove(path)


def finish_move(ready: Path, final: Path) -> None:
    """Move the files of a folder that is ready into ``final``, from wherever the move stopped."""
    new = sorted(entry.name for entry in ready.iterdir() if entry.name not in (REMOVED, REPLACED))
    for name in (*json.loads((ready / REMOVED).read_text(encoding="utf-8")), *new):
        if os.path.lexists(final / name):
            os.replace(final / name, ready / REPLACED / name)
    for name in new:
        os.replace(ready / name, final / name)
    sync(final)


def remove(path: Path) -> None:
    """Remove a file, or a folder after one rename to a temporary name; what cannot be, stays.

    After a kill all of a folder is left, or nothing but the temporary one.
    """
    with suppress(OSError):
        if not path.is_dir() or path.is_symlink():
            os.unlink(path)
            return
        if not is_temporary(path) or path.name.endswith(READY):
            hidden = path.with_name(f"{PREFIX}{secrets.token_hex(4)}")
            os.rename(path, hidden)
            path = hidden
        shutil.rmtree(path, ignore_errors=True)


def sync(path: Path) -> None:
    """Wait until a file's content, or a folder's names, are on the disk."""
    handle = _open(path)
    if handle is None:
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a disk without this function
            raise
    finally:
        os.close(handle)


def sync_tree(folder: Path) -> None:
    """Wait until a folder and everything in it are on the disk."""
    for parent, _, names in os.walk(folder):
        for name in names:
            if not Path(parent, name).is_symlink():
                sync(Path(parent, name))
        sync(Path(parent))


@contextmanager
def only_writer(folder: Path, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold the lock of a folder, so that no other process replaces its content meanwhile.

    Another process that has it is waited for 30 seconds; with ``waiting``, which is called again
    and again, until it is done or dead.
    """
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        with _lock(folder) as held:
            if held is not False:
                yield
                return
        if waiting is not None:
            waiting()
        elif time.monotonic() > until:
            raise RawlsError(f"cannot write into {folder}: another process is writing there")
        time.sleep(0.01)


@contextmanager
def own_folder(folder: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Make a folder and hold its lock; see :func:`only_writer`.

    Who had it before may remove it at the end: then it is made again.
    """
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        with only_writer(folder, waiting):
            if folder.is_dir():
                yield
                return


def _open(path: Path) -> int | None:
    """Open a file or folder to sync or lock it; None where that is not possible."""
    if fcntl is None:
        return None
    try:
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None


@contextmanager
def _lock(path: Path) -> Iterator[bool | None]:
    """Lock a file or folder: False if another process has it or moved it, None without locks."""
    handle = _open(path)
    try:
        yield None if handle is None else _locked(handle, path)
    finally:
        if handle is not None:
            os.close(handle)


def _locked(handle: int, path: Path) -> bool | None:
    held: bool | None = True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        held = None
    try:
        return held if os.path.samestat(os.fstat(handle), path.lstat()) else False
    except OSError:
        return False
