"""The checks of labels: one integer for each node, -1 where it has none."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._core.errors import RawlsError
from .raw_graph import Found

Array = NDArray[Any]


def clean_labels(found: Found, nodes: int, notes: list[str]) -> Tensor:
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


def _missing_labels(found: Found, missing: Array) -> str:
    named = ", ".join(found.who(int(node)) for node in missing[:3])
    more = f" and {len(missing) - 3} others have" if len(missing) > 3 else " has"
    if 1 < len(missing) <= 3:
        more = " have"
    return f"{found.labels_from}: {named}{more} no label: write -1 for an unlabelled node"
