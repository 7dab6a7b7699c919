"""How many runs the stacked engine trains at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch

from ...methods import Inputs
from ...methods._ops.layer_stack import Layer

# Runs per block on the CPU: wide products pay for dense features, narrow ones for sparse.
DENSE_BLOCK, SPARSE_BLOCK = 5, 1
# A GPU trains as many runs at once as fit into this share of its free memory, of which a run takes
# so many numbers for every parameter and for every entry of a layer's input and output.
GPU_SHARE, PARAMETER_COPIES, ENTRY_COPIES = 0.8, 20, 12


def block_size(sizes: Sequence[int], layers: Sequence[Layer], inputs: Inputs, on_gpu: bool) -> int:
    """Return how many runs of a network are trained at once."""
    if on_gpu:
        room = GPU_SHARE * free_memory(inputs.device)
        return max(1, int(room) // run_bytes(sizes, layers, inputs.dtype))
    first = layers[0].forward
    sparse = first is not None and first.matrix.layout != torch.strided
    return SPARSE_BLOCK if sparse else DENSE_BLOCK


def run_bytes(sizes: Sequence[int], layers: Sequence[Layer], dtype: torch.dtype) -> int:
    """Return an upper bound of the memory that a run takes in a block on a GPU.

    For every parameter its value, gradient, rate, decay, Adam's two means and the copies of a
    recording; for every entry of a layer's input and output the passes' intermediate results.
    """
    parameters = sum((a + 1) * b for a, b in pairwise(sizes))
    given = [layer.forward.matrix.shape[0] for layer in layers if layer.forward]
    rows = given + given[-1:] * (len(layers) - len(given))
    # The first layer's input is shared by all runs.
    widths = pairwise([0, *sizes[1:]])
    entries = sum(count * (a + b) for count, (a, b) in zip(rows, widths, strict=True))
    return torch.finfo(dtype).bits // 8 * (PARAMETER_COPIES * parameters + ENTRY_COPIES * entries)


def free_memory(device: torch.device) -> int:
    """The bytes that can be allocated on a GPU: free ones and those that torch does not use."""
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(torch.cuda.mem_get_info(device)[0]) + unused
