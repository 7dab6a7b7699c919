"""Keep the caller's random state, which no call of the library changes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor


@contextmanager
def kept_random_state() -> Iterator[None]:
    """Restore the global generators of Python, numpy and torch (CPU and GPUs) afterwards.

    The library's methods use their own generators. This is for a user's method, and for recorded
    training steps on a GPU, which need torch's global generator.
    """
    python, arrays, cpu = random.getstate(), np.random.get_state(), torch.get_rng_state()
    gpus = _gpu_states()
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(arrays)
        torch.set_rng_state(cpu)
        if gpus:
            torch.cuda.set_rng_state_all(gpus)


def _gpu_states() -> list[Tensor]:
    """Return the states of all GPUs' generators; of none before torch has used a GPU."""
    started = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return torch.cuda.get_rng_state_all() if started else []


def random_state() -> dict[str, object]:
    """Return the state of the global generators of Python, numpy and torch, to be compared."""
    numpy: Any = np.random.get_state(legacy=False)
    if torch.cuda.is_available():
        torch.cuda.init()  # type: ignore[no-untyped-call]  # or its state would only appear later
    return {
        "Python": random.getstate(),
        "numpy": (numpy["state"]["key"].tobytes(), numpy["state"]["pos"], numpy["has_gauss"]),
        "torch": [state.numpy().tobytes() for state in (torch.get_rng_state(), *_gpu_states())],
    }
