"""What a reader made of one input: it was read, refused in one sentence, or there is a finding."""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rawlsgcn._core.errors import RawlsError

from .reader import Reader, names_file

LONGEST = 1000
"""Characters of an error message; more is no sentence."""
#: Bytes of an input up to which no reader may need more memory than the children have.
SMALL = 1 << 20
#: No machine reserves more bytes than this, so that asking for them takes no memory.
MOST_ADDRESSABLE = 1 << 47
_OUT_OF_MEMORY = ("allocate", "out of memory", "bad_alloc", "storage size")


@dataclass(frozen=True)
class Outcome:
    """``kind`` is "accepted", "refused" or what is wrong; ``where`` is the place in the code."""

    kind: str
    where: str = ""
    message: str = ""

    @property
    def wrong(self) -> bool:
        return self.kind not in ("accepted", "refused")


def judge(reader: Reader, folder: Path, files: Mapping[str, bytes]) -> Outcome:
    """Read the files in ``folder``, in this process."""
    try:
        reader.read(folder)
    except RawlsError as error:
        return _judge_refusal(reader, error, folder, files)
    except Exception as error:
        return Outcome(type(error).__name__, _place(error), _short(error))
    return Outcome("accepted")


def _judge_refusal(
    reader: Reader, error: RawlsError, folder: Path, files: Mapping[str, bytes]
) -> Outcome:
    message = str(error)
    # A large file may need much memory; it need not be there.
    small = sum(map(len, files.values())) <= SMALL
    inner: BaseException | None = error if small else None
    while inner is not None:
        if _ran_out(inner):
            return Outcome("memory", _place(inner), _short(inner))
        inner = inner.__cause__ or inner.__context__
    if not names_file(message, files, folder, reader):
        return Outcome("unnamed", _place(error), _short(error))
    if len(message) > LONGEST or message.count("\n") > 2:
        return Outcome("long", _place(error), _short(error))
    return Outcome("refused", _place(error), message)


def _ran_out(error: BaseException) -> bool:
    """Whether memory was asked for that is not there."""
    asked = re.search(r"malloc of size (\d+) failed", str(error))
    if asked and int(asked[1]) > MOST_ADDRESSABLE:
        return False
    if isinstance(error, MemoryError):
        frames = traceback.extract_tb(error.__traceback__)
        # Python's parser says so of an expression that is nested too deeply.
        return not (frames and frames[-1].filename.endswith("ast.py"))
    words = str(error).lower()
    return isinstance(error, RuntimeError) and any(word in words for word in _OUT_OF_MEMORY)


def _place(error: BaseException) -> str:
    """The innermost line of the package in a traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/rawlsgcn/" in frame.filename.replace("\\", "/")]
    if not ours:
        return "outside"
    path = ours[-1].filename.replace("\\", "/").rpartition("/rawlsgcn/")[2]
    return f"{path}:{ours[-1].name}"


def _short(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
