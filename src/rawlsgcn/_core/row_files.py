"""Read and write .npy files a part of their rows at a time, by system calls.

A page of a mapped file that was touched counts as memory of the process until the system takes it
back. What is read into a buffer does not: it stays in the system's own cache.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from .atomic_files import atomic_file
from .errors import RawlsError

#: The versions of .npy files that hold numbers; version 3 is for names of fields.
_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
# numpy parses a header with Python's parser, which in CPython 3.11 can fail in two threads at once:
# "AST constructor recursion depth mismatch".
_PARSING = threading.Lock()


def read_npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Read shape and type of an .npy file in C order; its numbers begin where the file is then."""
    with _PARSING:
        shape, _, kind = _READERS[npy.read_magic(file)](file)
    return shape, kind


def read_rows(mapped: NDArray[Any], first: int, out: NDArray[Any]) -> NDArray[Any]:
    """Read rows of a mapped array, from ``first`` on, from its file into ``out``.

    ``mapped`` is of ``np.load(..., mmap_mode="r")``, in C order; ``out`` is contiguous and of the
    same type.

    Raises:
        RawlsError: If the file was cut short since it was mapped.
    """
    assert isinstance(mapped, np.memmap)
    if not out.size:
        return out
    path = Path(str(mapped.filename))
    with path.open("rb", buffering=0) as file:
        file.seek(mapped.offset + first * mapped.strides[0])
        left = out.data.cast("B")
        while left:
            count = file.readinto(left)
            if not count:
                raise RawlsError(f"{path} is cut short: write it again")
            left = left[count:]
    return out


def npy_blocks(path: Path, rows: int) -> Iterator[NDArray[Any]]:
    """Yield the rows of an .npy file in C order, so many at a time."""
    with path.open("rb") as file:
        shape, kind = read_npy_header(file)
        for first in range(0, shape[0], rows):
            count = min(rows, shape[0] - first)
            block = np.fromfile(file, kind, count * math.prod(shape[1:]))
            yield block.reshape(count, *shape[1:])


def write_rows(
    path: Path, shape: tuple[int, ...], dtype: Any, parts: Iterable[NDArray[Any]]
) -> None:
    """Write an array whose rows come in parts; the file appears whole or not at all."""
    with atomic_file(path) as temporary, temporary.open("wb") as file:
        write_parts(file, shape, dtype, parts)


def write_parts(
    file: IO[bytes], shape: tuple[int, ...], dtype: Any, parts: Iterable[NDArray[Any]] = ()
) -> None:
    """Write the beginning of an .npy file, as ``numpy.save`` does, and those rows behind it."""
    header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape}
    npy.write_array_header_1_0(file, header)
    for part in parts:
        if part.size:
            file.write(np.ascontiguousarray(part, dtype).data)
