"""torch_geometric's GCN on Amazon-Photo with and without make_fair, by depth and rate.

python results/make_fair.py
"""

import torch
from torch_geometric.nn import GCN
from torch_geometric.transforms import NormalizeFeatures, ToSparseTensor
from torch_geometric.utils import degree

import rawlsgcn as rg
from rawlsgcn.metrics import DegreeBias
from rawlsgcn.nn import make_fair

graph = rg.load("amazon-photo")
graph.x = graph.x.to_dense()
degrees = degree(graph.edge_index[0], graph.num_nodes)
graph = ToSparseTensor(layout=torch.sparse_csr)(NormalizeFeatures()(graph))
train, test = graph.train_mask, graph.test_mask

for layers, rate, epochs in ((2, 0.05, 100), (2, 0.01, 200), (3, 0.01, 200)):
    for fair in (False, True):
        rows = []
        for seed in range(3):
            torch.manual_seed(seed)
            model = GCN(graph.num_features, 64, layers, 8, dropout=0.5, cached=True)
            if fair:
                make_fair(model)
            optimiser = torch.optim.Adam(model.parameters(), lr=rate, weight_decay=5e-4)
            for _ in range(epochs):
                model.train()
                optimiser.zero_grad()
                out = model(graph.x, graph.adj_t)
                torch.nn.functional.cross_entropy(out[train], graph.y[train]).backward()
                optimiser.step()
            model.eval()
            with torch.no_grad():
                out = model(graph.x, graph.adj_t)[test]
            accuracy = 100 * (out.argmax(1) == graph.y[test]).double().mean()
            rows.append([float(accuracy), float(DegreeBias()(out, graph.y[test], degrees[test]))])
        print(layers, rate, epochs, fair, torch.tensor(rows).mean(0).tolist(), rows, flush=True)
