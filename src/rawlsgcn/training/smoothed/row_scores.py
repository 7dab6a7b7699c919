"""Class scores from rows of smoothed features, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...methods._ops.convolution import GraphConvolutionalNetwork
from ...methods.ensemble import scores_of
from .smoothed_files import READ_BYTES, SmoothedRows, read_blocks


@dataclass(frozen=True, eq=False)
class RowModel:
    """A trained MLP, the rows that it reads and its weight in a mean."""

    network: GraphConvolutionalNetwork
    file: SmoothedRows
    weight: float = 1.0

    @torch.no_grad()
    def scores(self, rows: NDArray[np.float32]) -> Tensor:
        """Compute the class scores of some rows, on the CPU."""
        self.network.eval()
        weight = next(self.network.parameters())
        x = torch.from_numpy(rows).to(weight.device, weight.dtype)
        out: Tensor = self.network(x, None).cpu()
        return out


def row_scores(
    models: Sequence[RowModel],
    nodes: NDArray[np.int64],
    temperature: float | None = None,
    block_bytes: int = READ_BYTES,
) -> Iterator[tuple[slice, Tensor]]:
    """Compute the class scores of some nodes, in rising order, a block at a time.

    Of several models the probabilities are averaged with their weights, and the scores of the mean
    divided by the ``temperature``; without one the scores are those of a single model. Of every
    file ``block_bytes`` are read at once.

    Yields:
        Which of the nodes a block holds, and their scores, on the CPU.
    """
    files = list({id(model.file): model.file for model in models}.values())
    for blocks in zip(*(read_blocks(file, nodes, block_bytes) for file in files), strict=True):
        part = blocks[0][0]
        rows = {id(file): block for file, (_, block) in zip(files, blocks, strict=True)}
        scores = [model.scores(rows[id(model.file)]) for model in models]
        if temperature is None:
            yield part, scores[0]
            continue
        pairs = zip(models, scores, strict=True)
        each = [model.weight * torch.softmax(one.double(), -1) for model, one in pairs]
        yield part, scores_of(torch.stack(each).sum(0), temperature).float()
