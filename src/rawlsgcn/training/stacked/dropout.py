"""Dropout for many runs at once, fast to draw."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

# The eight bits of every byte as 0 or 2: one look-up turns a random byte into eight mask entries.
_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1) * np.float32(2)


class Dropout:
    """Dropout on wide activations (rows, runs * width): entries become 0 or grow by ``scale``.

    On the CPU every run draws from a stream of its own, so that a seed means the same masks
    whatever other runs train beside it. On a GPU one stream serves all runs: a CUDA graph can
    replay it.
    """

    def __init__(self, seeds: list[int], p: float, device: torch.device) -> None:
        self.p = p
        self.on_gpu = device.type == "cuda"
        self.streams = [np.random.Generator(np.random.SFC64(seed)) for seed in seeds]
        self.masks: dict[tuple[int, ...], NDArray[np.float32]] = {}
        # On the CPU p is met to 1 part in 65,536, and the scale is that of the met one.
        self.threshold = min(round(p * 65536), 65535)
        self.scale = 1 / (1 - (p if self.on_gpu else self.threshold / 65536))

    def __call__(self, wide: Tensor) -> Tensor:
        """``wide`` after dropout; on the CPU it is changed in place."""
        if self.p == 0:
            return wide
        if self.on_gpu:
            return torch.nn.functional.dropout(wide, self.p)
        mask = self._buffer(wide.shape)
        self.draw(mask.reshape(wide.shape[0], len(self.streams), -1))
        return wide.mul_(torch.from_numpy(mask))

    def _buffer(self, shape: torch.Size) -> NDArray[np.float32]:
        """Room for a mask, the same in every epoch: fresh memory costs as much as the numbers."""
        if tuple(shape) not in self.masks:
            self.masks[tuple(shape)] = np.empty(shape, dtype=np.float32)
        return self.masks[tuple(shape)]

    def draw(self, mask: NDArray[np.float32]) -> None:
        """Fill a mask of the shape (rows, runs, width)."""
        rows, runs, width = mask.shape
        if self.p == 0.5 and width % 8 == 0:
            picked = np.empty((rows, runs, width // 8), dtype=np.uint8)
            for index, stream in enumerate(self.streams):
                picked[:, index] = _bytes(stream, rows * width // 8).reshape(rows, -1)
            # With the default mode numpy would take into a copy first.
            np.take(_BITS, picked, axis=0, out=mask.reshape(*picked.shape, 8), mode="clip")
            return
        for index, stream in enumerate(self.streams):
            mask[:, index] = self._one(stream, rows * width).reshape(rows, width)

    def _one(self, stream: np.random.Generator, count: int) -> NDArray[np.float32]:
        if self.p == 0.5:
            return _BITS[_bytes(stream, -(-count // 8))].reshape(-1)[:count]
        draws = stream.integers(0, 65536, count, dtype=np.uint16)
        return (draws >= self.threshold) * np.float32(self.scale)


def _bytes(stream: np.random.Generator, count: int) -> NDArray[np.uint8]:
    """Random bytes as the generator makes them, eight at a time; ``bytes`` would copy them."""
    words = stream.bit_generator.random_raw(-(-count // 8))
    return np.asarray(words, dtype=np.uint64).view(np.uint8)[:count]
