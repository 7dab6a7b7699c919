"""The split of a graph that comes without masks, and whether its masks are still a drawn split."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .._core.errors import RawlsError
from .catalog import MASKS
from .notes import GraphFacts
from .splits import Ratios, Split, draw_split, fits_paper_split, parse_split, ratio_split

if TYPE_CHECKING:
    from torch_geometric.data import Data

FEW_LABELS = Ratios(0.5, 0.25, 0.25)
"""The split of a graph without masks and with too few labels for the paper's."""


def default_split(y: Tensor) -> str | Ratios:
    """The split of a graph without masks.

    The paper's, if there are nodes enough for it; else half of the labeled nodes train and a
    quarter each validates and tests; with a handful of nodes, of which a quarter of each class may
    be none, the random split.
    """
    if fits_paper_split(y):
        return "paper"
    try:
        ratio_split(y, FEW_LABELS)
    except RawlsError:
        return "random"
    return FEW_LABELS


def still_drawn(y: Tensor, masks: Split, drawn: str) -> bool:
    """Whether masks are still those that an earlier validation drew; test nodes may be others."""
    try:
        first = _draw_again(y, drawn)
    except RawlsError:
        return False
    return torch.equal(masks.train_mask, first.train_mask) and torch.equal(
        masks.val_mask, first.val_mask
    )


def _draw_again(y: Tensor, drawn: str) -> Split:
    split = parse_split(drawn)
    assert split is not None
    return draw_split(y, split)


def has_own_split(graph: Data) -> bool:
    """Whether the masks were stored with the graph, asked for, or set since.

    Those that the validation made for a graph without any are not the graph's own.
    """
    if any(graph.get(key) is None for key in MASKS):
        return False
    if not GraphFacts.of(graph).split_made:
        return True
    try:
        made = _draw_again(graph.y.cpu(), GraphFacts.of(graph).split_made)
    except RawlsError:
        return True
    masks = zip(MASKS, made, strict=True)
    return not all(torch.equal(graph[key].cpu(), mask) for key, mask in masks)
