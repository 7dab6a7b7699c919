"""One spelling for vectors on the CPU and on CUDA.

On the CPU they are numpy arrays, whose calls take a third of the time of torch's where vectors are
short; on CUDA they are tensors. The balancing uses only what both libraries call by the same name.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

#: Numbers in 64 bytes, the widest that a processor reads at once.
_WIDTH = 8
#: A numpy array or a torch tensor.
Array = Any
#: c and m of a step −x ∘ u with u = e / ((c + e) (1 + m x²)), where e = x ∘ (M x) − 1; m is a
#: number (0.0 or 1.0) for all nodes, or an array of one for each.
Damping: TypeAlias = tuple[float, Array]


def library(device: torch.device) -> ModuleType:
    """The module whose functions take the arrays of that device."""
    return np if device.type == "cpu" else torch


def array(tensor: Tensor) -> Array:
    """The same memory as an array of the device's library."""
    return tensor.numpy() if tensor.device.type == "cpu" else tensor


def tensor(array: Array) -> Tensor:
    """The same memory as a tensor."""
    return array if isinstance(array, Tensor) else torch.from_numpy(array)


def empty(shape: tuple[int, ...], device: torch.device) -> Array:
    """Room for numbers in float64, on the CPU in memory that numpy asked for.

    Numpy asks the system for large pages, torch does not: a product that reads a vector of millions
    of numbers in random order then waits for the addresses of pages more than for the numbers.

    It begins at a multiple of 64 bytes: a compiler may add up the numbers before such an address
    apart, and then the sum's last bits would depend on where the memory happens to lie.
    """
    if device.type == "cpu":
        count = math.prod(shape)
        room = np.empty(count + _WIDTH)
        start = -(room.ctypes.data // room.itemsize) % _WIDTH
        return room[start : start + count].reshape(shape)
    return torch.empty(shape, dtype=torch.float64, device=device)


def dot(x: Array, y: Array) -> float:
    """xᵀ y, on the CPU with the same bits for any number of threads and any place in memory.

    BLAS makes no such promise: it splits a long sum between threads.
    """
    return float((x * y).sum())
