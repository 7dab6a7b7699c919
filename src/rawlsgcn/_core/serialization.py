"""Checked reading of the library's own files, JSON and safetensors.

The files may be truncated, edited or copied from elsewhere. Everything is checked before it is used
and an error names the file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from reprlib import repr as short
from typing import TYPE_CHECKING, Any

from .errors import RawlsError, reading

if TYPE_CHECKING:
    from torch import Tensor

JsonFields = Mapping[str, tuple[str, Callable[[Any], bool]]]
"""For each required field a description of its values, and a test of them."""


def is_nonnegative_int(value: Any) -> bool:
    """Whether this is an integer from 0 to 2⁶³ − 1; booleans are not."""
    return type(value) is int and 0 <= value < 2**63


def is_positive_int(value: Any) -> bool:
    """Whether this is an integer from 1 to 2⁶³ − 1; booleans are not."""
    return is_nonnegative_int(value) and value >= 1


def is_string(value: Any) -> bool:
    return isinstance(value, str)


def is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def read_json(
    path: Path, fields: JsonFields, defaults: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Read a JSON object and check its ``fields``; further fields are ignored.

    A field that is missing has its value of the ``defaults``.

    Raises:
        OSError: If the file cannot be opened.
        RawlsError: If it is no JSON object, or a field is missing or invalid.
    """
    content = path.read_bytes()
    with reading(path, "JSON"):
        entries = json.loads(content.decode("utf-8"))
    if not isinstance(entries, dict):
        raise RawlsError(f"{path} is damaged: it is not a JSON object")
    entries = {**(defaults or {}), **entries}
    for name, (description, is_valid) in fields.items():
        if name not in entries:
            raise RawlsError(f"{path} is damaged: it has no {name}")
        if not is_valid(entries[name]):
            raise RawlsError(f"{path}: {name} must be {description}, not {short(entries[name])}")
    return entries


def read_tensors(path: Path, prefix: str = "") -> dict[str, Tensor]:
    """Read the tensors of a safetensors file whose names begin with ``prefix``, without it.

    Raises:
        RawlsError: If the file is damaged, or a tensor has NaN, infinity or an unexpected dtype.
    """
    import torch
    from safetensors import safe_open

    dtypes = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.bool)
    with reading(path, "safetensors"), safe_open(path, framework="pt") as file:
        names = [name for name in file.keys() if name.startswith(prefix)]  # noqa: SIM118
        tensors = {name.removeprefix(prefix): file.get_tensor(name) for name in names}
    for name, tensor in tensors.items():
        if tensor.dtype not in dtypes:
            raise RawlsError(f"{path}: {short(name)} holds {tensor.dtype}, which is never written")
        if not bool(tensor.isfinite().all()):
            raise RawlsError(
                f"{path}: {short(name)} holds numbers that are NaN or infinite: its training "
                "diverged or the file is damaged"
            )
    return tensors


def require_matching_tensors(tensors: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Raise an error unless the tensors have the names, shapes and types of those ``expected``."""
    for name in sorted(tensors.keys() | expected.keys()):
        if name not in tensors or name not in expected:
            problem = "missing" if name in expected else "not known"
            raise RawlsError(f"the tensor {short(name)} is {problem}")
        ours, theirs = ((tuple(each[name].shape), each[name].dtype) for each in (expected, tensors))
        if ours != theirs:
            raise RawlsError(f"the tensor {short(name)} is {theirs}, not {ours}")


def jsonable(value: Any) -> Any:
    """Replace numbers that JSON does not have, NaN and the infinities, by null."""
    if isinstance(value, dict):
        return {name: jsonable(each) for name, each in value.items()}
    if isinstance(value, list):
        return [jsonable(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
