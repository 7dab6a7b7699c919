"""Models kept: a folder with the weights (safetensors), the configuration and the metrics."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from . import __version__
from .api import pick_device
from .errors import RawlsError, out_of_memory
from .graphs import check, load
from .methods import Inputs, Learner, Method, Settings, find, with_changes
from .methods.inputs import has_negative_features
from .random_state import kept_random_state
from .result import Result

if TYPE_CHECKING:
    from torch_geometric.data import Data

WEIGHTS, CONFIG, METRICS = "model.safetensors", "config.json", "metrics.json"


def write_model(result: Result, folder: Path) -> None:
    """Write a result's weights (of every run), configuration and metrics into ``folder``."""
    write_weights(
        folder,
        dict(zip(result.seeds, result.states, strict=True)),
        result.to_dict(),
        method=result.method,
        settings=result.settings,
        # Decided once, on the training graph: another graph's features must be treated alike.
        row_normalised=bool(result.settings["normalise_features"])
        and not has_negative_features(result.graph.x),
        features=int(result.graph.x.shape[1]),
        classes=int(result.logits.shape[-1]),
        best_seed=result.seeds[result.best_run],
        dataset=result.dataset,
    )


def write_weights(
    folder: Path, states: dict[int, dict[str, Tensor]], metrics: dict[str, Any], **about: Any
) -> None:
    """Write the weights of runs by seed, what they are of (the configuration) and the metrics."""
    from safetensors.torch import save

    tensors = {
        f"{seed}/{name}": tensor.cpu().contiguous()
        for seed, state in states.items()
        for name, tensor in state.items()
    }
    # Not save_file: a full disk must be an OSError like any other.
    (folder / WEIGHTS).write_bytes(save(tensors, metadata={"format": "pt"}))
    config = {"rawlsgcn": __version__, **about, "seeds": list(states)}
    (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    (folder / METRICS).write_text(json.dumps(metrics, indent=2) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class TrainedModel:
    """A trained run that can be asked about the same graph, or another with the same features."""

    method: Method
    settings: Settings
    row_normalised: bool
    features: int
    classes: int
    seed: int
    dataset: str
    state: dict[str, Tensor]

    def logits(self, graph: Data | str, *, device: str = "cpu") -> Tensor:
        """The class scores of every node of ``graph``, which needs features but no labels."""
        target = pick_device(device)
        clean = load(graph) if isinstance(graph, str) else check(graph, need_labels=False)
        if clean.x.shape[1] != self.features:
            raise RawlsError(
                f"the model was trained on {self.features} features, "
                f"this graph has {clean.x.shape[1]}"
            )
        inputs = Inputs.of(
            clean,
            normalise_features=self.row_normalised,
            even_negative=True,
            device=target,
            classes=self.classes,
        )
        with kept_random_state():
            scores = self._restored(inputs).logits().cpu()
        if not bool(scores.isfinite().all()):
            raise RawlsError(
                "the model's scores of this graph are not all finite numbers: look for features or "
                "edge weights that are far larger than those it was trained on"
            )
        return scores

    def _restored(self, inputs: Inputs) -> Learner:
        try:
            return self.method.restore(inputs, self.settings, self.state)
        except (RuntimeError, KeyError) as error:
            if out_of_memory(error):
                raise
            raise RawlsError(
                f"the model's weights do not fit its {CONFIG}: one of them was changed; train again"
            ) from error

    def predict(self, graph: Data | str, *, device: str = "cpu") -> Tensor:
        """The class probabilities of every node, of the shape (nodes, classes)."""
        return torch.softmax(self.logits(graph, device=device), -1)


def load_model(folder: str | Path, seed: int | None = None) -> TrainedModel:
    """The model in a folder written by ``train --out``; by default the best run on validation."""
    if not isinstance(folder, str | Path):
        raise RawlsError(f"a model is loaded from its folder's path, not from {folder!r}")
    folder = Path(folder).expanduser()
    config = _config(folder)
    chosen = config["best_seed"] if seed is None else seed
    if chosen not in config["seeds"]:
        raise RawlsError(f"{folder} has no run with seed {chosen}: it has {config['seeds']}")
    try:
        method = find(config["method"])
        settings = with_changes(method.defaults, config["settings"])
    except (RawlsError, OverflowError) as error:
        raise RawlsError(f"{folder / CONFIG}: {error}") from error
    return TrainedModel(
        method=method,
        settings=settings,
        row_normalised=config["row_normalised"],
        features=config["features"],
        classes=config["classes"],
        seed=chosen,
        dataset=config["dataset"],
        state=read_weights(folder / WEIGHTS, chosen),
    )


def read_weights(path: Path, seed: int) -> dict[str, Tensor]:
    """The weights of one run, by name."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        tensors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise RawlsError(f"cannot read {path}: {error}") from error
    prefix = f"{seed}/"
    state = {name[len(prefix) :]: t for name, t in tensors.items() if name.startswith(prefix)}
    if not state:
        raise RawlsError(f"{path} has no weights of seed {seed}")
    for name, tensor in state.items():
        if not bool(tensor.isfinite().all()):
            raise RawlsError(
                f"{path}: the weights {name} of seed {seed} are not all numbers: its training "
                "diverged or the file is damaged; train again with a lower rate"
            )
    return state


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _are_seeds(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(each) is int for each in value)


#: What each entry must be, in words and as a test.
_ENTRIES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "method": ("a method's name", lambda value: isinstance(value, str)),
    "settings": ("a table of settings", lambda value: isinstance(value, dict)),
    "row_normalised": ("true or false", lambda value: isinstance(value, bool)),
    "features": ("a whole number of at least 1", _is_count),
    "classes": ("a whole number of at least 1", _is_count),
    "seeds": ("a list of whole numbers", _are_seeds),
    "best_seed": ("one of the seeds", lambda value: type(value) is int),
    "dataset": ("a name", lambda value: isinstance(value, str)),
}


def _config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RawlsError(
            f"{folder} holds no model: cannot read {path.name} ({error.strerror}); "
            "give the folder that 'rawlsgcn train --out' wrote"
        ) from error
    except (ValueError, RecursionError) as error:
        raise RawlsError(f"{path} is not a model's configuration: {error}") from error
    if not isinstance(config, dict):
        raise RawlsError(f"{path} is not a model's configuration: it is no table of entries")
    for name, (what, holds) in _ENTRIES.items():
        if name not in config:
            raise RawlsError(f"{path} is not a model's configuration: it has no {name}")
        if not holds(config[name]):
            raise RawlsError(f"{path}: {name} must be {what}, not {config[name]!r}")
    return config
