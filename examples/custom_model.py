"""The fair gradient (RawlsGCN-Grad) in your own model and training loop.

    python examples/custom_model.py [synthetic | amazon-photo | …]

A GraphSAGE with a skip connection, written for torch_geometric, is converted after its optimizer
was made. Its predictions do not change; from then on its weights learn by the fair gradient.
"""

import sys

import torch
from torch import Tensor, nn
from torch_geometric.nn import SAGEConv
from torch_geometric.transforms import NormalizeFeatures
from torch_geometric.utils import degree

import rawlsgcn as rg
from rawlsgcn.metrics import DegreeBias
from rawlsgcn.nn import FairGCNConv, make_fair


class Mine(nn.Module):
    """Two mean aggregations, a skip around them, and a fair convolution."""

    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.first = SAGEConv(features, hidden)
        self.second = SAGEConv(hidden, hidden)
        self.out = FairGCNConv(hidden, classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = self.first(x, edge_index).relu()
        h = h + self.second(h, edge_index).relu()
        return self.out(nn.functional.dropout(h, 0.5, self.training), edge_index)


torch.manual_seed(0)
data = rg.load(sys.argv[1] if len(sys.argv) > 1 else "synthetic")
data.x = data.x.to_dense()
data.degree = degree(data.edge_index[0], data.num_nodes)
data = NormalizeFeatures()(data)

model = Mine(data.num_features, 32, int(data.y.max()) + 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
model.eval()
before = model(data.x, data.edge_index)

make_fair(model)
assert torch.equal(model(data.x, data.edge_index), before)

for epoch in range(1, 31):
    model.train()
    optimizer.zero_grad()
    out = model(data.x, data.edge_index)
    loss = nn.functional.cross_entropy(out[data.train_mask], data.y[data.train_mask])
    loss.backward()
    optimizer.step()
    if epoch % 10 == 0:
        model.eval()
        with torch.no_grad():
            out, y = model(data.x, data.edge_index)[data.test_mask], data.y[data.test_mask]
        accuracy = 100 * (out.argmax(1) == y).double().mean()
        bias = DegreeBias()(out, y, data.degree[data.test_mask])
        print(f"epoch {epoch}: accuracy {float(accuracy):.1f}, bias {float(bias):.3f}")
