"""Teacher and students: members trained again on what the best members are sure of.

Of the nodes without a training label, the most confident share of each predicted class and each
quarter of degrees becomes pseudo-labeled: confidence alone would choose nodes of high degree.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ...methods import Inputs

#: Shares of the nodes that become pseudo-labeled, one after another.
SHARES = (0.3, 0.7)
#: Pseudo-labeled nodes at most; of more, so many are drawn.
MOST_ROWS = 500


def confident_nodes(
    teacher: Tensor, degree: Tensor, train: Tensor, share: float, seed: int
) -> Tensor:
    """The share of each class and quarter of degrees that the teacher is most sure of, sorted.

    ``teacher`` has the class probabilities, (nodes, classes); ``train`` are the nodes that keep
    their labels. The ``seed`` decides which nodes are drawn if there are more than the most.
    """
    confidence, predicted = teacher.max(-1)
    edges = np.percentile(degree.numpy(), [25, 50, 75])
    quarter = torch.from_numpy(np.searchsorted(edges, degree.numpy(), side="left"))
    free = torch.ones(len(degree), dtype=torch.bool)
    free[train] = False
    nodes = free.nonzero().view(-1)
    group = (predicted * 4 + quarter)[nodes]
    # Sorted by group, and by falling confidence within: the first share of each is taken.
    order = torch.from_numpy(np.lexsort((-confidence[nodes].numpy(), group.numpy())))
    nodes, group = nodes[order], group[order]
    count = torch.bincount(group)
    first = count.cumsum(0) - count
    rank = torch.arange(len(nodes)) - first[group]
    chosen = nodes[rank < (share * count.double()).long().clamp(min=1)[group]]
    if len(chosen) > MOST_ROWS:
        random = torch.Generator().manual_seed(seed)
        chosen = chosen[torch.randperm(len(chosen), generator=random)[:MOST_ROWS]]
    return chosen.sort().values


def pseudo_labeled(inputs: Inputs, teacher: Tensor, nodes: Tensor) -> Inputs:
    """The graph with the teacher's labels of ``nodes`` too; they and the given weigh one half."""
    device, labeled = inputs.device, len(inputs.train)
    predicted = teacher.max(-1).indices[nodes].to(device)
    nodes = nodes.to(device)
    y = inputs.y.clone()
    y[nodes] = predicted
    train = torch.cat([inputs.train, nodes])
    weight = torch.full((len(train),), 0.5 / max(1, labeled), device=device)
    weight[labeled:] = 0.5 / max(1, len(nodes))
    return replace(inputs, train=train, y=y, train_weight=weight)
