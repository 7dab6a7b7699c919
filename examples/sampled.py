"""Sampled training: the fair gradient on neighborhoods that are sampled from the graph.

    python examples/sampled.py [synthetic | amazon-photo | …]

The loader is torch_geometric's. ``NeighborSampler`` samples without a compiled extension, and
``SampledWeights`` adds the entries of the whole graph's matrices to each batch, corrected for the
neighbors that were not sampled.
"""

import sys

import torch
from torch.nn.functional import cross_entropy
from torch_geometric.loader import NodeLoader
from torch_geometric.nn import GCN
from torch_geometric.transforms import NormalizeFeatures
from torch_geometric.utils import degree

import rawlsgcn as rg
from rawlsgcn.metrics import DegreeBias
from rawlsgcn.nn import fair_weights, make_fair
from rawlsgcn.sampling import NeighborSampler, SampledWeights

torch.manual_seed(0)
data = rg.load(sys.argv[1] if len(sys.argv) > 1 else "synthetic")
data.x = data.x.to_dense()
data.degree = degree(data.edge_index[0], data.num_nodes)
data = NormalizeFeatures()(data)

loader = NodeLoader(
    data,
    NeighborSampler(data, [10, 10]),
    input_nodes=data.train_mask,
    transform=SampledWeights(data),
    batch_size=1024,
    shuffle=True,
)
# normalize=False: the batches have their weights.
model = GCN(data.num_features, 64, 2, int(data.y.max()) + 1, dropout=0.5, normalize=False)
make_fair(model)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05, weight_decay=5e-4)

for epoch in range(1, 51):
    model.train()
    for batch in loader:
        optimizer.zero_grad()
        with fair_weights(model, batch.fair_weight):
            out = model(batch.x, batch.edge_index, batch.edge_weight)[: batch.batch_size]
        loss = cross_entropy(out, batch.y[: batch.batch_size])
        loss.backward()
        optimizer.step()
    if epoch % 10 == 0:
        print(f"epoch {epoch}: loss {loss:.3f}")

# At test time all neighbors are used (-1), and the weights are exact.
model.eval()
bias, right, nodes = DegreeBias(), 0, 0
for batch in NodeLoader(
    data,
    NeighborSampler(data, [-1, -1]),
    input_nodes=data.test_mask,
    transform=SampledWeights(data, fair=False),
    batch_size=1024,
):
    with torch.no_grad():
        out = model(batch.x, batch.edge_index, batch.edge_weight)[: batch.batch_size]
    target = batch.y[: batch.batch_size]
    bias.update(out, target, batch.degree[: batch.batch_size])
    right, nodes = right + int((out.argmax(1) == target).sum()), nodes + len(target)
print(f"test accuracy {100 * right / nodes:.1f}, degree bias {bias.compute():.3f}")
