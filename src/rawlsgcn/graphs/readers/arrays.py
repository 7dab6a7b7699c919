"""Arrays and sparse matrices in .npy and .npz files, read without ever unpickling anything.

What a file says of its own size is compared with its bytes before any memory is reserved, and
every index of a matrix is checked before it is used.
"""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy
from numpy.typing import NDArray

from ..._core.errors import RawlsError, reading
from ..._core.row_files import read_npy_header
from ..catalog import MASKS

Array = NDArray[Any]
LABEL_KEYS = ("labels", "y")
FEATURE_KEYS = ("x", "features")
_PICKLED = "holds pickled Python objects, which can run code and are not read: save plain arrays"
SMALL_FILE, MOST_CELLS = 2 << 20, 16_000_000
"""A compressed file of fewer bytes than the first may not hold an array of more cells than the
second, nor ``LARGEST_UNPACKED`` bytes in all."""
LARGEST_UNPACKED = 128 << 20
_NPY = b"\x93NUMPY"
#: The arrays of scipy's matrices besides the data.
_FORMS = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col")}


def open_zip(path: Path) -> zipfile.ZipFile:
    """A zip archive whose members are no longer than the file allows."""
    archive = zipfile.ZipFile(path)
    size, members = path.stat().st_size, archive.infolist()
    unpacked = sum(member.file_size for member in members)
    as_it_is = [member for member in members if member.compress_type == zipfile.ZIP_STORED]
    if sum(member.compress_size for member in members) > size or any(
        member.file_size > member.compress_size for member in as_it_is
    ):
        raise zipfile.BadZipFile("it is shorter than its directory says")
    if size < SMALL_FILE and unpacked > LARGEST_UNPACKED:
        raise RawlsError(
            f"{path} has {size:,} bytes and unpacks to {unpacked:,}: save it without compression"
        )
    return archive


def read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytearray:
    """The bytes of one member, unpacked in pieces so that they are in memory only once."""
    content = bytearray(member.file_size)
    view, done = memoryview(content), 0
    with archive.open(member) as file:
        while done < len(content):
            got = file.readinto(view[done : done + (1 << 24)])  # type: ignore[attr-defined]
            if not got:
                raise EOFError("the member is shorter than the directory says")
            done += got
    return content


