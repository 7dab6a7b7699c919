"""The quarters of lowest and highest degree."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rawlsgcn.evaluation.degree_groups import degree_quarters


@given(st.lists(st.integers(0, 50), min_size=1, max_size=80))
def test_each_quarter_has_a_fourth_of_the_nodes_or_more(values: list[int]) -> None:
    degree = np.array(values)
    low, high = degree_quarters(degree)
    assert 4 * (degree <= low).sum() >= len(degree)
    assert 4 * (degree >= high).sum() >= len(degree)
    # Without the highest degree of the low quarter it would be smaller than a fourth.
    assert 4 * (degree < np.floor(low)).sum() <= len(degree) + 3
