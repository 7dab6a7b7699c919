"""The error for invalid input, and helpers that write its message."""

from __future__ import annotations

import difflib
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

_LONGEST_MESSAGE = 900
#: The extra of pyproject.toml that brings a package.
_EXTRAS = {
    "typer": "cli",
    "rich": "cli",
    "matplotlib": "report",
    "jinja2": "report",
    "markupsafe": "report",
}
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError)


class RawlsError(ValueError):
    """Invalid input: the message says what is wrong, where, and what to do.

    The command line prints it as one sentence and exits with status 2. The message is one line of
    limited length, whatever it quotes.

    Args:
        message: The message.

    Example:
        >>> import rawlsgcn as rg
        >>> try:
        ...     rg.load("chamelon")
        ... except rg.RawlsError as error:
        ...     print(error)
        unknown dataset 'chamelon': did you mean chameleon?
    """

    def __init__(self, message: object = "") -> None:
        text = re.sub(r"\s*[\r\n\0]\s*", " ", str(message)[:100_000])
        text = re.sub(r"(\S{100})\S{200,}", r"\1…", text)
        longer = len(text) > _LONGEST_MESSAGE
        super().__init__(f"{text[:_LONGEST_MESSAGE]}…" if longer else text)


@contextmanager
def reading(path: str | Path, what: str = "", beside: Iterable[str] = ()) -> Iterator[None]:
    """Turn any exception while the file ``path`` is read into a RawlsError that names the file.

    Every reader of files uses it, so that no file ends in a traceback. ``what`` is the expected
    content ("a table"); ``beside`` are other names of the file, or files that are read with it.
    """
    try:
        yield
    except RawlsError as error:
        if any(name in str(error) for name in (Path(path).name, *beside)):
            raise
        raise RawlsError(f"{path}: {error}") from error
    except FileNotFoundError as error:
        raise RawlsError(f"there is no file {path}") from error
    except _DAMAGE as error:
        raise RawlsError(f"{path} is damaged or cut short: make or copy it again") from error
    except Exception as error:
        if out_of_memory(error):
            raise RawlsError(f"{path} needs more memory than this machine has") from error
        reason = " ".join(str(error).split())
        if not isinstance(error, OSError | ValueError | RuntimeError) or not reason:
            reason = f"{type(error).__name__} {reason}".strip()
        read = f"read as {what}" if what else "read"
        raise RawlsError(f"{path} cannot be {read}: {reason}") from error


def require_file(path: str | Path) -> None:
    """Raise an error if a path is not that of a file."""
    full = Path(path).expanduser()
    if os.path.isdir(full):
        raise RawlsError(f"{path} is a folder: name a file in it")
    if not os.path.isfile(full):  # Path.is_file raises on a name that is too long
        raise RawlsError(f"{path} does not exist")


def unknown_name(kind: str, name: object, known: Iterable[str], others: str = "") -> RawlsError:
    """Return the error for a ``name`` that is not one of ``known``, with the nearest ones.

    ``others`` says what else there may be.
    """
    known = list(known)
    near = difflib.get_close_matches(str(name).lower(), known, n=3, cutoff=0.5)
    hint = (
        f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(known)}{others}."
    )
    return RawlsError(f"unknown {kind} '{name}': {hint}")


def missing_extra(what: str, extra: str) -> RawlsError:
    """Return the error for a feature whose optional dependency is not installed."""
    return RawlsError(f"{what} needs an optional package: pip install 'rawlsgcn[{extra}]'")


@contextmanager
def needs_extra(what: str) -> Iterator[None]:
    """Turn the failed import of an optional package into a RawlsError that names its extra.

    ``what`` is what the package is needed for. Other failed imports stay what they are.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        raise missing_extra(what, extra) from error


def out_of_memory(error: BaseException) -> bool:
    """Whether ``error`` means that memory ran out, which is reported in several ways."""
    if isinstance(error, MemoryError):
        return True
    words = ("allocate", "out of memory", "storage size", "overflow when unpacking", "new thread")
    return isinstance(error, RuntimeError | TypeError) and any(
        word in str(error).lower() for word in words
    )
