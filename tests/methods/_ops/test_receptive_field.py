"""Restriction to the rows that matter, against a plain breadth-first walk."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import dense_form, graphs
from torch_geometric.data import Data

from rawlsgcn.methods._ops.receptive_field import reached_rows, select_columns, select_rows


@settings(max_examples=60, deadline=None)
@given(graph=graphs(), layers=st.integers(1, 4))
def test_reached_rows_are_the_targets_neighborhoods(graph: Data, layers: int) -> None:
    matrix = dense_form(graph, "renormalized")
    targets = graph.train_mask.nonzero().view(-1)
    rows = reached_rows(matrix.to_sparse_csr(), targets, layers)
    expected = set(targets.tolist())
    for found in reversed(rows):
        assert set(found.tolist()) == expected
        assert found.tolist() == sorted(found.tolist())
        expected = {j for i in expected for j in matrix[i].nonzero().view(-1).tolist()}


@settings(max_examples=60, deadline=None)
@given(graph=graphs())
def test_selecting_rows_and_columns_equals_dense_indexing(graph: Data) -> None:
    matrix = dense_form(graph, "row")
    rows = graph.train_mask.nonzero().view(-1)
    part = select_rows(matrix.to_sparse_csr(), rows)
    assert torch.equal(part.to_dense(), matrix[rows])
    columns = (matrix[rows] != 0).any(0).nonzero().view(-1)
    assert torch.equal(select_columns(part, columns).to_dense(), matrix[rows][:, columns])
