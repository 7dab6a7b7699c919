"""Vectors as numpy arrays on the CPU and as tensors on CUDA, by the same code.

Calls of numpy take a third of the time of torch's where vectors are short. Balancing uses only
functions that have the same name in both libraries.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

#: Numbers of float64 in 64 bytes, the widest register of a processor.
_WIDTH = 8
#: A numpy array or a torch tensor.
Array = Any


def array_module(device: torch.device) -> ModuleType:
    """Return the module (numpy or torch) whose functions take the arrays of that device."""
    return np if device.type == "cpu" else torch


def as_array(tensor: Tensor) -> Array:
    """Return an array of the device's module on the same memory."""
    return tensor.numpy() if tensor.device.type == "cpu" else tensor


def as_tensor(array: Array) -> Tensor:
    """Return a tensor on the same memory."""
    return array if isinstance(array, Tensor) else torch.from_numpy(array)


def empty_array(shape: tuple[int, ...], device: torch.device) -> Array:
    """Return an uninitialized float64 array, on the CPU in memory that numpy allocated.

    Numpy asks the system for large pages, torch does not; a product that reads a vector of millions
    of numbers in random order would otherwise wait for page addresses more than for the numbers.

    It begins at a multiple of 64 bytes: a compiler may add up the numbers before such an address
    separately, and the sum's last bits would then depend on the address.
    """
    if device.type == "cpu":
        count = math.prod(shape)
        room = np.empty(count + _WIDTH)
        start = -(room.ctypes.data // room.itemsize) % _WIDTH
        return room[start : start + count].reshape(shape)
    return torch.empty(shape, dtype=torch.float64, device=device)


def dot(x: Array, y: Array) -> float:
    """Return xᵀ y, on the CPU with the same bits for any number of threads and any address.

    BLAS splits a long sum between threads, so its bits depend on their number.
    """
    return float((x * y).sum())
