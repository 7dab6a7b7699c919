"""Arrays in .npz files that are larger than memory, read from their beginning in blocks."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ..._core.errors import RawlsError, reading
from ..readers.arrays import checked_array, open_zip, read_header

Array = NDArray[Any]


class NpzMember:
    """An array of two dimensions in an .npz file, compressed or not, read in blocks.

    Args:
        path: The file.
        key: The name of the array.
        kinds: The kinds of numbers that it may hold, as in ``numpy.dtype.kind``.

    Attributes:
        shape: Its rows and columns.
    """

    def __init__(self, path: Path, key: str, kinds: str) -> None:
        self._path, self._name = path, f"{key}.npy"
        with reading(path, "numpy arrays"), self._open() as (file, size):
            self.shape, self._kind = read_header(file, size)
            begin = file.tell()
            entries = int(np.prod(self.shape, dtype=np.float64))
            if len(self.shape) != 2 or self._kind.kind not in kinds:
                raise RawlsError(
                    f"{path}: {key} is an array of {self._kind} of the shape {self.shape}"
                )
            if entries * self._kind.itemsize != size - begin:
                raise RawlsError(f"{path} is damaged: {key} does not have its length")
            file.seek(0)
            np.lib.format.read_magic(file)
            if np.lib.format.read_array_header_1_0(file)[1]:
                raise RawlsError(f"{path}: {key} is stored by columns: save it by rows")

    def _open(self) -> _OpenMember:
        return _OpenMember(self._path, self._name)

    def blocks(self, first: int, last: int, length: int) -> Iterator[Array]:
        """Entries ``first`` to ``last`` of the flat array, so many at a time."""
        with self._open() as (file, size):
            read_header(file, size)
            file.seek(first * self._kind.itemsize, 1)
            for begin in range(first, last, length):
                count = min(length, last - begin)
                content = file.read(count * self._kind.itemsize)
                if len(content) != count * self._kind.itemsize:
                    raise EOFError("the array is longer than the file")
                yield checked_array(np.frombuffer(content, self._kind))


class _OpenMember:
    """A member of a zip archive, opened."""

    def __init__(self, path: Path, name: str) -> None:
        self._archive = open_zip(path)
        self._name, self._path = name, path

    def __enter__(self) -> tuple[IO[bytes], int]:
        try:
            info: zipfile.ZipInfo = self._archive.getinfo(self._name)
        except KeyError as error:
            raise RawlsError(f"{self._path} has no {self._name.removesuffix('.npy')}") from error
        self._file = self._archive.open(info)
        return self._file, info.file_size

    def __exit__(self, *error: object) -> None:
        self._file.close()
        self._archive.close()
