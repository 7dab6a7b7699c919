"""Which nodes are trained on, validated on and tested on: the paper's split and a random one."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from .._core.errors import RawlsError, unknown_name
from .catalog import SPLIT_SEED

if TYPE_CHECKING:
    from torch_geometric.data import Data

SPLITS = ("paper", "stored", "random")
"""The values of ``split=`` and ``--split``."""


EVALUATE = ("test", "all")
"""The values of ``evaluate=`` and ``--evaluate``."""


def require_split(split: str | None) -> None:
    """Refuse a split by an unknown name."""
    if split is not None and split not in SPLITS:
        raise unknown_name("split", split, SPLITS)


class Split(NamedTuple):
    """Three disjoint boolean masks over the nodes."""

    train_mask: Tensor
    val_mask: Tensor
    test_mask: Tensor


MASKS = Split._fields
"""The names of the masks, as torch_geometric has them."""


def paper_split(
    y: Tensor, per_class: int = 20, val: int = 500, test: int = 1000, seed: int = SPLIT_SEED
) -> Split:
    """The paper's split: ``per_class`` training nodes of every class, then validation and test.

    Drawn as the authors draw it: torch's generator, a ``randperm`` over each class in order,
    then one over all the remaining nodes. Unlabelled nodes (``y == -1``) are never drawn.
    """
    reason = _misfit(y, per_class, val, test)
    if reason:
        raise RawlsError(reason)
    generator = torch.Generator().manual_seed(seed)
    train = []
    for nodes in _by_class(y):
        order = torch.randperm(len(nodes), generator=generator)
        train.append(nodes[order[:per_class]])
    return _with_rest(y, torch.cat(train), val, test, generator)


def fits_paper_split(y: Tensor, per_class: int = 20, val: int = 500, test: int = 1000) -> bool:
    """Whether the graph has nodes enough for :func:`paper_split`."""
    return not _misfit(y, per_class, val, test)


def random_split(y: Tensor, train: float = 0.1, val: float = 0.1, seed: int = SPLIT_SEED) -> Split:
    """For graphs too small for the paper's split: fractions of the labelled nodes.

    Training nodes are drawn class by class, at least one of each class; what is neither
    training nor validation is the test.
    """
    labelled = int((y >= 0).sum())
    groups = _by_class(y)
    rest = labelled - sum(max(1, round(train * len(nodes))) for nodes in groups)
    if rest < 2:
        raise RawlsError(
            f"there are {labelled} labelled nodes in {len(groups)} classes, too few to split "
            "into training, validation and test nodes: label more nodes, or give masks of your own"
        )
    generator = torch.Generator().manual_seed(seed)
    chosen = []
    for nodes in groups:
        order = torch.randperm(len(nodes), generator=generator)
        chosen.append(nodes[order[: max(1, round(train * len(nodes)))]])
    validated = min(max(1, round(val * labelled)), rest - 1)
    return _with_rest(y, torch.cat(chosen), validated, rest - validated, generator)


def _by_class(y: Tensor) -> list[Tensor]:
    """The nodes of each class that has any, in the order of the classes."""
    labels = torch.bincount(y[y >= 0]).nonzero().view(-1).tolist()
    return [(y == label).nonzero().view(-1) for label in labels]


def _misfit(y: Tensor, per_class: int, val: int, test: int) -> str:
    """Why the paper's split cannot be drawn, or an empty string."""
    counts = torch.bincount(y[y >= 0]).tolist()
    for label, count in enumerate(counts):
        if 0 < count < per_class:
            return (
                f"class {label} has {count} labelled nodes, too few for the paper's split, which "
                f"trains on {per_class} of each class: use the 'random' split, or masks of your own"
            )
    rest = sum(counts) - per_class * sum(count > 0 for count in counts)
    if rest < val + test:
        return (
            f"{rest} labelled nodes remain after {per_class} of each class, too few for the "
            f"paper's split, which takes {val} for validation and {test} for the test: use the "
            "'random' split, or masks of your own"
        )
    return ""


def _with_rest(y: Tensor, train: Tensor, val: int, test: int, generator: torch.Generator) -> Split:
    taken = y < 0
    taken[train] = True
    rest = (~taken).nonzero().view(-1)
    rest = rest[torch.randperm(len(rest), generator=generator)]
    return Split(*(_mask(y, nodes) for nodes in (train, rest[:val], rest[val : val + test])))


def _mask(y: Tensor, nodes: Tensor) -> Tensor:
    mask = torch.zeros(len(y), dtype=torch.bool)
    mask[nodes] = True
    return mask


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
