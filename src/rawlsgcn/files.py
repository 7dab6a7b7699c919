"""Writing results so that a full disk, a crash or Ctrl-C leaves nothing half-written."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import RawlsError, reading

_MOST_BYTES = 1 << 30


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
    try:
        final = path.resolve()
        final.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(
            dir=final.parent, prefix=f".{final.stem}-", suffix=path.suffix
        )
        os.close(handle)
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        raise _cannot(path, error) from error
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        os.replace(temporary, final)
    except OSError as error:
        raise _cannot(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_directory(path: str | Path) -> Iterator[Path]:
    """A temporary directory whose files move into ``path`` together, on success only.

    Files of the same names in ``path`` are replaced, others there are left alone. For a folder
    that exists the temporary one lies inside it, where there is the right to write and where
    moving a file never leaves the disk.
    """
    path = Path(path)
    try:
        final = path.resolve()
        _require_folder(path)
        there = final.is_dir()
        if not there:
            final.parent.mkdir(parents=True, exist_ok=True)
        inside = final if there else final.parent
        temporary = Path(tempfile.mkdtemp(dir=inside, prefix=".new-"))
    except (OSError, RuntimeError) as error:
        raise _cannot(path, error, into=True) from error
    try:
        yield temporary
        if there:
            _move(temporary, final)
        else:
            temporary.chmod(0o777 & ~_umask())
            os.replace(temporary, final)
    except OSError as error:
        raise _cannot(path, error, into=True) from error
    except RawlsError as error:
        # The temporary folder is gone by the time that anybody reads its name.
        raise RawlsError(str(error).replace(str(temporary), str(path))) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


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


def _require_folder(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise RawlsError(f"cannot write into {path}: it is a file, not a folder")


def _is_stream(path: Path) -> bool:
    """Whether writing to ``path`` reaches a device, a pipe or an open file of this process."""
    opened = path.parent in (Path("/dev/fd"), Path("/proc/self/fd"))
    if opened or path in (Path("/dev/stdout"), Path("/dev/stderr")):
        return True
    return path.exists() and not path.is_file() and not path.is_dir()


def _move(source: Path, target: Path) -> None:
    """Move every file of ``source`` into ``target``, or none of them."""
    files = sorted(source.iterdir())
    for file in files:
        if (target / file.name).is_dir():
            raise RawlsError(
                f"cannot write {target / file.name}: there is a folder of that name; move it away"
            )
    kept = Path(tempfile.mkdtemp(dir=target, prefix=".old-"))
    try:
        for file in files:
            if os.path.lexists(target / file.name):
                os.replace(target / file.name, kept / file.name)
        for file in files:
            os.replace(file, target / file.name)
    except BaseException:
        for file in files:
            if not file.exists():
                (target / file.name).unlink(missing_ok=True)
            if os.path.lexists(kept / file.name):
                os.replace(kept / file.name, target / file.name)
        raise
    finally:
        shutil.rmtree(kept, ignore_errors=True)


def _cannot(path: Path, error: Exception, *, into: bool = False) -> RawlsError:
    why = getattr(error, "strerror", None) or error
    return RawlsError(f"cannot write {'into ' if into else ''}{path}: {why}")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
