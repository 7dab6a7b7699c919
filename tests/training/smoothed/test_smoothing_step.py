"""One step of smoothing, compiled or by torch, against the product in float64."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from rawlsgcn.balancing import propagation_matrix
from rawlsgcn.graphs import synthetic
from rawlsgcn.graphs.shards import write_shards
from rawlsgcn.graphs.shards.arc_blocks import ArcBlocks
from rawlsgcn.training.smoothed.smoothing_step import row_scale, smooth_rows


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 5, 16, 24, 100, 112])
def test_a_step_is_the_product_for_any_number_of_columns(
    width: int, dtype: torch.dtype, tmp_path: Path
) -> None:
    graph = synthetic(num_nodes=300, features=20, words=5)
    opened = write_shards(graph, 2, tmp_path / "shards").open_all()
    arcs = ArcBlocks(opened, sum(shard.graph_bytes for shard in opened), torch.device("cpu"))
    given, added = torch.rand((2, 300, width), generator=torch.Generator().manual_seed(0)).to(dtype)
    scale = torch.from_numpy(row_scale("renormalized", opened, arcs))
    right = (given.double() * scale[:, None]).to(dtype)
    out = torch.full_like(given, torch.nan)
    for block in arcs:
        smooth_rows(block, right, right, scale.to(dtype), added, out)
    matrix = propagation_matrix(graph.edge_index, None, 300, dtype=torch.float64)
    expected = matrix @ given.double() + added.double()
    torch.testing.assert_close(out.double(), expected, rtol=0, atol=20 * torch.finfo(dtype).eps)
