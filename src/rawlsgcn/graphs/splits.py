"""Which nodes train, validate and test: the paper's split, stored masks, random, or by ratio."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .._core.errors import RawlsError, unknown_name
from .catalog import MASKS as MASKS
from .catalog import SPLIT_SEED, SPLITS
from .notes import GraphFacts
from .raw_graph import RawGraph

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


FEW_LABELS = Ratios(0.5, 0.25, 0.25)
"""The split of a graph without masks and with too few labels for the paper's."""


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
    reason = _misfit(y, per_class, val, test, class_names)
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
    """Draw a random split: fractions of the labeled nodes.

    Training nodes are drawn class by class, at least one of each class; what is neither
    training nor validation is the test.
    """
    labeled = int((y >= 0).sum())
    groups = _by_class(y)
    rest = labeled - sum(max(1, round(train * len(nodes))) for nodes in groups)
    if rest < 2:
        raise _too_few(y)
    generator = torch.Generator().manual_seed(seed)
    chosen = []
    for nodes in groups:
        order = torch.randperm(len(nodes), generator=generator)
        chosen.append(nodes[order[: max(1, round(train * len(nodes)))]])
    validated = min(max(1, round(val * labeled)), rest - 1)
    return _with_rest(y, torch.cat(chosen), validated, rest - validated, generator)


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


def _misfit(
    y: Tensor, per_class: int, val: int, test: int, names: Sequence[str] | None = None
) -> str:
    """Why the paper's split cannot be drawn, or an empty string."""
    counts = torch.bincount(y[y >= 0]).tolist()
    for label, count in enumerate(counts):
        if 0 < count < per_class:
            return (
                f"class {class_name(label, names)} has {count} labeled nodes, too few for the "
                f"paper's split, which trains on {per_class} of each class: use 'random', a split "
                "by ratio (0.6,0.2,0.2), or masks of your own"
            )
    rest = sum(counts) - per_class * sum(count > 0 for count in counts)
    if rest < val + test:
        return (
            f"{rest} labeled nodes remain after {per_class} of each class, too few for the "
            f"paper's split, which takes {val} for validation and {test} for the test: use "
            "'random', a split by ratio (0.6,0.2,0.2), or masks of your own"
        )
    return ""


def _with_rest(y: Tensor, train: Tensor, val: int, test: int, generator: torch.Generator) -> Split:
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


def has_own_split(graph: Data) -> bool:
    """Whether the masks were stored with the graph, asked for, or set since.

    Those that the validation made for a graph without any are not the graph's own.
    """
    if any(graph.get(key) is None for key in MASKS):
        return False
    if not GraphFacts.of(graph).split_made:
        return True
    try:
        made = draw_split(graph.y.cpu(), parse_split(GraphFacts.of(graph).split_made))
    except RawlsError:
        return True
    masks = zip(MASKS, made, strict=True)
    return not all(torch.equal(graph[key].cpu(), mask) for key, mask in masks)


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


def draw_split(
    y: Tensor, split: str | Ratios | None, class_names: Sequence[str] | None = None
) -> Split:
    """Draw a split by name or by ratio; None is the default for a graph without masks."""
    if split is None:
        split = default_split(y)
    if isinstance(split, Ratios):
        return ratio_split(y, split)
    return random_split(y) if split == "random" else paper_split(y, class_names=class_names)


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
    if split is None and not raw.masks:
        split = default_split(y)
        facts.split_made = str(split)
    if split == "stored" or (split is None and raw.masks):
        masks = _stored_split(graph, raw)
        if not _still_drawn(y, masks, facts.split_drawn):
            facts.split_drawn = ""
    else:
        try:
            masks = draw_split(y, split, raw.class_names)
        except RawlsError as error:
            raise RawlsError(f"{raw.labels_from}: {error}") from error
        facts.split_drawn = str(split)
    for key, mask in zip(MASKS, masks, strict=True):
        graph[key] = mask


def _still_drawn(y: Tensor, masks: Split, drawn: str) -> bool:
    """Whether masks are still those that an earlier validation drew; test nodes may be others."""
    try:
        first = draw_split(y, parse_split(drawn))
    except RawlsError:
        return False
    return torch.equal(masks.train_mask, first.train_mask) and torch.equal(
        masks.val_mask, first.val_mask
    )


def _stored_split(graph: Data, raw: RawGraph) -> Split:
    where, nodes = raw.labels_from, len(graph.y)
    absent = [key for key in MASKS if key not in raw.masks]
    if absent:
        raise RawlsError(
            f"{where} stores no {' and no '.join(absent)}: "
            "give all three masks, or choose a split such as 'paper', 'random' or '0.6,0.2,0.2'"
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
            raise RawlsError(f"{where}: {key} has no labeled node in it")
    return split
