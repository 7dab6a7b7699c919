"""Class scores from rows of smoothed features, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...methods._ops.convolution import GraphConvolutionalNetwork
from .row_reading import RowFile, read_blocks

Ints = NDArray[np.int64]


@torch.no_grad()
def row_scores(
    network: GraphConvolutionalNetwork, file: RowFile, nodes: Ints
) -> Iterator[tuple[slice, Tensor]]:
    """Compute the class scores of some nodes, a block at a time.

    Args:
        network: A trained MLP.
        file: The rows of all nodes.
        nodes: The numbers of the nodes, in rising order.

    Yields:
        Which of the nodes a block holds, and their scores, on the CPU.
    """
    network.eval()
    weight = next(network.parameters())
    for part, rows in read_blocks(file, nodes):
        x = torch.from_numpy(rows).to(weight.device, weight.dtype)
        yield part, network(x, None).cpu()
