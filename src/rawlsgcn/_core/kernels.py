"""The loader of the compiled kernels of ``kernels.c``.

They are part of the wheels, and are compiled where the package is installed from source with a C
compiler; elsewhere numpy and torch compute the same, slower, and :func:`missing_reason` says why.
``hatch_build.py`` puts the library beside this file under a name with the digest of its source, so
that kernels of another source are never called. Their threads are those of the OpenMP runtime that
torch has loaded, so torch must be imported first.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

_wanted: ContextVar[bool] = ContextVar("_wanted", default=True)
SOURCE = Path(__file__).with_name("kernels.c")
_ADDRESS, _COUNT, _NUMBER, _INT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double, ctypes.c_int
_MATRIX: list[Any] = [_COUNT, _ADDRESS, _ADDRESS, _INT, _ADDRESS]
#: The result and the arguments of each function; the last argument is the number of threads.
_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "product": (_NUMBER, [*_MATRIX, _COUNT, _ADDRESS, _ADDRESS, _INT, _ADDRESS, _ADDRESS, _INT]),
    "inspect": (_INT, [*_MATRIX, _COUNT, ctypes.c_uint64, _ADDRESS, _ADDRESS, _INT]),
    "move": (None, [*[_COUNT] * 3, *[_ADDRESS] * 6, *[_NUMBER] * 4, _ADDRESS, _ADDRESS, _INT]),
    "roots": (None, [_COUNT, _ADDRESS, _ADDRESS, _NUMBER, _ADDRESS, _INT]),
    "wide_product": (None, [*_MATRIX, _COUNT, _ADDRESS, _ADDRESS, _INT]),
    "smoothing_step": (None, [*_MATRIX, _COUNT, *[_ADDRESS] * 5, _INT]),
}
#: c and m of a step −x ∘ u with u = e / ((c + e) (1 + m x²)), where e = x ∘ (M x) − 1; m is a
#: number (0.0 or 1.0) for all nodes, or an array of one for each.
StepCoefficients: TypeAlias = tuple[float, Any]
#: The type of the values, as kernels.c numbers them.
_KINDS = {None: 0, torch.float32: 1, torch.float64: 2}


def path(folder: Path = SOURCE.parent) -> Path:
    """Return the path of the compiled library, whether it exists or not."""
    digest = hashlib.blake2b(SOURCE.read_bytes(), digest_size=6).hexdigest()
    return folder / f"_kernels-{digest}.so"


def kernels() -> Kernels | None:
    """Return the kernels; None if they were not compiled, cannot be loaded or are switched off."""
    found = _found() if _wanted.get() else None
    return found if isinstance(found, Kernels) else None


@contextmanager
def without_kernels() -> Iterator[None]:
    """Use numpy and torch inside this context, as if nothing was compiled."""
    token = _wanted.set(False)
    try:
        yield
    finally:
        _wanted.reset(token)


def missing_reason() -> str | None:
    """Return why :func:`kernels` are not used, for people to read; None if they are."""
    if not _wanted.get():
        return "they are switched off here"
    found = _found()
    return found if isinstance(found, str) else None


@cache
def _found() -> Kernels | str:
    """Load the kernels; return why that is not possible, if it is not."""
    library = path()
    try:
        return Kernels(ctypes.CDLL(str(library)))
    except (OSError, AttributeError, ValueError) as error:  # no such file, or another library
        if library.exists():
            return f"{library.name} cannot be loaded: {error}"
    try:
        why = library.with_suffix(".txt").read_text(encoding="utf-8").strip()
    except OSError:
        why = "install the package again where there is a C compiler"
    return f"they were not compiled: {why}"


class CSRArrays(NamedTuple):
    """Rows of a CSR matrix with 32-bit indices on the CPU; ``values`` is None for ones."""

    row_start: Tensor
    column: Tensor
    values: Tensor | None

    @property
    def usable(self) -> bool:
        """Whether the kernels support these types, and all arrays are contiguous."""
        parts = [part for part in self if part is not None]
        return (
            getattr(self.values, "dtype", None) in _KINDS
            and self.row_start.dtype == self.column.dtype == torch.int32
            and all(part.device.type == "cpu" and part.is_contiguous() for part in parts)
        )

    def arguments(self) -> tuple[int, int, int, int, int | None]:
        """Return the arguments that describe the matrix to a kernel."""
        values = self.values
        return (
            len(self.row_start) - 1,
            self.row_start.data_ptr(),
            self.column.data_ptr(),
            _KINDS[None if values is None else values.dtype],
            None if values is None else values.data_ptr(),
        )


class MatrixInspection(NamedTuple):
    """The stored diagonal of a matrix, whether M = Mᵀ, and its least and largest value.

    Both are NaN if a value is, and 1 for a matrix of ones.
    """

    diagonal: Tensor
    symmetric: bool
    low: float
    high: float


class _Inspection(ctypes.Structure):
    _fields_ = (("asymmetry", ctypes.c_uint64), ("low", _NUMBER), ("high", _NUMBER))


class Kernels:
    """The functions of ``kernels.c``, called with torch's number of threads."""

    def __init__(self, library: ctypes.CDLL) -> None:
        # The entries and nodes of a piece, and how many sums are made of each.
        self._entries, self._nodes, self._sums = (_COUNT * 3).in_dll(library, "rawls_sizes")
        self._call = {name: getattr(library, f"rawls_{name}") for name in _FUNCTIONS}
        for name, (result, arguments) in _FUNCTIONS.items():
            self._call[name].restype, self._call[name].argtypes = result, arguments

    def multiplication(
        self, matrix: CSRArrays, loops: bool
    ) -> Callable[[Tensor, Tensor, Tensor], float]:
        """Prepare products with M, or with M + I, or with some of their rows.

        The function takes x, its part for these rows and where to write M x; it returns xᵀ M x.
        """
        given, room = matrix.arguments(), np.empty(len(matrix.column) // self._entries + 1)
        product, at_room = self._call["product"], room.ctypes.data

        kept = matrix, room  # what the addresses point to lives as long as the function

        def multiply(x: Tensor, own: Tensor, out: Tensor, _: Any = kept) -> float:
            vectors = x.numel(), x.data_ptr(), own.data_ptr(), loops, out.data_ptr()
            return float(product(*given, *vectors, at_room, torch.get_num_threads()))

        return multiply

    def wide_product(self, matrix: CSRArrays, right: Tensor, out: Tensor) -> None:
        """Write M ``right`` to ``out``: both contiguous, of the values' type, rows of 64 bytes."""
        both = right.shape[1], right.data_ptr(), out.data_ptr()
        self._call["wide_product"](*matrix.arguments(), *both, torch.get_num_threads())

    def smoothing_step(
        self,
        row_start: Tensor,
        column: Tensor,
        values: Tensor | None,
        right: Tensor,
        own: Tensor,
        factor: Tensor,
        added: Tensor,
        out: Tensor,
    ) -> None:
        """Write diag(f) (M + I) B + T for some rows of M to ``out``, another matrix than B.

        The rows of M begin at ``row_start``, int64, of which the first need not be 0; ``column`` is
        int32 and ``values`` are of B's type, or None for ones. B is ``right``, float32 or float64,
        T ``added`` and f ``factor``; ``own`` are the rows of B that have the numbers of M's rows.
        Dense rows are contiguous and of a multiple of 64 bytes.
        """
        matrix = len(row_start) - 1, row_start.data_ptr(), column.data_ptr(), _KINDS[right.dtype]
        dense = [each.data_ptr() for each in (right, own, factor, added, out)]
        at_values = None if values is None else values.data_ptr()
        threads = torch.get_num_threads()
        self._call["smoothing_step"](*matrix, at_values, right.shape[1], *dense, threads)

    def inspect(self, matrix: CSRArrays, seed: int) -> MatrixInspection | None:
        """Inspect a matrix; None if it is damaged."""
        diagonal, out = torch.empty(len(matrix.row_start) - 1, dtype=torch.float64), _Inspection()
        arguments = *matrix.arguments(), len(matrix.column), seed, diagonal.data_ptr()
        threads = torch.get_num_threads()
        if not self._call["inspect"](*arguments, ctypes.addressof(out), threads):
            return None
        return MatrixInspection(diagonal, out.asymmetry == 0, out.low, out.high)

    def roots(self, sums: Any, diagonal: Any, mean: float, out: Any) -> None:
        """Write x with m x² + (sums − m) s x = 1, where m is the diagonal and s the mean."""
        given, (to,) = addresses(sums, diagonal), addresses(out)
        self._call["roots"](len(out), *given, mean / 2, to, torch.get_num_threads())

    def move_room(self, nodes: int) -> Any:
        """Allocate the memory of ``move`` for its sums."""
        return np.empty((nodes // self._nodes + 1, self._sums))

    def move(
        self,
        where: tuple[int, int],
        size: int,
        vectors: Sequence[int],
        weights: tuple[float, float],
        coefficients: StepCoefficients,
        room: Any,
    ) -> list[float]:
        """Run ``VectorUpdates.move`` for the nodes ``where``; return the numbers of ``UpdateSums``.

        The vectors are the addresses of three points (at, before, to), p, M p and the next p.
        """
        constant, diagonal = coefficients
        alike = isinstance(diagonal, float)
        number, at = (diagonal, None) if alike else (0.0, diagonal.ctypes.data)
        numbers, memory = (*weights, constant, number), (at, room.ctypes.data)
        self._call["move"](*where, size, *vectors, *numbers, *memory, torch.get_num_threads())
        sums: list[float] = room[0].tolist()
        return sums


def addresses(*arrays: Any) -> list[int]:
    """Return the addresses of numpy arrays."""
    return [array.ctypes.data for array in arrays]
