"""The splits: drawn as the authors draw them, disjoint, and refused where nodes are too few."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.graphs.splits import (
    paper_split,
    parse_split,
    random_split,
    ratio_split,
)


def test_paper_split_is_the_published_draw() -> None:
    y = torch.arange(4000) % 7
    torch.manual_seed(1684992425)
    train = []
    for label in range(7):
        nodes = (y == label).nonzero().view(-1)
        train.append(nodes[torch.randperm(len(nodes))[:20]])
    left = torch.ones(4000, dtype=torch.bool)
    left[torch.cat(train)] = False
    rest = left.nonzero().view(-1)
    rest = rest[torch.randperm(len(rest))]

    split = paper_split(y)

    assert torch.equal(split.train_mask.nonzero().view(-1), torch.cat(train).sort().values)
    assert torch.equal(split.val_mask.nonzero().view(-1), rest[:500].sort().values)
    assert torch.equal(split.test_mask.nonzero().view(-1), rest[500:1500].sort().values)


def test_drawing_leaves_torchs_own_generator_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    paper_split(torch.arange(4000) % 7)
    assert torch.equal(torch.rand(4), expected)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-1, 3), min_size=12, max_size=80), st.integers(0, 5))
def test_random_split_is_disjoint_covers_the_labeled_and_has_every_class(
    labels: list[int], seed: int
) -> None:
    y = torch.tensor(labels)
    try:
        split = random_split(y, seed=seed)
    except RawlsError:
        assert (y >= 0).sum() < 2 + len(set(labels) - {-1}) + 0.1 * len(labels) + 4
        return
    assert torch.equal(torch.stack(split).sum(0), (y >= 0).long())
    assert set(y[split.train_mask].tolist()) == set(labels) - {-1}
    assert split.val_mask.any()
    assert split.test_mask.any()


def test_unlabeled_nodes_are_never_drawn() -> None:
    y = torch.arange(3000) % 3
    y[::2] = -1
    y[1::2] = torch.arange(1500) % 3
    split = paper_split(y, val=400, test=1000)
    assert not any(mask[::2].any() for mask in split)


def test_a_class_with_too_few_nodes_is_named() -> None:
    y = torch.cat([torch.zeros(2000, dtype=torch.long), torch.ones(7, dtype=torch.long)])
    with pytest.raises(RawlsError, match="class 1 has 7 labeled nodes"):
        paper_split(y)


def test_too_few_remaining_nodes_are_counted() -> None:
    with pytest.raises(RawlsError, match="960 labeled nodes remain"):
        paper_split(torch.arange(1000) % 2)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-1, 3), min_size=30, max_size=120), st.integers(0, 5))
def test_a_split_by_ratio_has_the_shares_of_each_class(labels: list[int], seed: int) -> None:
    y = torch.tensor(labels)
    split = ratio_split(y, (0.5, 0.25, 0.25), seed)
    assert torch.equal(torch.stack(split).sum(0), (y >= 0).long())
    for label in set(labels) - {-1}:
        nodes = y == label
        for mask, share in zip(split, (0.5, 0.25, 0.25), strict=True):
            assert abs(int((mask & nodes).sum()) - share * int(nodes.sum())) <= 1
    again = ratio_split(y, (0.5, 0.25, 0.25), seed)
    assert all(torch.equal(*pair) for pair in zip(split, again, strict=True))


def test_ratios_below_one_leave_nodes_out() -> None:
    split = ratio_split(torch.arange(1000) % 2, (0.1, 0.1, 0.2))
    assert [int(mask.sum()) for mask in split] == [100, 100, 200]


@pytest.mark.parametrize(
    "split",
    ["60,20,20", "0.6,0.2", "0.6,0.2,x", "1,0,0", "0.6,0.3,0.3", "nan,0.1,0.1", (0.5, 0.5), 3],
)
def test_bad_ratios_are_refused_in_one_sentence(split: object) -> None:
    with pytest.raises(RawlsError, match=r"three positive numbers that sum to at most 1.*not "):
        parse_split(split)  # type: ignore[arg-type]


def test_a_split_by_name_may_be_misspelled() -> None:
    with pytest.raises(RawlsError, match="did you mean random"):
        parse_split("randm")


def test_classes_too_small_for_a_ratio_are_refused() -> None:
    with pytest.raises(RawlsError, match="4 labeled nodes in 4 classes, too few to split"):
        ratio_split(torch.arange(4), (0.6, 0.2, 0.2))
