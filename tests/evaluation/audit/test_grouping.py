"""Bins hold every node once, keep equal values together, and say their range."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rawlsgcn.evaluation.audit.grouping import bins_of

DEGREES = arrays(np.int64, st.integers(1, 200), elements=st.integers(0, 60))


@given(DEGREES, st.sampled_from([None, "degree", "quantile:2", "quantile:7", "edges:1,3,10"]))
def test_every_node_is_in_the_bin_of_its_value(degree: np.ndarray, how: str | None) -> None:
    bins, member, _ = bins_of(degree, how)
    assert len(set(member.tolist())) == len(bins)
    for place, each in enumerate(bins):
        inside = degree[member == place]
        assert (inside.min(), inside.max()) == (each.low, each.high)
    for earlier, later in pairwise(bins):
        assert earlier.high < later.low


def test_edges_are_the_last_of_their_bin() -> None:
    bins, _, _ = bins_of(np.arange(13), "edges:1,3,10")
    assert [each.label for each in bins] == ["0–1", "2–3", "4–10", "11–12"]


def test_many_values_are_cut_at_their_fifths_and_few_stand_alone() -> None:
    assert len(bins_of(np.arange(100), None)[0]) == 5
    assert len(bins_of(np.arange(12), None)[0]) == 12
    assert len(bins_of(np.array(["a", "b", "a"]), None)[0]) == 2


@pytest.mark.parametrize("groups", [999, 1000])
def test_a_thousand_groups_are_called_by_their_values(groups: int) -> None:
    for how, size in (("degree", groups), (f"quantile:{groups}", 5000)):
        values = np.random.default_rng(0).permutation(3 * np.arange(size))
        bins, member, _ = bins_of(values, how)
        assert len(bins) == groups
        for place in range(0, len(bins), 37):
            inside = values[member == place]
            assert (bins[place].low, bins[place].high) == (inside.min(), inside.max())
