"""Splits into training, validation and test nodes: the paper's, at random, or by ratio."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from .._core.errors import RawlsError, unknown_name
from .catalog import MASKS as MASKS
from .catalog import SPLIT_SEED, SPLITS
from .notes import first_few

if TYPE_CHECKING:
    from torch_geometric.data import Data

SPLIT_WORDS = ("train", "val", "test")
"""What a column of a table calls the three parts of a split."""
EVALUATE = ("test", "all")
"""The values of ``evaluate=`` and ``--evaluate``."""
SplitChoice = str | Sequence[float] | None
"""What ``split=`` takes: a name, three ratios (also as the text '0.6,0.2,0.2'), or None."""


class Ratios(NamedTuple):
    """The shares of the labeled nodes that train, validate and test."""

    train: float
    val: float
    test: float

    def __str__(self) -> str:
        return ",".join(f"{share:g}" for share in self)


def parse_split(split: SplitChoice) -> str | Ratios | None:
    """Return the name of a split, its ratios, or None for the default.

    Raises:
        RawlsError: If the name is unknown, or the ratios are not three positive numbers that sum
            to at most one.
    """
    if split is None or (isinstance(split, str) and split in SPLITS):
        return split
    if isinstance(split, str) and not any(character.isdigit() for character in split):
        raise unknown_name("split", split, (*SPLITS, "three ratios such as 0.6,0.2,0.2"))
    try:
        shares = [float(share) for share in (split.split(",") if isinstance(split, str) else split)]
    except (TypeError, ValueError):
        shares = []
    if len(shares) != 3 or not all(0 < share < 1 for share in shares) or sum(shares) > 1 + 1e-9:
        raise RawlsError(
            "a split by ratio is three positive numbers that sum to at most 1, the shares of "
            f"training, validation and test nodes, such as 0.6,0.2,0.2, not {split!r}"
        )
    return Ratios(*shares)


class Split(NamedTuple):
    """Three disjoint boolean masks over the nodes."""

    train_mask: Tensor
    val_mask: Tensor
    test_mask: Tensor


def paper_split(
    y: Tensor,
    per_class: int = 20,
    val: int = 500,
    test: int = 1000,
    seed: int = SPLIT_SEED,
    class_names: Sequence[str] | None = None,
) -> Split:
    """Draw the paper's split, in the way of the authors' code.

    A ``randperm`` over each class in order, then one over all the remaining nodes. Unlabeled nodes
    (``y == -1``) are never drawn.

    Args:
        y: The labels, of the shape (nodes,).
        per_class: The number of training nodes of each class.
        val: The number of validation nodes.
        test: The number of test nodes.
        seed: The seed of torch's generator.
        class_names: The names of the classes for the error message, if they have any.

    Returns:
        Three disjoint masks of the shape (nodes,).

    Raises:
        RawlsError: If there are too few labeled nodes.
    """
    counts = torch.bincount(y[y >= 0]).tolist()
    rest = sum(counts) - per_class * sum(count > 0 for count in counts)
    small = next((label for label, count in enumerate(counts) if 0 < count < per_class), None)
    lacks = f"{rest} labeled nodes remain after {per_class} of each class"
    takes = f"takes {val} for validation and {test} for the test"
    if small is not None:
        lacks = f"class {class_name(small, class_names)} has {counts[small]} labeled nodes"
        takes = f"trains on {per_class} of each class"
    if small is not None or rest < val + test:
        raise RawlsError(
            f"{lacks}, too few for the paper's split, which {takes}: use 'random', a split by "
            "ratio (0.6,0.2,0.2), or masks of your own"
        )
    return _draw(y, lambda size: per_class, val, test, seed)


def random_split(y: Tensor, seed: int = SPLIT_SEED) -> Split:
    """Draw a random split: a tenth of the labeled nodes trains, a tenth validates, the rest tests.

    Training nodes are drawn class by class, at least one of each class.
    """

    def tenth(size: int) -> int:
        return max(1, round(0.1 * size))

    labeled = int((y >= 0).sum())
    rest = labeled - sum(tenth(len(nodes)) for nodes in _by_class(y))
    if rest < 2:
        raise _too_few(y)
    validated = min(tenth(labeled), rest - 1)
    return _draw(y, tenth, validated, rest - validated, seed)


def ratio_split(
    y: Tensor, ratios: Sequence[float] = (0.6, 0.2, 0.2), seed: int = SPLIT_SEED
) -> Split:
    """Draw a split by ratio, class by class.

    Every class has at least one training node. Where the ratios sum to less than one, the rest of
    the nodes is in no mask. Unlabeled nodes (``y == -1``) are never drawn.

    Args:
        y: The labels, of the shape (nodes,).
        ratios: The shares of training, validation and test nodes.
        seed: The seed of torch's generator: the same seed gives the same split.

    Returns:
        Three disjoint masks of the shape (nodes,).

    Raises:
        RawlsError: If the ratios are not valid, or there are too few labeled nodes.

    Example:
        >>> import torch
        >>> from rawlsgcn.graphs import ratio_split
        >>> split = ratio_split(torch.arange(100) % 2, (0.6, 0.2, 0.2))
        >>> [int(mask.sum()) for mask in split]
        [60, 20, 20]
    """
    shares = parse_split(ratios)
    if not isinstance(shares, Ratios):
        raise RawlsError(f"ratios must be three numbers such as (0.6, 0.2, 0.2), not {ratios!r}")
    generator = torch.Generator().manual_seed(seed)
    parts: list[list[Tensor]] = [[], [], []]
    for nodes in _by_class(y):
        order = nodes[torch.randperm(len(nodes), generator=generator)]
        train = max(1, round(shares.train * len(nodes)))
        val = max(train, round((shares.train + shares.val) * len(nodes)))
        test = max(val, round(sum(shares) * len(nodes)))
        for part, start, end in zip(parts, (0, train, val), (train, val, test), strict=True):
            part.append(order[start:end])
    if not all(any(len(each) for each in part) for part in parts):
        raise _too_few(y)
    return Split(*(_mask(y, torch.cat(part)) for part in parts))


def _too_few(y: Tensor) -> RawlsError:
    return RawlsError(
        f"there are {int((y >= 0).sum())} labeled nodes in {len(_by_class(y))} classes, too few to "
        "split into training, validation and test nodes: label more nodes, or give masks of your "
        "own"
    )


def _by_class(y: Tensor) -> list[Tensor]:
    """The nodes of each class that has any, in the order of the classes."""
    labels = torch.bincount(y[y >= 0]).nonzero().view(-1).tolist()
    return [(y == label).nonzero().view(-1) for label in labels]


def _draw(y: Tensor, train_of: Callable[[int], int], val: int, test: int, seed: int) -> Split:
    """Draw so many training nodes of a class of each size, and the others of all the rest."""
    generator = torch.Generator().manual_seed(seed)
    chosen = []
    for nodes in _by_class(y):
        order = torch.randperm(len(nodes), generator=generator)
        chosen.append(nodes[order[: train_of(len(nodes))]])
    train = torch.cat(chosen)
    taken = y < 0
    taken[train] = True
    rest = (~taken).nonzero().view(-1)
    rest = rest[torch.randperm(len(rest), generator=generator)]
    return Split(*(_mask(y, nodes) for nodes in (train, rest[:val], rest[val : val + test])))


def class_name(label: int, names: Sequence[str] | None) -> str:
    """The name of a class for people: its number where it has no other."""
    return str(label) if names is None or label >= len(names) else names[label]


def _mask(y: Tensor, nodes: Tensor) -> Tensor:
    mask = torch.zeros(len(y), dtype=torch.bool)
    mask[nodes] = True
    return mask


def require_evaluated(which: str) -> None:
    """Raise an error for a choice of the nodes to evaluate that there is not."""
    if which not in EVALUATE:
        raise unknown_name("choice of nodes", which, EVALUATE)


def evaluate_on(graph: Data, which: str) -> Data:
    """Return the graph with the nodes to evaluate as its test nodes; the one given is not changed.

    "test" keeps the test mask, "all" takes every labeled node outside training and validation.
    """
    require_evaluated(which)
    if which == "test":
        return graph
    chosen = copy.copy(graph)
    chosen.test_mask = ~(graph.train_mask | graph.val_mask) & (graph.y >= 0)
    return chosen


def missing_classes(graph: Data) -> list[str]:
    """Name, in a sentence for each part of the split, the classes of which it has no node."""
    given = graph.get("class_names")
    present = graph.y[graph.y >= 0].unique()
    effects = {
        "training": "cannot be predicted",
        "validation": "do not count in what is chosen",
        "test": "do not count in the metrics",
    }
    notes = []
    for key, (what, effect) in zip(MASKS, effects.items(), strict=True):
        absent = present[~torch.isin(present, graph.y[graph[key]])].tolist()
        if absent:
            names = first_few(given[each] if given else each for each in absent)
            notes.append(f"classes without a {what} node {effect}: {names}.")
    return notes


def draw_split(y: Tensor, split: str | Ratios, class_names: Sequence[str] | None = None) -> Split:
    """Draw a split by name or by ratio."""
    if isinstance(split, Ratios):
        return ratio_split(y, split)
    return random_split(y) if split == "random" else paper_split(y, class_names=class_names)
