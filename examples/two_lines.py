"""examples/plain.py with two lines more: RawlsGCN-Graph in anybody's torch_geometric script.

    python examples/two_lines.py [synthetic | amazon-photo | …] [seeds] [epochs]

The two lines are marked. They replace the graph's matrix by its doubly stochastic form, before
training and for good; every layer that takes edge weights or a sparse matrix then uses it.
"""

import sys

import torch
from torch_geometric.nn import GCN
from torch_geometric.transforms import NormalizeFeatures, ToSparseTensor
from torch_geometric.utils import degree

import rawlsgcn as rg
from rawlsgcn.metrics import DegreeBias
from rawlsgcn.transforms import DoublyStochastic  # the first line

name = sys.argv[1] if len(sys.argv) > 1 else "synthetic"
seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 1
epochs = int(sys.argv[3]) if len(sys.argv) > 3 else 200

data = rg.load(name)
data.x = data.x.to_dense()
data.degree = degree(data.edge_index[0], data.num_nodes)
data = NormalizeFeatures()(data)
data = ToSparseTensor(layout=torch.sparse_csr)(data)
data = DoublyStochastic()(data)  # the second line
classes = int(data.y.max()) + 1

rows = []
for seed in range(seeds):
    torch.manual_seed(seed)
    model = GCN(data.num_features, 64, num_layers=3, out_channels=classes, dropout=0.5, cached=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(epochs):
        model.train()
        optimizer.zero_grad()
        out = model(data.x, data.adj_t)
        loss = torch.nn.functional.cross_entropy(out[data.train_mask], data.y[data.train_mask])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        out, y = model(data.x, data.adj_t)[data.test_mask], data.y[data.test_mask]
    accuracy = 100 * (out.argmax(1) == y).double().mean()
    rows.append([float(accuracy), float(DegreeBias()(out, y, data.degree[data.test_mask]))])
accuracy, bias = torch.tensor(rows).mean(0).tolist()
print(f"{name}, {seeds} seed(s): accuracy {accuracy:.1f}, bias {bias:.3f}")
