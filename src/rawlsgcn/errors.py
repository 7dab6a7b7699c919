"""The one kind of error that is the user's to mend, and the way names are suggested in it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class RawlsError(ValueError):
    """Something the user gave cannot be used; the message says what, where and what to do.

    The command line prints it as one sentence and exits with status 2.
    """


def unknown_name(kind: str, name: object, known: Iterable[str]) -> RawlsError:
    """The error for a ``name`` that is not one of ``known``, with the nearest ones."""
    known = list(known)
    near = difflib.get_close_matches(str(name).lower(), known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(known)}."
    return RawlsError(f"unknown {kind} '{name}': {hint}")


def missing_extra(what: str, extra: str) -> RawlsError:
    """The error for a feature whose optional dependency is not installed."""
    return RawlsError(f"{what} needs an optional package: pip install 'rawlsgcn[{extra}]'")


def out_of_memory(error: BaseException) -> bool:
    """Whether ``error`` says that memory ran out, which torch says in several ways."""
    if isinstance(error, MemoryError):
        return True
    words = ("allocate", "out of memory", "storage size", "overflow when unpacking")
    return isinstance(error, RuntimeError | TypeError) and any(
        word in str(error).lower() for word in words
    )