class Archive:
    """An .npz file whose arrays are read only when asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with reading(path, "numpy arrays"):
            if _start(path) == _NPY:
                raise RawlsError(f"{path} is a single array, not an .npz: name it .npy")
            self._zip = open_zip(path)
            members = self._zip.infolist()
            self._members = {each.filename.removesuffix(".npy"): each for each in members}
        self.keys = set(self._members)

    def __getitem__(self, key: str) -> Array:
        with reading(self.path, "numpy arrays"):
            member = self._members[key]
            small = self.path.stat().st_size < SMALL_FILE
            with self._zip.open(member) as file:
                return _read_array(file, member.file_size, MOST_CELLS if small else None)

    def first(self, keys: tuple[str, ...]) -> Array | None:
        """The array under the first of these keys that is there."""
        return next((self[key] for key in keys if key in self.keys), None)

    def csr(self, prefix: str) -> Any | None:
        """The scipy CSR matrix in ``<prefix>_data``, ``_indices``, ``_indptr`` and ``_shape``."""
        for form, index in (("coo", "row"), ("csr", "indptr")):
            if f"{prefix}_{index}" in self.keys:
                return self._matrix(form, f"{prefix}_").tocsr()
        return None

    def whole(self) -> Any | None:
        """The matrix of a file that ``scipy.sparse.save_npz`` wrote."""
        if "format" not in self.keys:
            return None
        form = self["format"]
        name = form.tobytes().decode("latin1").replace("\0", "") if form.ndim == 0 else "no"
        return self._matrix(name[:20], "")

    def _matrix(self, form: str, prefix: str) -> Any:
        with reading(self.path, "a sparse matrix"):
            parts = [f"{prefix}{part}" for part in ("data", *_index_names(form), "shape")]
            absent = [part for part in parts if part not in self.keys]
            if absent:
                there = next(part for part in [*parts[::-1], "format"] if part in self.keys)
                raise RawlsError(f"has {there} but no {', no '.join(absent)}")
            data, one, other, shape = (self[part] for part in parts)
            return sparse_matrix(form, data, one, other, shape_of(shape))

    def masks(self) -> dict[str, Array]:
        return {key: self[key] for key in MASKS if key in self.keys}

    def features(self) -> Any | None:
        """``attr_*``, the matrix of the file, or a dense ``x`` or ``features``."""
        sparse = self.csr("attr")
        sparse = self.whole() if sparse is None else sparse
        return self.first(FEATURE_KEYS) if sparse is None else sparse.tocsr()


def graph_parts(path: Path) -> dict[str, Any]:
    """The parts of the graph in an .npz file, under the keys that docs/graphs.md lists."""
    archive = Archive(path)
    whole = archive.whole()
    if whole is not None:
        return {"adj_t": whole}
    adjacency = archive.csr("adj")
    keys = ["node_ids", *MASKS]
    if adjacency is None:
        keys += ["edge_index", "edge_weight", "num_nodes"]
        if "edge_index" not in archive.keys:
            raise RawlsError(
                f"{path} has no graph in it: expected the keys adj_data, adj_indices, adj_indptr "
                "and adj_shape, or edge_index, or a file of scipy.sparse.save_npz"
            )
    parts = {key: archive[key] for key in keys if key in archive.keys}
    return {**parts, "adj_t": adjacency, "x": archive.features(), "y": archive.first(LABEL_KEYS)}


def read_npy(path: Path) -> Array:
    """One array from an .npy file."""
    with reading(path, "numpy arrays"):
        if _start(path).startswith(b"PK"):
            raise RawlsError(f"{path} is an .npz archive, not a single array: name it .npz")
        with path.open("rb") as file:
            return _read_array(file, path.stat().st_size)


def _start(path: Path) -> bytes:
    with path.open("rb") as file:
        start = file.read(6)
    if start.startswith(b"\x80"):
        raise RawlsError(_PICKLED)
    if start and not start.startswith((b"PK", _NPY)):
        raise RawlsError("it is no file of numpy: write it with numpy.savez or numpy.save")
    return start


def read_header(file: IO[bytes], size: int) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and type of an array in numpy's format, of which ``file`` has ``size`` bytes."""
    start = file.read(12)
    length = int.from_bytes(start[8:10] if start[6:7] == b"\x01" else start[8:12], "little")
    if length > size:
        raise EOFError("the header is longer than the file")
    file.seek(0)
    try:
        return read_npy_header(file)
    except Exception as error:  # a header is parsed as Python, which may fail in any way
        raise EOFError("no header") from error


def _read_array(file: IO[bytes], size: int, most_cells: int | None = None) -> Array:
    """An array in numpy's format, of which ``file`` has ``size`` bytes with the header."""
    shape, dtype = read_header(file, size)
    if dtype.hasobject:
        raise RawlsError(_PICKLED)
    if dtype.kind not in "biufcSUMm" or dtype.shape:
        raise RawlsError(f"holds an array of {dtype}: only numbers and text are read")
    if not all(type(each) is int and each >= 0 for each in shape):
        raise RawlsError(f"holds an array of the shape {shape}")
    left = size - file.tell()
    if math.prod(shape) * max(dtype.itemsize, 1) > left or max((*shape, 0)) > max(size, 1 << 20):
        raise EOFError("the array is longer than the file")
    if most_cells is not None and math.prod(shape) > most_cells:
        raise RawlsError(
            f"unpacks to an array of {math.prod(shape):,} cells, too many for so small a file: "
            "save it without compression"
        )
    file.seek(0)
    return checked_array(npy.read_array(file, allow_pickle=False))


