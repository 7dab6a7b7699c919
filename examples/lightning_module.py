"""Train a model with Lightning, watch the degree bias, and audit the trained module.

    pip install lightning
    python examples/lightning_module.py [synthetic | amazon-photo | …] [epochs]

`DegreeBias` is a torchmetrics metric, so it is logged like any other. `make_fair` gives the layers
the fair gradient of RawlsGCN-Grad. `rg.audit` takes the module as it is, as its `forward` has the
names of torch_geometric. One graph is one batch.
"""

import sys

import lightning
import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader
from torch_geometric.nn import GCN
from torch_geometric.utils import degree
from torchmetrics import MetricCollection
from torchmetrics.classification import MulticlassAccuracy

import rawlsgcn as rg
from rawlsgcn.metrics import DegreeBias
from rawlsgcn.nn import make_fair


class NodeClassifier(lightning.LightningModule):
    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        gcn = GCN(num_features, 64, num_layers=2, out_channels=num_classes, dropout=0.5)
        self.model = make_fair(gcn)
        accuracy = MulticlassAccuracy(num_classes, average="micro")
        self.metrics = MetricCollection({"accuracy": accuracy, "bias": DegreeBias()}, prefix="val_")

    def forward(self, x, edge_index):
        return self.model(x, edge_index)

    def training_step(self, data):
        scores = self(data.x, data.edge_index)
        return cross_entropy(scores[data.train_mask], data.y[data.train_mask])

    def validation_step(self, data):
        nodes = data.val_mask
        scores, degrees = self(data.x, data.edge_index), degree(data.edge_index[0], data.num_nodes)
        self.metrics.update(scores[nodes], data.y[nodes], degree=degrees[nodes])

    def on_validation_epoch_end(self):
        self.log_dict(self.metrics.compute())
        self.metrics.reset()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01, weight_decay=5e-5)


name = sys.argv[1] if len(sys.argv) > 1 else "synthetic"
epochs = int(sys.argv[2]) if len(sys.argv) > 2 else 100

graph = rg.load(name)
graph.x = graph.x.to_dense()
graph.x = graph.x / graph.x.sum(1, keepdim=True).clamp(min=1e-12)
loader = DataLoader([graph], batch_size=None)
torch.manual_seed(0)
module = NodeClassifier(graph.num_features, int(graph.y.max()) + 1)
trainer = lightning.Trainer(
    max_epochs=epochs,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    check_val_every_n_epoch=10,
)
trainer.fit(module, loader, loader)
print({name: round(float(value), 3) for name, value in trainer.callback_metrics.items()})

audit = rg.audit(module, graph, resamples=200)
print(f"{name}: accuracy {audit.models[0].accuracy.value:.1f}")
print(audit)
