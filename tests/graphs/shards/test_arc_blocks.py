"""Arcs of shards in blocks: all of them, in their order, mapped or read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.graphs import synthetic
from rawlsgcn.graphs.shards import Shards, write_shards
from rawlsgcn.graphs.shards.arc_blocks import ArcBlock, ArcBlocks, least_bytes, shards_of_process


def joined(blocks: ArcBlocks) -> tuple[np.ndarray, ...]:
    """The rows, columns and weights of all arcs, and the rows of the blocks."""
    rows, columns, weights, spans = [], [], [], []
    for block in blocks:
        counts = block.row_start.diff().numpy()
        assert len(counts) == block.last - block.first
        rows.append(np.repeat(np.arange(block.first, block.last), counts))
        columns.append(block.column.numpy().copy())
        weights.append(block.weight.numpy().copy() if block.weight is not None else None)
        spans.append((block.first, block.last))
    weight = None if weights[0] is None else np.concatenate(weights)
    return np.concatenate(rows), np.concatenate(columns), weight, spans


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("memory", [0, 10**9])
def test_blocks_are_all_arcs_in_their_order(tmp_path: Path, weighted: bool, memory: int) -> None:
    graph = synthetic(500, average_degree=7, features=6, words=2)
    if weighted:
        graph.edge_weight = torch.rand(graph.edge_index.shape[1]).double()
    shards = write_shards(graph, 3, tmp_path)
    opened = shards.open_all()
    blocks = ArcBlocks(opened, memory, block_size=300)
    assert blocks.kept == (memory > 0)
    assert (blocks.first, blocks.last, blocks.num_arcs) == (0, 500, graph.num_edges)
    for _ in range(2):
        row, column, weight, spans = joined(blocks)
        np.testing.assert_array_equal(row, graph.edge_index[0])
        np.testing.assert_array_equal(column, graph.edge_index[1])
        if weighted:
            np.testing.assert_array_equal(weight, graph.edge_weight)
        assert len(spans) == 3 if memory else len(spans) > 10
    assert blocks.held_bytes == (
        sum(shard.graph_bytes for shard in opened) if memory else least_bytes(opened, 300)
    )


def test_a_part_of_the_shards_counts_its_own_rows(tmp_path: Path) -> None:
    graph = synthetic(500, average_degree=7, features=6, words=2)
    shards = write_shards(graph, 3, tmp_path)
    for memory in (0, 10**9):
        blocks = ArcBlocks([shards.open(1), shards.open(2)], memory, block_size=100)
        row, column, _, _ = joined(blocks)
        own = graph.edge_index[0] >= shards.cuts[1]
        np.testing.assert_array_equal(row + shards.cuts[1], graph.edge_index[0][own])
        np.testing.assert_array_equal(column, graph.edge_index[1][own])


def test_weights_take_the_wanted_type(tmp_path: Path) -> None:
    graph = synthetic(200, average_degree=7, features=6, words=2)
    graph.edge_weight = torch.rand(graph.num_edges).double()
    shards = write_shards(graph, 1, tmp_path)
    same = ArcBlocks(shards.open_all(), 10**9, weight_dtype=torch.float64)
    other = ArcBlocks(shards.open_all(), 10**9, weight_dtype=torch.float32)
    assert same.kept
    assert not other.kept
    np.testing.assert_array_equal(joined(other)[2], graph.edge_weight.float())


def test_a_row_longer_than_a_block_is_a_block(tmp_path: Path) -> None:
    graph = synthetic(200, average_degree=4, features=6, words=2)
    hub = torch.stack([torch.zeros(198, dtype=torch.long), torch.arange(2, 200)])
    both = torch.cat([graph.edge_index, hub, hub.flip(0)], dim=1).unique(dim=1)
    graph.edge_index = both
    shards = write_shards(graph, 2, tmp_path)
    blocks = ArcBlocks(shards.open_all(), 0, block_size=20)
    row, column, _, spans = joined(blocks)
    np.testing.assert_array_equal(np.stack([row, column]), both)
    assert (0, 1) in spans
    assert blocks.held_bytes >= 4 * 198


def test_spans_of_a_block_are_its_rows() -> None:
    starts = torch.tensor([7, 7, 9, 15, 15, 16])
    block = ArcBlock(3, 8, starts, torch.arange(9, dtype=torch.int32), None)
    parts = list(block.spans(2))
    assert [(part.first, part.last) for part in parts] == [(3, 5), (5, 6), (6, 8)]
    assert torch.equal(torch.cat([part.column for part in parts]), block.column)
    assert all(len(part.column) == part.row_start[-1] - part.row_start[0] for part in parts)
    empty = ArcBlock(0, 2, torch.tensor([4, 4, 4]), torch.empty(0, dtype=torch.int32), None)
    assert [(part.first, part.last) for part in empty.spans(2)] == [(0, 2)]


def test_each_process_has_shards_that_follow_each_other(tmp_path: Path) -> None:
    shards = write_shards(synthetic(200, features=6, words=2), 5, tmp_path)
    for world in (1, 2, 3, 5):
        ranges = [shards_of_process(shards, rank, world) for rank in range(world)]
        assert [shard for each in ranges for shard in each] == list(range(5))
        assert max(map(len, ranges)) - min(map(len, ranges)) <= 1
    with pytest.raises(RawlsError, match="has 5 shards, but 6 processes were started: use torchr"):
        shards_of_process(Shards(tmp_path), 0, 6)
