"""Pickles read as data: nothing in them is imported or called, and every array is checked.

A ``.pt`` file holds a pickle, and so do the raw files of Planetoid. A pickle is a program; here it
is run by an interpreter in which every class and function is only a name, so that all it can make
are numbers, texts, lists, tables and :class:`Call` objects, which say what would have been called.
"""

from __future__ import annotations

import io
import math
import pickle
import re
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..._core.errors import RawlsError
from .arrays import checked_array

_ARRAYS = {f"numpy.{core}.multiarray._reconstruct" for core in ("core", "_core")}
#: What a pickled numpy array consists of.
NUMPY = frozenset({"numpy.dtype", "numpy.ndarray", "_codecs.encode", *_ARRAYS})
_TABLES = ("collections.OrderedDict", "collections.defaultdict")
_DTYPE = re.compile(r"[biuf][1248]|f16|[US]\d{1,5}")


class Call:
    """A class or function by name; called, it is the call with its arguments, and a state."""

    __slots__ = ("arguments", "name", "state")

    def __init__(self, name: str, arguments: tuple[Any, ...] = ()) -> None:
        self.name, self.arguments = name, arguments
        self.state: Any = None

    def __call__(self, *arguments: Any) -> Any:
        return {} if self.name in _TABLES else Call(self.name, arguments)

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Unpickler(pickle._Unpickler):
    """Python's own unpickler, whose memory the pickle cannot make it reserve."""

    def __init__(self, content: bytes, known: Callable[[str], bool]) -> None:
        super().__init__(io.BytesIO(content), encoding="latin1")
        self._known = known

    def find_class(self, module: str, name: str) -> Any:
        full = f"{'builtins' if module == '__builtin__' else module}.{name}"
        if full not in _TABLES and not self._known(full):
            raise pickle.UnpicklingError(f"it holds {full}, which is no plain array")
        return Call(full)

    def persistent_load(self, pid: Any) -> Any:
        return Call("storage", pid if isinstance(pid, tuple) else (pid,))

    def _load_newobj(self) -> None:
        kind, arguments = self.stack[-2:]  # type: ignore[attr-defined]
        if not isinstance(kind, Call):
            raise pickle.UnpicklingError("it makes an object of no class")
        self.stack[-2:] = [kind(*arguments)]  # type: ignore[attr-defined]

    def _refuse_bytearray(self) -> None:
        # Its length is reserved before a byte of it is read.
        raise pickle.UnpicklingError("it holds a bytearray, which is no plain array")

    dispatch: ClassVar[Any] = {
        **pickle._Unpickler.dispatch,
        pickle.NEWOBJ[0]: _load_newobj,
        pickle.BYTEARRAY8[0]: _refuse_bytearray,
    }


def load_inert(content: bytes, known: Callable[[str], bool]) -> Any:
    """What a pickle describes; it may name nothing but ``known`` classes and functions.

    None of them is used, but a file that names others is not what it should be.
    """
    return _Unpickler(content, known).load()


def is_array(value: Any) -> bool:
    return isinstance(value, Call) and value.name in _ARRAYS


def array_of(value: Any) -> NDArray[Any]:
    """The numpy array that a pickle describes, made of its bytes, as many as its shape needs."""
    state = value.state if is_array(value) else None
    if not isinstance(state, tuple) or len(state) != 5:
        raise RawlsError("holds something else where an array is expected")
    _, shape, dtype, fortran, content = state
    content, kind = _bytes(content), _dtype(dtype)
    if not whole_numbers(shape) or math.prod(shape) * kind.itemsize != len(content):
        raise RawlsError("holds an array whose shape does not fit its bytes")
    array = checked_array(np.frombuffer(bytearray(content), kind))
    return array.reshape(shape, order="F" if fortran is True else "C")


def whole_numbers(shape: Any) -> bool:
    """Whether this is a tuple of sizes, none of them negative."""
    return isinstance(shape, tuple) and all(type(each) is int and each >= 0 for each in shape)


def _dtype(value: Any) -> np.dtype[Any]:
    """Of its code alone: the widths that a pickled dtype states beside it are not believed."""
    if not isinstance(value, Call) or value.name != "numpy.dtype" or not value.arguments:
        raise RawlsError("holds an array without a type")
    code, state = value.arguments[0], value.state
    order = state[1] if isinstance(state, tuple) and len(state) > 1 else "="
    if not isinstance(code, str) or not _DTYPE.fullmatch(code) or order not in ("<", ">", "|", "="):
        raise RawlsError(f"holds an array of {code}: only numbers and text are read")
    return np.dtype(f"{order}{code}")


def _bytes(value: Any) -> bytes:
    if isinstance(value, Call) and value.name == "_codecs.encode":  # how protocol 2 keeps bytes
        value = value.arguments[0] if value.arguments else None
    if isinstance(value, str):
        return value.encode("latin1")
    if not isinstance(value, bytes | bytearray):
        raise RawlsError("holds an array without its bytes")
    return bytes(value)
