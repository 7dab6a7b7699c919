"""The split that a graph gets: its stored masks, the one asked for, or a default.

Here is also whether the masks of a graph are still those that were drawn for it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from .._core.errors import RawlsError, reading
from .catalog import MASKS
from .notes import GraphFacts
from .raw_graph import RawGraph
from .splits import Ratios, Split, class_name, draw_split, parse_split

if TYPE_CHECKING:
    from torch_geometric.data import Data

FEW_LABELS = Ratios(0.5, 0.25, 0.25)
"""The split of a graph without masks and with too few labels for the paper's."""


def choose_split(graph: Data, raw: RawGraph, split: str | Ratios | None) -> None:
    """Give ``graph`` its three masks: see :func:`.validation.validate` for the choice."""
    y, facts = graph.y, raw.facts
    # Masks that are there already may have been made by an earlier validation.
    if split is not None or not raw.masks:
        facts.split_made = ""
    present = y[y >= 0]
    if not len(present):
        raise RawlsError(f"{raw.labels_from}: every node is unlabeled (-1), nothing to learn")
    if bool((present == present[0]).all()):
        only = class_name(int(present[0]), raw.class_names)
        raise RawlsError(
            f"{raw.labels_from}: every labeled node is of class {only}: "
            "there must be two classes or more to tell apart"
        )
    if split is None and raw.masks:
        split = "stored"
    elif split is None:
        split = default_split(y)
        facts.split_made = str(split)
    with reading(raw.labels_from, "labels and masks"):
        if split == "stored":
            masks = _stored_split(graph, raw)
            first = _draw_again(y, facts.split_drawn)
            # Test nodes may be others by now.
            if first is None or not all(map(torch.equal, masks[:2], first[:2])):
                facts.split_drawn = ""
        else:
            masks = draw_split(y, split, raw.class_names)
            facts.split_drawn = str(split)
    for key, mask in zip(MASKS, masks, strict=True):
        graph[key] = mask


def _stored_split(graph: Data, raw: RawGraph) -> Split:
    nodes = len(graph.y)
    absent = [key for key in MASKS if key not in raw.masks]
    if absent:
        raise RawlsError(
            f"{raw.labels_from} stores no {' and no '.join(absent)}: give all three masks, or "
            "draw a split with --split 0.6,0.2,0.2 (split='0.6,0.2,0.2')"
        )
    masks = []
    for key in MASKS:
        mask = raw.masks[key]
        if mask.ndim == 2 and len(mask) == nodes and mask.shape[1] > 0:
            raw.facts.stored_splits = mask.shape[1]
            mask = mask[:, 0]
        if mask.shape != (nodes,):
            raise RawlsError(
                f"{key} has the shape {tuple(mask.shape)}, but there are {nodes} nodes"
            )
        if mask.dtype.kind not in "biuf" or not np.isin(mask, (0, 1)).all():
            raise RawlsError(f"{key} must be true or false for each node")
        masks.append(torch.from_numpy(mask.astype(bool)))
    stacked, labeled = torch.stack(masks), graph.y >= 0
    overlap = (stacked.sum(0) > 1).nonzero().view(-1)
    if len(overlap):
        raise RawlsError(f"{raw.named(int(overlap[0]))} is in more than one of the masks")
    raw.facts.unlabeled_in_masks += int((stacked & ~labeled).sum())
    for key, mask in zip(MASKS, stacked & labeled, strict=True):
        if not bool(mask.any()):
            raise RawlsError(
                f"{key} has no labeled node in it: add some, or draw another split, such as "
                "'0.6,0.2,0.2'"
            )
    return Split(*(stacked & labeled))


def default_split(y: Tensor) -> str | Ratios:
    """The split of a graph without masks.

    The paper's, if there are nodes enough for it; else half of the labeled nodes train and a
    quarter each validates and tests; with a handful of nodes, of which a quarter of each class may
    be none, the random split.
    """
    for split in ("paper", FEW_LABELS):
        with suppress(RawlsError):
            draw_split(y, split)
            return split
    return "random"


def has_own_split(graph: Data) -> bool:
    """Whether the masks were stored with the graph, asked for, or set since.

    Those that the validation made for a graph without any are not the graph's own.
    """
    if any(graph.get(key) is None for key in MASKS):
        return False
    made = _draw_again(graph.y.cpu(), GraphFacts.of(graph).split_made)
    masks = [graph[key].cpu() for key in MASKS]
    return made is None or not all(map(torch.equal, masks, made))


def _draw_again(y: Tensor, drawn: str) -> Split | None:
    """The masks that an earlier validation drew; None where it drew none."""
    try:
        split = parse_split(drawn or None)
        return None if split is None else draw_split(y, split)
    except RawlsError:
        return None