def checked_array(array: Array) -> Array:
    """Bytes of a file as values that Python can have, in this machine's byte order."""
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.dtype.kind == "b":
        return np.not_equal(array.view(np.uint8), 0)  # every true value is 1
    if array.dtype.kind == "U" and array.size and array.dtype.itemsize:
        points = np.ascontiguousarray(array).reshape(-1).view(np.uint32)
        if bool(((points > 0x10FFFF) | ((points >= 0xD800) & (points < 0xE000))).any()):
            raise RawlsError("holds text in which there are no characters: it is damaged")
    return array


# Sparse matrices: scipy, torch and compiled code follow the indices of a matrix without looking,
# and read or write foreign memory where they are wrong.

FREE_ROWS = 1 << 22
"""Rows that a matrix, or nodes that a graph, may have whatever is stored of them."""
ROWS_AN_ENTRY = 64
"""Beyond that, how many there may be for each entry that is stored."""


def plausible(rows: int, stored: int) -> bool:
    """Whether so many rows may be meant where so little is stored of them.

    A single number in a file could otherwise fill the memory.
    """
    return rows <= max(FREE_ROWS, ROWS_AN_ENTRY * stored)


def shape_of(array: Array) -> tuple[int, int]:
    """The two sizes that a file keeps as an array."""
    if array.shape != (2,) or array.dtype.kind not in "iu":
        raise RawlsError(f"has a shape of {array.dtype} {array.shape} instead of two integers")
    rows, columns = array.tolist()
    if min(rows, columns) < 0 or max(rows, columns, rows * columns) >= 2**62:
        raise RawlsError(f"has a matrix of {rows} rows and {columns} columns")
    return rows, columns


def sparse_matrix(form: str, data: Array, one: Array, other: Array, shape: tuple[int, int]) -> Any:
    """A matrix by its rows and columns (form coo), or its indices and indptr (csr and csc)."""
    if data.ndim != 1 or data.dtype.kind not in "biufc":
        raise RawlsError(f"has entries of {data.dtype} {data.shape} instead of a list of numbers")
    for index in (one, other):
        if index.ndim != 1 or index.dtype.kind not in "iu":
            raise RawlsError(f"has indices of {index.dtype} {index.shape}: they must be integers")
    if data.dtype == np.float16:
        data = data.astype(np.float32)  # scipy has no halves
    if form != "csr" and not plausible(shape[0], len(data)):
        raise RawlsError(
            f"has a matrix of {shape[0]:,} rows with {len(data):,} entries, too empty to read"
        )
    one, other = (index.astype(np.int64, copy=False) for index in (one, other))
    try:
        if form == "coo":
            return sp.coo_matrix((data, (one, other)), shape=shape)
        matrix = (sp.csr_matrix if form == "csr" else sp.csc_matrix)((data, one, other), shape)
        matrix.check_format(full_check=True)
        # Also where the differences of wrong numbers are too large to be seen as negative.
        if len(data) != matrix.nnz or bool((other[1:] < other[:-1]).any()):
            raise ValueError("indptr must rise from 0 to the number of entries")
    except ValueError as error:
        raise RawlsError(f"has a matrix whose indices are wrong: {error}") from error
    return matrix


def checked_matrix(matrix: Any, where: str) -> Any:
    """A scipy matrix in CSR, CSC or COO form, its indices checked; other forms are refused."""
    with reading(where, "a sparse matrix"):
        one, other = (getattr(matrix, name) for name in _index_names(matrix.format))
        return sparse_matrix(matrix.format, matrix.data, one, other, matrix.shape)


def _index_names(form: str) -> tuple[str, str]:
    if form not in _FORMS:
        raise RawlsError(f"has a matrix in {form} form: save it in CSR form (matrix.tocsr())")
    return _FORMS[form]
