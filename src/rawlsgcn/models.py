"""Models kept: a folder with the weights (safetensors), the configuration and the metrics."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from . import __version__
from .errors import RawlsError
from .graphs import check, load
from .methods import Inputs, Method, Settings, find, with_changes
from .result import Result

if TYPE_CHECKING:
    from torch_geometric.data import Data

WEIGHTS, CONFIG, METRICS = "model.safetensors", "config.json", "metrics.json"


def write_model(result: Result, folder: Path) -> None:
    """Write a result's weights (of every run), configuration and metrics into ``folder``."""
    from safetensors.torch import save

    tensors = {
        f"{seed}/{name}": tensor.contiguous()
        for seed, state in zip(result.seeds, result.states, strict=True)
        for name, tensor in state.items()
    }
    # Not save_file: a full disk must be an OSError like any other.
    (folder / WEIGHTS).write_bytes(save(tensors, metadata={"format": "pt"}))
    config = {
        "rawlsgcn": __version__,
        "method": result.method,
        "settings": result.settings,
        "features": int(result.graph.x.shape[1]),
        "classes": int(result.logits.shape[-1]),
        "seeds": result.seeds,
        "best_seed": result.seeds[result.best_run],
        "dataset": result.dataset,
    }
    (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    (folder / METRICS).write_text(json.dumps(result.to_dict(), indent=2) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class TrainedModel:
    """A trained run that can be asked about the same graph, or another with the same features."""

    method: Method
    settings: Settings
    features: int
    classes: int
    seed: int
    dataset: str
    state: dict[str, Tensor]

    def logits(self, graph: Data | str, *, device: str = "cpu") -> Tensor:
        """The class scores of every node of ``graph``, which needs features but no labels."""
        clean = load(graph) if isinstance(graph, str) else check(graph, need_labels=False)
        if clean.x.shape[1] != self.features:
            raise RawlsError(
                f"the model was trained on {self.features} features, "
                f"this graph has {clean.x.shape[1]}"
            )
        inputs = Inputs.of(
            clean,
            normalise_features=self.settings.normalise_features,
            device=device,
            classes=self.classes,
        )
        return self.method.restore(inputs, self.settings, self.state).logits().cpu()

    def predict(self, graph: Data | str, *, device: str = "cpu") -> Tensor:
        """The class probabilities of every node, of the shape (nodes, classes)."""
        return torch.softmax(self.logits(graph, device=device), -1)


def load_model(folder: str | Path, seed: int | None = None) -> TrainedModel:
    """The model in a folder written by ``train --out``; by default the best run on validation."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    folder = Path(folder)
    config = _config(folder)
    chosen = config["best_seed"] if seed is None else seed
    if chosen not in config["seeds"]:
        raise RawlsError(f"{folder} has no run with seed {chosen}: it has {config['seeds']}")
    try:
        tensors = load_file(folder / WEIGHTS)
    except (OSError, SafetensorError) as error:
        raise RawlsError(f"cannot read {folder / WEIGHTS}: {error}") from error
    prefix = f"{chosen}/"
    state = {name[len(prefix) :]: t for name, t in tensors.items() if name.startswith(prefix)}
    if not state:
        raise RawlsError(f"{folder / WEIGHTS} has no weights of seed {chosen}")
    method = find(config["method"])
    return TrainedModel(
        method=method,
        settings=with_changes(method.defaults, config["settings"]),
        features=config["features"],
        classes=config["classes"],
        seed=chosen,
        dataset=config["dataset"],
        state=state,
    )


def _config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RawlsError(
            f"{folder} holds no model: cannot read {path.name} ({error.strerror}); "
            "give the folder that 'rawlsgcn train --out' wrote"
        ) from error
    except ValueError as error:
        raise RawlsError(f"{path} is not a model's configuration: {error}") from error
    wanted = {"method", "settings", "features", "classes", "seeds", "best_seed", "dataset"}
    if not isinstance(config, dict) or wanted - set(config):
        raise RawlsError(f"{path} is not a model's configuration: it lacks some of its entries")
    return config
