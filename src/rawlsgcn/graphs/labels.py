"""The checks of labels (-1 where a node has none), of stored masks, and the choice of the split."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from .._core.errors import RawlsError
from .raw_graph import RawGraph
from .splits import MASKS, Split, fits_paper_split, paper_split, random_split

Array = NDArray[Any]


def clean_labels(found: RawGraph, nodes: int, notes: list[str]) -> Tensor:
    """The labels y as int64; a note says which classes are empty."""
    where, y = found.labels_from, np.asarray(found.y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1 or y.dtype.kind not in "biuf":
        what = f"the shape {tuple(y.shape)}" if y.ndim != 1 else f"the type {y.dtype}"
        raise RawlsError(f"{where}: labels must be one integer for each node, they have {what}")
    if len(y) != nodes:
        raise RawlsError(f"{where} has {len(y)} labels for {nodes} nodes")
    if y.dtype.kind == "f":
        missing = np.flatnonzero(np.isnan(y))
        if len(missing):
            raise RawlsError(_missing_labels(found, missing))
        broken = np.flatnonzero(y != np.floor(y))
        if len(broken):
            first = int(broken[0])
            raise RawlsError(
                f"{where}: {found.who(first)} has the label {y[first]}: labels must be integers"
            )
    wrong = np.flatnonzero((y < -1) | (y >= max(len(y), 2)))
    if len(wrong):
        first = int(wrong[0])
        raise RawlsError(
            f"{where}: {found.who(first)} has the label {y[first]}: number the classes 0, 1, 2, … "
            "and write -1 for an unlabelled node"
        )
    labels = y.astype(np.int64)
    sizes = np.bincount(labels[labels >= 0])
    empty = np.flatnonzero(sizes == 0)
    if len(empty):
        which = ", ".join(map(str, empty[:5])) + (", …" if len(empty) > 5 else "")
        notes.append(f"no node has the label {which}, though higher labels are used.")
    return torch.from_numpy(labels)


def _missing_labels(found: RawGraph, missing: Array) -> str:
    named = ", ".join(found.who(int(node)) for node in missing[:3])
    more = f" and {len(missing) - 3} others have" if len(missing) > 3 else " has"
    if 1 < len(missing) <= 3:
        more = " have"
    return f"{found.labels_from}: {named}{more} no label: write -1 for an unlabelled node"


INVENTED = (
    "too few nodes for the paper's split (20 a class, 500, 1,000): a random split of "
    "10 % training, 10 % validation and 80 % test nodes is used."
)
"""The note on a small graph without masks that was given some."""


def has_own_split(graph: Data) -> bool:
    """Whether the masks are somebody's choice: stored with the graph, asked for, or set since.

    Those that the door gave a graph without any are not.
    """
    if any(graph.get(key) is None for key in MASKS):
        return False
    if not graph.get("split_invented"):
        return True
    y = graph.y.cpu()
    made = paper_split(y) if fits_paper_split(y) else random_split(y)
    return not all(
        torch.equal(graph[key].cpu(), mask) for key, mask in zip(MASKS, made, strict=True)
    )


def choose_split(graph: Data, found: RawGraph, split: str | None, notes: list[str]) -> None:
    """Give ``graph`` its three masks: see :func:`.validation.validate` for the choice."""
    y = graph.y
    # Masks that are there already may have been invented at an earlier pass through the door.
    if split is not None or not found.masks:
        graph.split_invented = split is None
    if not bool((y >= 0).any()):
        raise RawlsError(f"{found.labels_from}: every node is unlabelled (-1), nothing to learn")
    present = y[y >= 0]
    if bool((present == present[0]).all()):
        raise RawlsError(
            f"{found.labels_from}: every labelled node is of class {int(present[0])}: "
            "there must be two classes or more to tell apart"
        )
    if split is None and not found.masks and not fits_paper_split(y):
        split = "random"
        notes.append(INVENTED)
    if split == "stored" or (split is None and found.masks):
        masks = _stored_split(graph, found, notes)
    else:
        try:
            masks = random_split(y) if split == "random" else paper_split(y)
        except RawlsError as error:
            raise RawlsError(f"{found.labels_from}: {error}") from error
    for key, mask in zip(MASKS, masks, strict=True):
        graph[key] = mask


def _stored_split(graph: Data, found: RawGraph, notes: list[str]) -> Split:
    where, nodes = found.labels_from, len(graph.y)
    absent = [key for key in MASKS if key not in found.masks]
    if absent:
        raise RawlsError(
            f"{where} stores no {' and no '.join(absent)}: "
            "give all three masks, or choose the split 'paper' or 'random'"
        )
    masks = []
    for key in MASKS:
        mask = found.masks[key]
        if mask.ndim == 2 and len(mask) == nodes and mask.shape[1] > 0:
            if key == MASKS[0]:
                notes.append(f"the first of {mask.shape[1]} stored splits is used.")
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
        raise RawlsError(f"{where}: {found.who(int(overlap[0]))} is in more than one of the masks")
    unlabelled = int(sum((mask & (graph.y < 0)).sum() for mask in masks))
    if unlabelled:
        notes.append(f"{unlabelled:,} unlabelled nodes taken out of the stored masks.")
    split = Split(*(mask & (graph.y >= 0) for mask in masks))
    for key, chosen in zip(MASKS, split, strict=True):
        if not bool(chosen.any()):
            raise RawlsError(f"{where}: {key} has no labelled node in it")
    return split
