"""Arrays the user gives as .npy or .npz, read without ever unpickling anything."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..errors import RawlsError
from .found import MASKS

Array = NDArray[Any]
LABEL_KEYS = ("labels", "y")
FEATURE_KEYS = ("x", "features")


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn what numpy, zip and scipy raise on a broken file into one sentence."""
    try:
        yield
    except RawlsError:
        raise
    except FileNotFoundError as error:
        raise RawlsError(f"there is no file {path}") from error
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise RawlsError(f"{path} is damaged or cut short: make or copy it again") from error
    except MemoryError as error:
        raise RawlsError(f"{path} names an array too large for this machine's memory") from error
    except (ValueError, OSError, KeyError, TypeError, IndexError) as error:
        if "pickle" in str(error).lower():
            raise RawlsError(
                f"{path} holds pickled Python objects, which are not read because they can run "
                "code: save plain arrays instead"
            ) from error
        reason = " ".join(str(error).split())
        raise RawlsError(f"{path} cannot be read as numpy arrays: {reason}") from error


def _refuse_foreign(path: Path) -> None:
    """numpy takes every file that it does not know for a pickle; most are something else."""
    with path.open("rb") as file:
        start = file.read(6)
    if start and not start.startswith((b"PK", b"\x93NUMPY", b"\x80")):
        raise RawlsError(f"{path} is no file of numpy: write it with numpy.savez or numpy.save")


class Archive:
    """An .npz file whose arrays are read only when asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with readable(path):
            _refuse_foreign(path)
            opened = np.load(path, allow_pickle=False)
            if not isinstance(opened, np.lib.npyio.NpzFile):
                raise RawlsError(f"{path} is a single array, not an .npz: name it .npy")
        self._file = opened
        self.keys = set(opened.files)

    def __getitem__(self, key: str) -> Array:
        with readable(self.path):
            array: Array = self._file[key]
            return array

    def first(self, keys: tuple[str, ...]) -> Array | None:
        """The array under the first of these keys that is there."""
        return next((self[key] for key in keys if key in self.keys), None)

    def csr(self, prefix: str) -> Any | None:
        """The scipy CSR matrix in ``<prefix>_data``, ``_indices``, ``_indptr`` and ``_shape``."""
        if f"{prefix}_indptr" not in self.keys:
            return None
        parts = [f"{prefix}_{part}" for part in ("data", "indices", "indptr", "shape")]
        absent = [part for part in parts if part not in self.keys]
        if absent:
            raise RawlsError(f"{self.path} has {prefix}_indptr but no {', no '.join(absent)}")
        data, indices, indptr, shape = (self[part] for part in parts)
        with readable(self.path):
            if indices.dtype.kind not in "iu" or indptr.dtype.kind not in "iu":
                raise ValueError(f"{prefix}_indices and {prefix}_indptr must be integers")
            matrix = sp.csr_matrix((data, indices, indptr), shape=tuple(int(s) for s in shape))
            matrix.check_format(full_check=True)
        return matrix

    def whole(self) -> Any | None:
        """The matrix of a file that ``scipy.sparse.save_npz`` wrote."""
        if "format" not in self.keys:
            return None
        with readable(self.path):
            matrix = sp.load_npz(self.path)
            if matrix.format in ("csr", "csc"):
                matrix.check_format(full_check=True)
        return matrix

    def masks(self) -> dict[str, Array]:
        return {key: self[key] for key in MASKS if key in self.keys}

    def features(self) -> Any | None:
        """``attr_*``, or a dense ``x`` or ``features``."""
        sparse = self.csr("attr")
        return self.first(FEATURE_KEYS) if sparse is None else sparse


def read_npy(path: Path) -> Array:
    """One array from an .npy file."""
    with readable(path):
        _refuse_foreign(path)
        array = np.load(path, allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise RawlsError(f"{path} is an .npz archive, not a single array: name it .npz")
        return array
