"""Graphs saved by torch: a torch_geometric ``Data``, or a plain dict of tensors, in a .pt file.

A .pt file is a zip archive of a pickle and of the bytes of its tensors. The pickle is read as data
(:mod:`.safe_pickles`) and every tensor is built of bytes that are there: no object of the file is
trusted, also not one of numpy or torch, whose own loaders can be made to show foreign memory.
"""

from __future__ import annotations

import math
import pickle
import sys
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..._core.errors import RawlsError, reading
from .arrays import checked_array, open_zip, plausible, read_member
from .safe_pickles import Call, array_of, is_array, load_inert, whole_numbers

_TENSOR, _PARAMETER = "torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_parameter"
_SPARSE = "torch._utils._rebuild_sparse_tensor"
_PLAIN = {"_codecs.encode", "builtins.set", "builtins.slice", "builtins.complex"}
_DATA = "torch_geometric.data.data.Data"
_STORAGES: dict[str, torch.dtype] = {
    "Double": torch.float64, "Float": torch.float32, "Half": torch.float16,
    "BFloat16": torch.bfloat16, "Long": torch.int64, "Int": torch.int32, "Short": torch.int16,
    "Char": torch.int8, "Byte": torch.uint8, "Bool": torch.bool,
    "ComplexFloat": torch.complex64, "ComplexDouble": torch.complex128,
}  # fmt: skip
_LAYOUTS: dict[str, torch.layout] = {
    "torch.sparse_coo": torch.sparse_coo,
    "torch.sparse_csr": torch.sparse_csr,
    "torch.sparse_csc": torch.sparse_csc,
}
_DEEPEST = 20


def read_saved(path: Path, names: Collection[str]) -> dict[str, Any]:
    """The attributes of these names of the ``Data`` that ``torch.save(data, path)`` wrote.

    They are tensors, arrays, numbers, texts and lists; others may be of any kind.
    """
    with reading(path, "a file of torch"):
        return _Saved(path).parts(names)


def read_tensor(path: Path) -> Tensor:
    """The one tensor, dense or sparse, that ``torch.save(tensor, path)`` wrote."""
    with reading(path, "a file of torch"):
        return _Saved(path).tensor()


