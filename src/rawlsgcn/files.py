"""Writing results so that a full disk, a crash or Ctrl-C leaves nothing half-written."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import RawlsError


@contextmanager
def atomic_file(path: str | Path) -> Iterator[Path]:
    """A temporary path beside ``path`` to write to; it takes ``path``'s place on success only.

    The temporary name keeps the suffix, because some writers (numpy, pandas) look at it.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(
            dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix
        )
        os.close(handle)
    except OSError as error:
        raise RawlsError(f"cannot write {path}: {error.strerror or error}") from error
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        raise RawlsError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_directory(path: str | Path) -> Iterator[Path]:
    """A temporary directory whose files move into ``path`` together, on success only.

    Files of the same names in ``path`` are replaced, others there are left alone.
    """
    path = Path(path)
    try:
        if path.exists() and not path.is_dir():
            raise RawlsError(f"cannot write into {path}: it is a file, not a folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}-"))
    except OSError as error:
        raise RawlsError(f"cannot write into {path}: {error.strerror or error}") from error
    try:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        if path.exists():
            for file in sorted(temporary.iterdir()):
                os.replace(file, path / file.name)
        else:
            os.replace(temporary, path)
    except OSError as error:
        raise RawlsError(f"cannot write into {path}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
