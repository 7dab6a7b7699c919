"""The example of docs/how-it-works.md trains somebody else's model with the fair gradient."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch_geometric.nn import GCNConv

import rawlsgcn as rg

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-it-works.md"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    """Everything that the page's Python block defines, after it has run."""
    block = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    torch.manual_seed(0)
    names: dict[str, Any] = {}
    exec(block[1], names)
    return names


def test_it_learns(example: dict[str, Any]) -> None:
    graph, logits = example["graph"], example["logits"]
    right = logits[graph.test_mask].argmax(1) == graph.y[graph.test_mask]
    assert right.float().mean() > 2 / (int(graph.y.max()) + 1)


def test_its_gradient_is_the_fair_one(example: dict[str, Any]) -> None:
    """∂J/∂W = Hᵀ Â_DSᵀ ∂J/∂E in the last layer, whose H and E the example's names give."""
    model, graph, x = (example[name] for name in ("model", "graph", "x"))
    A_hat, A_ds = example["A_hat"], example["A_ds"]
    grads = {}
    for name, fair in (("plain", None), ("fair", A_ds)):
        model.zero_grad()
        h = nn.functional.elu(model.first(x, A_hat, fair))
        scores = model.second(h, A_hat, fair)
        scores.retain_grad()
        nn.functional.cross_entropy(scores[graph.train_mask], graph.y[graph.train_mask]).backward()
        grads[name] = model.second.weight.grad
    expected = h.detach().t() @ (A_ds.T @ scores.grad)
    torch.testing.assert_close(grads["fair"], expected, rtol=1e-4, atol=1e-6)
    assert not torch.allclose(grads["fair"], grads["plain"], rtol=1e-2)


def test_balanced_edges_go_into_a_layer_of_torch_geometric() -> None:
    graph = rg.synthetic(300, classes=2)
    edges, weight = rg.balance(graph.edge_index, num_nodes=graph.num_nodes).matrix(torch.float32)
    layer = GCNConv(1, 1, normalize=False, bias=False)
    nn.init.ones_(layer.lin.weight)
    # Rows that sum to one leave a constant as it is.
    torch.testing.assert_close(layer(torch.ones(300, 1), edges, weight), torch.ones(300, 1))
