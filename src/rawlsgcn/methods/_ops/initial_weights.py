"""Initial weights, drawn on the CPU so that a seed means the same on any device."""

from __future__ import annotations

import math
from typing import TypeVar

import torch
from torch import nn

M = TypeVar("M", bound=nn.Module)


def draw_uniform(module: nn.Module, generator: torch.Generator | None) -> None:
    """Every parameter uniform in ±1/√(d_out); d_out is its last dimension."""
    for parameter in module.parameters():
        bound = 1 / math.sqrt(parameter.shape[-1])
        draw = torch.empty(parameter.shape).uniform_(-bound, bound, generator=generator)
        parameter.data.copy_(draw)


def empty(kind: type[M], *sizes: int) -> M:
    """A module of torch whose weights are not drawn yet: torch would use the global generator."""
    module: M = torch.nn.utils.skip_init(kind, *sizes)  # type: ignore[no-untyped-call]
    return module
