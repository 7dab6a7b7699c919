"""The choice of the split, and the checks of masks that came with the graph."""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch_geometric.data import Data

from .._core.errors import RawlsError, unknown_name
from .raw_graph import MASKS, Found
from .splits import Split, fits_paper_split, paper_split, random_split

EVALUATE = ("test", "all")
"""The values of ``evaluate=`` and ``--evaluate``."""


def evaluate_on(graph: Data, which: str) -> Data:
    """The graph with the nodes to judge as its test nodes; the one given is not touched.

    "test" keeps the test mask, "all" judges every labelled node outside training and validation.
    """
    if which not in EVALUATE:
        raise unknown_name("choice of nodes", which, EVALUATE)
    if which == "test":
        return graph
    chosen = copy.copy(graph)
    chosen.test_mask = ~(graph.train_mask | graph.val_mask) & (graph.y >= 0)
    return chosen


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


def choose_split(graph: Data, found: Found, split: str | None, notes: list[str]) -> None:
    """Give ``graph`` its three masks: see :func:`.checks.assemble` for the choice."""
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


def _stored_split(graph: Data, found: Found, notes: list[str]) -> Split:
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