class _Saved:
    """One .pt file, whose tensors are read when they are needed."""

    def __init__(self, path: Path) -> None:
        if not zipfile.is_zipfile(path):
            raise RawlsError(
                "it is not a torch file, or is damaged or cut short, or is of torch before 1.6: "
                "write it with torch.save"
            )
        self._zip = open_zip(path)
        names = self._zip.namelist()
        self._root = next((name[:-8] for name in names if name.endswith("data.pkl")), "")
        if f"{self._root}byteorder" in names:
            order = self._zip.read(f"{self._root}byteorder").decode("latin1")
            if order != sys.byteorder:
                raise RawlsError(f"it was written on a {order}-endian machine")
        content = self._zip.read(f"{self._root}data.pkl")
        self._left = len(content)
        self._storages: dict[str, Tensor] = {}
        try:
            self._content = load_inert(content, _may_be_named)
        except pickle.UnpicklingError as error:
            raise RawlsError(
                f"it holds Python objects besides tensors, or is no torch file ({error}): save a "
                "torch_geometric Data (or a dict of tensors) with torch.save"
            ) from error

    def parts(self, names: Collection[str]) -> dict[str, Any]:
        """The attributes of the graph that have these names."""
        content = self._content
        if isinstance(content, tuple) and content:
            content = content[0]  # torch_geometric's own processed files: (data, slices[, class])
        if isinstance(content, Call) and content.name == _DATA:
            content = _mapping(content)
        elif not isinstance(content, dict):
            kind = _kind(content).rpartition(".")[2].removeprefix("_rebuild_")
            raise RawlsError(
                f"it holds a {kind}: expected a torch_geometric Data or a dict of tensors"
            )
        elif not all(isinstance(key, str) for key in content):
            raise RawlsError(
                "it holds a dict whose keys are not all names: call its tensors edge_index, x, y, "
                "as in a torch_geometric Data"
            )
        return {key: self._value(content[key], key, 0) for key in names if key in content}

    def tensor(self) -> Tensor:
        """The tensor that is all of the file."""
        is_call = isinstance(self._content, Call)
        found = self._value(self._content, "the tensor", 0) if is_call else None
        if not isinstance(found, Tensor):
            raise RawlsError(f"it holds a {type(self._content).__name__}: save one tensor")
        return found

    def _value(self, value: Any, key: str, depth: int) -> Any:
        """A value of the pickle as a tensor, an array or plain Python."""
        self._left -= 1
        if depth > _DEEPEST or self._left < 0:
            # Lists within lists may refer to each other: short to write and endless to read.
            raise RawlsError(f"{key} holds lists within lists without end")
        if isinstance(value, list | tuple):
            return [self._value(each, key, depth + 1) for each in value]
        if value is None or isinstance(value, bool | int | float | str):
            str(value).encode()  # half a character would only fail when it is written
            return value
        if is_array(value):
            return array_of(value)
        if not isinstance(value, Call) or depth:
            raise RawlsError(f"{key} is a {_kind(value)}: give a tensor")
        if value.name == _PARAMETER and value.arguments:
            value = value.arguments[0]
        if isinstance(value, Call) and value.name == _SPARSE:
            return self._sparse(value.arguments, key)
        return self._tensor(value, key)

    def _tensor(self, value: Any, key: str) -> Tensor:
        if not isinstance(value, Call) or value.name != _TENSOR or len(value.arguments) < 4:
            raise RawlsError(f"{key} is a {_kind(value)}: give a plain tensor")
        storage, offset, size, stride = value.arguments[:4]
        size = _size(size)
        flat = self._storage(storage, key)
        if not all(map(whole_numbers, ((offset,), size, stride))):
            raise RawlsError(f"{key} has a shape of {size}")
        last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        count = math.prod(size)
        if (count and last >= len(flat)) or len(size) > 8:
            raise RawlsError(
                f"{key} of the shape {size} is not all in the file, which is damaged or cut short"
            )
        if count > max(len(flat), 1 << 22) or max((*size, 0)) > 2**62:
            raise RawlsError(f"{key} repeats few numbers often: save {key}.clone()")
        if not count:
            return torch.empty(size, dtype=flat.dtype)
        return flat.as_strided(size, stride, offset)

    def _storage(self, storage: Any, key: str) -> Tensor:
        """The numbers that a tensor is a view of: those that are in the file."""
        arguments = storage.arguments if isinstance(storage, Call) else ()
        kind = arguments[1] if len(arguments) == 5 else None
        name = kind.name if isinstance(kind, Call) else ""
        dtype = _STORAGES.get(name.removeprefix("torch.").removesuffix("Storage"))
        if dtype is None or storage.name != "storage":
            raise RawlsError(f"{key} is no tensor of plain numbers")
        place = f"{self._root}data/{arguments[2]}"
        if f"{dtype} {place}" not in self._storages:
            content = read_member(self._zip, self._zip.getinfo(place))
            self._storages[f"{dtype} {place}"] = _numbers(content, dtype)
        return self._storages[f"{dtype} {place}"]

    def _sparse(self, arguments: tuple[Any, ...], key: str) -> Tensor:
        layout, parts = arguments
        name = str(layout.arguments[0]) if isinstance(layout, Call) and layout.arguments else ""
        if name not in _LAYOUTS:
            raise RawlsError(f"{key} is a {name or 'sparse'} tensor: give a dense one")
        last = 1 if name == "torch.sparse_coo" else 2
        *index, values = (self._tensor(part, key) for part in parts[: last + 1])
        size = _size(parts[last + 1])
        if not whole_numbers(size) or len(size) != 2 or values.dim() != 1:
            raise RawlsError(f"{key} is a sparse tensor of another shape than a matrix")
        if not plausible(size[0], len(values)):
            raise RawlsError(f"{key} of the shape {size} is too empty to read")
        if last == 1:
            return torch.sparse_coo_tensor(index[0], values, size, check_invariants=True)
        return torch.sparse_compressed_tensor(
            index[0], index[1], values, size, layout=_LAYOUTS[name], check_invariants=True
        )


def _may_be_named(name: str) -> bool:
    """What attributes that are not read may be of, besides tensors and plain Python."""
    return name.startswith(("torch.", "torch_geometric.", "numpy.")) or name in _PLAIN


def _kind(value: Any) -> str:
    """What a value would be, for error messages."""
    return value.name if isinstance(value, Call) else type(value).__name__


def _size(value: Any) -> Any:
    """The tuple in a ``torch.Size``."""
    return value.arguments[0] if isinstance(value, Call) and value.arguments else value


def _numbers(content: bytearray, dtype: torch.dtype) -> Tensor:
    """The bytes of a storage as a tensor of one dimension."""
    if dtype == torch.bool:
        return torch.from_numpy(checked_array(np.frombuffer(content, np.bool_)))
    count = len(content) // dtype.itemsize
    if not count:
        return torch.empty(0, dtype=dtype)
    return torch.frombuffer(content, dtype=dtype, count=count)


def _mapping(data: Call) -> dict[str, Any]:
    """The attributes of a pickled ``Data``."""
    store = data.state.get("_store") if isinstance(data.state, dict) else None
    state = store.state if isinstance(store, Call) else None
    mapping = state.get("_mapping") if isinstance(state, dict) else None
    if not isinstance(mapping, dict):
        raise RawlsError(
            "it holds a Data without attributes: save it with torch_geometric 2 or later"
        )
    return mapping
