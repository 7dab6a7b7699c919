"""Node ids: one for each node, stored without pickle; edges are tested with their callers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rawlsgcn._core.argument_checks import node_id_array
from rawlsgcn._core.errors import RawlsError


def test_ids_never_need_a_pickle() -> None:
    for ids in (
        None,
        ["ann", "ben"],
        np.array(["ann", 2], dtype=object),
        np.array([7, 8]),
        [1, "b"],
    ):
        assert node_id_array(ids, 2).dtype.kind in "iU"
    assert node_id_array(np.array(["ann", "ben"], dtype=object), 2).tolist() == ["ann", "ben"]


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (["ann"], r"shape \(1,\) for 2 nodes"),
        (np.zeros((2, 2)), r"shape \(2, 2\) for 2 nodes"),
        (np.array("ann"), r"shape \(\) for 2 nodes"),
        ([[1], [2, 3]], "the node ids cannot be read as an array"),
        (["x" * 3000] + ["y"] * 200_000, "a node id of 3,000 letters"),
        (np.array(["x" * 3000] + ["y"] * 200_000, dtype=object), "a node id of 3,000 letters"),
    ],
)
def test_ids_that_are_not_one_for_each_node_are_told(ids: Any, said: str) -> None:
    """Two gigabytes are no array of ids."""
    with pytest.raises(RawlsError, match=said):
        node_id_array(ids, 2)
