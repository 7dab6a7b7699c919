"""The split that a graph gets: its stored masks, the one asked for, or a default."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from .._core.errors import RawlsError
from .catalog import MASKS
from .default_split import default_split, still_drawn
from .raw_graph import RawGraph
from .splits import Ratios, Split, class_name, draw_split

if TYPE_CHECKING:
    from torch_geometric.data import Data


def choose_split(graph: Data, raw: RawGraph, split: str | Ratios | None) -> None:
    """Give ``graph`` its three masks: see :func:`.validation.validate` for the choice."""
    y, facts = graph.y, raw.facts
    # Masks that are there already may have been made by an earlier validation.
    if split is not None or not raw.masks:
        facts.split_made = ""
    if not bool((y >= 0).any()):
        raise RawlsError(f"{raw.labels_from}: every node is unlabeled (-1), nothing to learn")
    present = y[y >= 0]
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
    if split == "stored":
        masks = _stored_split(graph, raw)
        if not still_drawn(y, masks, facts.split_drawn):
            facts.split_drawn = ""
    else:
        try:
            masks = draw_split(y, split, raw.class_names)
        except RawlsError as error:
            raise RawlsError(f"{raw.labels_from}: {error}") from error
        facts.split_drawn = str(split)
    for key, mask in zip(MASKS, masks, strict=True):
        graph[key] = mask


def _stored_split(graph: Data, raw: RawGraph) -> Split:
    where, nodes = raw.labels_from, len(graph.y)
    absent = [key for key in MASKS if key not in raw.masks]
    if absent:
        raise RawlsError(
            f"{where} stores no {' and no '.join(absent)}: "
            "give all three masks, or draw a split with --split 0.6,0.2,0.2 (split='0.6,0.2,0.2')"
        )
    masks = []
    for key in MASKS:
        mask = raw.masks[key]
        if mask.ndim == 2 and len(mask) == nodes and mask.shape[1] > 0:
            raw.facts.stored_splits = mask.shape[1]
            mask = mask[:, 0]
        if mask.shape != (nodes,):
            raise RawlsError(
                f"{where}: {key} has the shape {tuple(mask.shape)}, but there are {nodes} nodes"
            )
        if mask.dtype.kind not in "biuf" or not np.isin(mask, (0, 1)).all():
            raise RawlsError(f"{where}: {key} must be true or false for each node")
        masks.append(torch.from_numpy(mask.astype(bool)))
    overlap = (torch.stack(masks).sum(0) > 1).nonzero().view(-1)
    if len(overlap):
        raise RawlsError(f"{where}: {raw.named(int(overlap[0]))} is in more than one of the masks")
    raw.facts.unlabeled_in_masks += int(sum((mask & (graph.y < 0)).sum() for mask in masks))
    split = Split(*(mask & (graph.y >= 0) for mask in masks))
    for key, chosen in zip(MASKS, split, strict=True):
        if not bool(chosen.any()):
            raise RawlsError(
                f"{where}: {key} has no labeled node in it: add some, or draw another split, such "
                "as '0.6,0.2,0.2'"
            )
    return split
