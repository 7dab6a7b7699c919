"""Replaying a training step on a GPU: an epoch is launch-bound, so it is recorded once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor


def recorded(step: Callable[[], object], state: list[Tensor]) -> Callable[[], None]:
    """``step`` as a CUDA graph that is replayed by calling the result.

    CUDA graphs ask for a few ordinary calls before the recording; ``state``, all that the step
    changes, and the random stream are put back to what they were before them.
    """
    device = state[0].device
    with torch.cuda.device(device):
        before = [tensor.clone() for tensor in state]
        random = torch.cuda.get_rng_state(device)
        side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.current_stream(device).wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        for tensor, value in zip(state, before, strict=True):
            tensor.copy_(value)
        torch.cuda.set_rng_state(random, device)
    return partial(_replay, graph, step)


def _replay(graph: torch.cuda.CUDAGraph, step: Callable[[], object]) -> None:
    """Replay. ``step`` is held: the graph reads and writes its memory but does not keep it."""
    graph.replay()
