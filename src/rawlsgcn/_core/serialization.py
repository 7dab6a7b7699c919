"""Reading back what the library keeps on disk, in JSON and safetensors, without trusting it.

The files may have been cut short, edited or copied from elsewhere: what does not hold is told in
one sentence that names the file, before anything is built from it.
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

Entries = Mapping[str, tuple[str, Callable[[Any], bool]]]
"""By name what an entry must be, in words and as a test."""


def is_whole(value: Any) -> bool:
    """Whether this is an integer of 0 or more that fits 64 bits; true and false are none."""
    return type(value) is int and 0 <= value < 2**63


def is_count(value: Any) -> bool:
    return is_whole(value) and value >= 1


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_truth(value: Any) -> bool:
    return isinstance(value, bool)


def read_json(path: Path, entries: Entries) -> dict[str, Any]:
    """A JSON file's table of entries, each of them checked; others in it are left alone.

    A file that cannot be opened is the caller's to tell (``OSError``).
    """
    content = path.read_bytes()
    with reading(path, "JSON"):
        found = json.loads(content.decode("utf-8"))
    if not isinstance(found, dict):
        raise RawlsError(f"{path} is damaged: it holds no table of entries")
    for name, (what, holds) in entries.items():
        if name not in found:
            raise RawlsError(f"{path} is damaged: it has no {name}")
        if not holds(found[name]):
            raise RawlsError(f"{path}: {name} must be {what}, not {short(found[name])}")
    return found


def read_tensors(path: Path, prefix: str = "") -> dict[str, Tensor]:
    """The tensors of a safetensors file whose names begin so, without that beginning.

    All are finite numbers of the types that are written here.
    """
    import torch
    from safetensors import safe_open

    kinds = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.bool)
    with reading(path, "safetensors"), safe_open(path, framework="pt") as file:
        names = [name for name in file.keys() if name.startswith(prefix)]  # noqa: SIM118
        tensors = {name.removeprefix(prefix): file.get_tensor(name) for name in names}
    for name, tensor in tensors.items():
        if tensor.dtype not in kinds:
            raise RawlsError(f"{path}: {short(name)} holds {tensor.dtype}, which is never written")
        if not bool(tensor.isfinite().all()):
            raise RawlsError(
                f"{path}: {short(name)} holds numbers that are NaN or infinite: its training "
                "diverged or the file is damaged"
            )
    return tensors


def require_fit(tensors: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> None:
    """Refuse tensors that are not those ``wanted``, by name, shape and type."""
    for name in sorted(tensors.keys() | wanted.keys()):
        if name not in tensors or name not in wanted:
            known = "missing" if name in wanted else "not known"
            raise RawlsError(f"the tensor {short(name)} is {known}")
        ours, theirs = ((tuple(each[name].shape), each[name].dtype) for each in (wanted, tensors))
        if ours != theirs:
            raise RawlsError(f"the tensor {short(name)} is {theirs}, not {ours}")


def jsonable(value: Any) -> Any:
    """Replace numbers that JSON does not have, NaN and the infinities, by null."""
    if isinstance(value, dict):
        return {name: jsonable(each) for name, each in value.items()}
    if isinstance(value, list):
        return [jsonable(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
