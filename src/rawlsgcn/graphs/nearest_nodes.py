"""The nearest nodes by the cosine of their features, for a part of the nodes."""

from __future__ import annotations

import torch
from torch import Tensor

from .._core.errors import RawlsError
from .tf_idf import unit_rows

_BLOCK_BYTES = 256 << 20
#: Cosines are rounded to multiples of 1 / this number, so that rounding errors make no order.
_STEPS = 1 << 20


def nearest_nodes(
    features: Tensor, low: Tensor, lacks: Tensor, pairs: Tensor, *, exact: bool
) -> tuple[Tensor, Tensor]:
    """Return an edge (source, target) from each node of ``low`` to each of its nearest nodes.

    Node ``low[i]`` gets at most ``lacks[i]``, none of them itself, in ``pairs`` (source · n +
    target, sorted, both directions) or with a cosine of zero or less.
    """
    nodes, device = features.shape[0], features.device
    k = min(int(lacks.max()) if len(lacks) else 0, nodes - 1)
    empty = torch.empty(0, dtype=torch.long, device=device)
    if k <= 0 or features.shape[1] == 0:
        return empty, empty
    if not exact:
        raise RawlsError("not yet")
    low, lacks, pairs = low.to(device), lacks.to(device), pairs.to(device)
    if features.layout == torch.sparse_csr:
        features = unit_rows(features.float()).to_dense()
    else:
        features = unit_rows(features.float())
    size = max(1, _BLOCK_BYTES // (16 * nodes))
    sources, targets = [empty], [empty]
    for start in range(0, len(low), size):
        part, lack = low[start : start + size], lacks[start : start + size]
        keys = (features[part] @ features.t() * _STEPS).round().long()
        row = torch.arange(len(part), device=device)
        keys[row, part] = -1
        first = torch.searchsorted(pairs, part * nodes)
        count = torch.searchsorted(pairs, (part + 1) * nodes) - first
        at = torch.repeat_interleave(first - (count.cumsum(0) - count), count)
        at = at + torch.arange(len(at), device=device)
        keys[torch.repeat_interleave(row, count), pairs[at] % nodes] = -1
        keys = keys * nodes + torch.arange(nodes - 1, -1, -1, device=device)
        best = keys.topk(k, 1).values
        chosen = (best >= nodes) & (torch.arange(k, device=device) < lack[:, None])
        i, j = chosen.nonzero().unbind(1)
        sources.append(part[i])
        targets.append(nodes - 1 - best[i, j] % nodes)
    return torch.cat(sources), torch.cat(targets)
