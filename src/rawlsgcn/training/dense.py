"""Dense products on the CPU, by the faster of the two libraries that torch comes with.

``torch.mm`` of float32 goes to MKL; oneDNN does the tall products of a first layer in a tenth less
time on AMD processors. Torch reaches it through an operator that its compiler uses too but does
not document: where that is missing, MKL does the work.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

from ..threads import all_threads, depends_on_threads, training_threads


@cache
def _linear() -> Any:
    """left @ rightᵀ + bias by oneDNN, or None where this torch cannot; tried once, on first use."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return None
    try:
        linear = torch.ops.mkldnn._linear_pointwise
        ones = torch.ones(2, 2, dtype=torch.float32, device="cpu")
        done = linear(ones, ones, ones[0], "none", [], "")
        return linear if torch.equal(done, ones * 3) else None
    except (AttributeError, RuntimeError, TypeError):
        return None


@torch.no_grad()
def dense_product(
    left: Tensor, right: Tensor, bias: Tensor | None = None, out: Tensor | None = None
) -> Tensor:
    """left @ right, plus ``bias`` to every row, in new memory or in ``out``; without a gradient."""
    with all_threads() if _wants_all_threads(left, right, bias) else nullcontext():
        return _product(left, right, bias, out)


#: Operations from which waiting for a second thread on a busy machine costs less than it brings.
_LONG = 1 << 30
#: Whether the bits of a product of such matrices depend on the threads, as far as was seen.
_threads_matter: dict[tuple[object, ...], bool] = {}


def _wants_all_threads(left: Tensor, right: Tensor, bias: Tensor | None) -> bool:
    """Whether to use all threads even on a busy machine: for long products, and for same bits."""
    threads = training_threads()
    if threads in (None, 1) or left.device.type != "cpu":
        return False
    if 2 * left.shape[0] * left.shape[1] * right.shape[1] >= _LONG:
        return True
    shapes = (left.shape, left.stride(), right.shape, right.stride(), left.dtype, threads)
    if shapes not in _threads_matter:
        made = partial(_product, left, right, bias, None)
        _threads_matter[shapes] = depends_on_threads(made)
    return _threads_matter[shapes]


def _product(left: Tensor, right: Tensor, bias: Tensor | None, out: Tensor | None) -> Tensor:
    linear = _linear() if _suits_onednn(left, bias) else None
    if linear is not None:
        product: Tensor = linear(left, right.t(), bias, "none", [], "")
        return product if out is None else out.copy_(product)
    if bias is None:
        return torch.mm(left, right, out=out)
    return torch.addmm(bias, left, right, out=out)


def _suits_onednn(left: Tensor, bias: Tensor | None) -> bool:
    """Whether it is a product that oneDNN does right and fast: float32, and nothing to turn."""
    plain = left.device.type == "cpu" and left.dtype == torch.float32 and left.is_contiguous()
    return plain and left.shape[1] > 0 and (bias is None or bias.is_contiguous())
