"""The files of a saved model: weights (safetensors), configuration and metrics, in a folder.

Of the graph that it was trained on they keep the order of its nodes and its split.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from .._core import __version__
from .._core.errors import RawlsError
from .._core.serialization import (
    JsonFields,
    is_bool,
    is_positive_int,
    is_string,
    read_json,
    read_tensors,
)
from ..graphs.graph_fingerprint import edge_digest
from ..graphs.splits import MASKS, SPLIT_WORDS

GRAPH = "graph/"
"""The names of the tensors that describe the graph begin so, those of weights with a seed."""
WEIGHTS, CONFIG, METRICS = "model.safetensors", "config.json", "metrics.json"
#: The checkpoints of the runs of a search on shards, until its model is saved.
RUNS = ".auto-runs"
#: What the commands write beside a model, about that model alone.
_BESIDE = (
    "predictions.csv",
    "report.html",
    "by_degree.png",
    "leaderboard.csv",
    "leaderboard.png",
    "tuning.json",
)


@dataclass(frozen=True)
class TrainingGraph:
    """The graph of a model, so that it is recognized when it is read again.

    The nodes may then be in another order: which file comes first decides it.

    Attributes:
        edges: A hash of the number of nodes and of the edges.
        tensors: The training, validation and test nodes, and, unless the node ids are sorted, as
            ``rank`` the place of each node among them.
    """

    edges: str
    tensors: dict[str, Tensor]

    @classmethod
    def of(cls, graph: Data) -> TrainingGraph:
        """Describe a validated graph with its masks."""
        rank = _rank(graph.get("node_ids"))
        tensors = {} if rank is None else {"rank": rank}
        tensors |= {key: graph[key].cpu() for key in MASKS if graph.get(key) is not None}
        return cls(edge_digest(graph.edge_index, int(graph.num_nodes)), tensors)

    @property
    def masks(self) -> list[Tensor]:
        """The training, validation and test nodes."""
        return [self.tensors[key] for key in MASKS if key in self.tensors]

    def places(self, graph: Data) -> Tensor | None:
        """Return the number of each node in the training graph; None for another graph."""
        nodes = int(graph.num_nodes)
        rank, own = _rank(graph.get("node_ids")), self.tensors.get("rank")
        places = same = torch.arange(nodes)
        if own is not None:
            if own.shape != (nodes,) or not torch.equal(own.sort().values, same):
                return None
            places = own.argsort()
        if rank is not None:
            places = places[rank]
        for each in (places, same):  # ids may be missing in one of the files
            if edge_digest(in_order(graph, each).edge_index, nodes) == self.edges:
                return each
        return None

    def split(self, graph: Data) -> list[str] | None:
        """Return "train", "val", "test" or "" for each node; None for another graph."""
        places, masks = self.places(graph), self.masks
        if places is None or [mask.shape for mask in masks] != [places.shape] * len(MASKS):
            return None
        return split_words([mask[places] for mask in masks])


def split_words(masks: Sequence[Tensor]) -> list[str]:
    """Return the name of the part that each node is in: "train", "val", "test" or ""."""
    words = np.full(len(masks[0]), "", dtype=object)
    for word, mask in zip(SPLIT_WORDS, masks, strict=True):
        words[mask.cpu().numpy().astype(bool)] = word
    return [str(word) for word in words]


def in_order(graph: Data, places: Tensor) -> Data:
    """Return the edges of a graph with its nodes renumbered: node i becomes ``places[i]``."""
    edge_index = places[graph.edge_index]
    by = torch.from_numpy(np.lexsort((edge_index[1].numpy(), edge_index[0].numpy())))
    ordered = Data(edge_index=edge_index[:, by], num_nodes=int(graph.num_nodes))
    if graph.get("edge_weight") is not None:
        ordered.edge_weight = graph.edge_weight[by]
    return ordered


def _rank(node_ids: Any) -> Tensor | None:
    """The place of each id among all of them in order; None where that is 0 to n - 1."""
    if node_ids is None:
        return None
    rank = np.argsort(np.argsort(np.asarray(node_ids), kind="stable"), kind="stable")
    return None if bool((rank[1:] > rank[:-1]).all()) else torch.from_numpy(rank)


def outdated_in(folder: Path) -> Callable[[str], bool]:
    """Which files of a folder describe the model in it, and not the one that replaces it.

    If the folder has no model, these are only the runs that a killed search left.
    """
    known = (RUNS, *_BESIDE) if (folder.expanduser() / CONFIG).exists() else (RUNS,)
    return lambda name: name in known


def write_model(
    folder: Path,
    states: dict[int, dict[str, Tensor]],
    metrics: dict[str, Any],
    graph: TrainingGraph | None = None,
    **about: Any,
) -> None:
    """Write a model into an existing folder, with the weights of each run by its seed.

    ``about`` is what ``config.json`` contains: the fields of :class:`.saved_models.TrainedModel`
    and the best seed.
    """
    from safetensors.torch import save

    tensors: dict[str, Tensor] = {}
    stored: set[int] = set()
    for seed, state in states.items():
        for name, tensor in state.items():
            own = tensor.cpu().contiguous()
            # Runs may share what is not trained, and the format has no shared memory.
            tensors[f"{seed}/{name}"] = own.clone() if own.data_ptr() in stored else own
            stored.add(own.data_ptr())
    if graph is not None:
        tensors |= {f"{GRAPH}{name}": each.contiguous() for name, each in graph.tensors.items()}
    # Not save_file: a full disk must be an OSError like any other.
    (folder / WEIGHTS).write_bytes(save(tensors, metadata={"format": "pt"}))
    config = {"rawlsgcn": __version__, **about, "seeds": list(states)}
    if graph is not None:
        config["edges"] = graph.edges
    (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    (folder / METRICS).write_text(json.dumps(metrics, indent=2) + "\n", encoding="utf-8")


def read_weights(folder: Path, seed: int) -> dict[str, Tensor]:
    """The weights of one run, by name."""
    path = folder / WEIGHTS
    try:
        state = read_tensors(path, f"{seed}/")
    except RawlsError as error:
        raise RawlsError(f"{error}; train again") from error
    if not state:
        raise RawlsError(f"{path} has no weights of seed {seed}")
    return state


def _are_seeds(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(each) is int for each in value)


def _are_names(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(map(is_string, value)))


_ENTRIES: JsonFields = {
    "method": ("a method's name", is_string),
    "settings": ("a table of settings", lambda value: isinstance(value, dict)),
    "row_normalized": ("true or false", is_bool),
    "num_features": ("a whole number of at least 1", is_positive_int),
    "num_classes": ("a whole number of at least 1", is_positive_int),
    "seeds": ("a list of whole numbers", _are_seeds),
    "best_seed": ("one of the seeds", lambda value: type(value) is int),
    "dataset": ("a name", is_string),
    "class_names": ("a list of names", _are_names),
    "structural_features": ("true or false", is_bool),
    "edges": ("a hash", is_string),
    "fingerprint": ("sizes and hashes", is_string),
}
#: Entries that models of earlier versions lack.
_LATER = {"class_names": None, "structural_features": False, "edges": "", "fingerprint": ""}


def read_config(folder: Path) -> dict[str, Any]:
    """What ``config.json`` says, checked; entries that earlier versions lack have defaults."""
    path = folder / CONFIG
    try:
        config = read_json(path, _ENTRIES, _LATER)
    except OSError as error:
        raise RawlsError(
            f"{folder} has no model: cannot read {CONFIG} ({error.strerror}); "
            "give the folder that 'rawlsgcn train --out' wrote"
        ) from error
    names = config["class_names"]
    if names is not None and len(names) != config["num_classes"]:
        raise RawlsError(f"{path} has {len(names)} names of {config['num_classes']} classes")
    return config
