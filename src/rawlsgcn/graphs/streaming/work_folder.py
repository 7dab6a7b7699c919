"""The files of a sort while it runs, in the temporary folder of its result."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NAME = "work"


@contextmanager
def work_folder(temporary: Path) -> Iterator[Path]:
    """Create a folder inside a temporary one, and remove it at the end.

    What a killed process leaves goes with the temporary folder, which the next process that writes
    there removes (see :mod:`rawlsgcn._core.atomic_files`).
    """
    folder = temporary / _NAME
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
