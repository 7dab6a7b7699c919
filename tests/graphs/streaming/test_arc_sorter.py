"""The external sort gives the matrix and the facts of the sort in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.graphs.edges import clean_edges
from rawlsgcn.graphs.notes import GraphFacts
from rawlsgcn.graphs.readers.edge_lists import EdgeBatch
from rawlsgcn.graphs.streaming import arc_sorter
from rawlsgcn.graphs.streaming.arc_sorter import sort_arcs


def sort(
    source: np.ndarray, target: np.ndarray, weight: np.ndarray | None, nodes: int, batch: int
) -> tuple[np.ndarray, np.ndarray | None, GraphFacts]:
    facts = GraphFacts()
    with tempfile.TemporaryDirectory() as folder:
        parts = [slice(first, first + batch) for first in range(0, len(source), batch)]
        batches = [
            EdgeBatch(source[part], target[part], None if weight is None else weight[part])
            for part in parts
        ]
        arcs = sort_arcs(
            batches, nodes, weighted=weight is not None, folder=Path(folder), memory=1, facts=facts
        )
        rows = np.repeat(np.arange(nodes), np.diff(arcs.row_start))
        columns = arcs.column(0, arcs.row_start[-1])
        weights = None if arcs.weight is None else arcs.weight(0, len(columns))
        left = {path.name for path in Path(folder).iterdir()}
        assert left <= {"column", "weight"}
    return np.stack([rows, columns]), weights, facts


@pytest.fixture
def small_runs(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Runs of a few arcs, and ranges of fewer."""

    def change(size: int) -> None:
        monkeypatch.setattr(arc_sorter, "_FEWEST", size)
        monkeypatch.setattr(arc_sorter, "_SAMPLED", 1)

    return change


@pytest.mark.parametrize("size", [5, 64, 10_000])
@pytest.mark.parametrize("kind", ["plain", "ones", "weights", "symmetric"])
def test_the_sorted_arcs_are_those_of_the_sort_in_memory(
    size: int, kind: str, small_runs: Callable[[int], None]
) -> None:
    small_runs(size)

    @settings(max_examples=8, deadline=None)
    @given(st.integers(1, 40), st.integers(0, 120), st.integers(0, 2**32 - 1), st.integers(1, 50))
    def check(nodes: int, arcs: int, seed: int, batch: int) -> None:
        random = np.random.default_rng(seed)
        # A few rows have most of the arcs, and most arcs are there more than once.
        source, target = (random.random((2, arcs)) ** 3 * nodes).astype(np.int64)
        weight = None
        if kind == "symmetric":
            source, target = np.concatenate([source, target]), np.concatenate([target, source])
        if kind in ("weights", "symmetric"):
            weight = random.choice([0.0, 1e-60, 0.5, 1.0, 2.25, 7.0], len(source))
        if kind == "ones":
            weight = np.ones(arcs)
            first = np.unique(np.stack([source, target]), axis=1)
            source, target, weight = first[0], first[1], weight[: first.shape[1]]
        facts = GraphFacts()
        edge_index, edge_weight = clean_edges(source, target, weight, nodes, facts)
        ends, weights, sorted_facts = sort(source, target, weight, nodes, batch)
        np.testing.assert_array_equal(ends, edge_index.numpy())
        assert (weights is None) == (edge_weight is None)
        if weights is not None:
            np.testing.assert_array_equal(weights, edge_weight.numpy())
        assert sorted_facts == facts

    check()


def test_sums_of_weights_do_not_depend_on_the_runs(small_runs: Callable[[int], None]) -> None:
    random = np.random.default_rng(0)
    source, target = random.integers(0, 3, (2, 3000))
    weight = random.lognormal(0, 5, 3000)
    found = []
    for size in (5, 100, 10_000):
        small_runs(size)
        found.append(sort(source, target, weight, 3, 17)[1])
    assert all(np.array_equal(found[0], each) for each in found)


def test_weights_beyond_single_precision_are_refused() -> None:
    with pytest.raises(RawlsError, match="over 3e38"):
        sort(np.array([0]), np.array([1]), np.array([1e300]), 2, 1)


def test_more_nodes_than_the_keys_hold_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RawlsError, match="at most 2,147,483,647"):
        sort_arcs([], 2**31, weighted=False, folder=tmp_path, memory=1, facts=GraphFacts())
