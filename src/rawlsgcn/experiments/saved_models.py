"""Saved models: loading one from its folder, and its predictions on any graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from .._core.atomic_folders import one_version
from .._core.errors import RawlsError, out_of_memory, reading
from .._core.machine import pick_device
from .._core.random_state import kept_random_state
from .._core.serialization import read_tensors
from .._core.text import plural
from .._core.threads import fork_safe_threads
from ..graphs import check, load
from ..graphs.graph_fingerprint import fingerprint
from ..graphs.node_features import structural_features
from ..graphs.splits import MASKS
from ..methods import Inputs, Learner, Method, Settings, find_method
from .model_files import (
    CONFIG,
    GRAPH,
    WEIGHTS,
    TrainingGraph,
    in_order,
    read_config,
    read_weights,
    split_words,
)

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass(frozen=True)
class TrainedModel:
    """A trained run, which predicts on its graph or on another one with the same features.

    Made by :func:`rawlsgcn.load_model` from a folder that :meth:`rawlsgcn.Result.save` or
    ``rawlsgcn train --out`` wrote.

    Attributes:
        method: The method.
        settings: The settings that it was trained with.
        row_normalized: Whether rows of features were divided by their sums.
        num_features: The number of features of a node.
        num_classes: The number of classes.
        seed: The seed of the run.
        dataset: The name of the graph that it was trained on.
        state: The weights by name.
        folder: The folder that it was loaded from.
        class_names: The names of the classes in their order, if they have any.
        structural_features: Whether the graph had no features, so that its structure was used.
        training_graph: What is kept of the graph that it was trained on; None for one that was
            trained in steps.
        fingerprint: The sizes and hashes of the graph that a model was trained on in steps.
    """

    method: Method
    settings: Settings
    row_normalized: bool
    num_features: int
    num_classes: int
    seed: int
    dataset: str
    state: dict[str, Tensor]
    folder: Path
    class_names: list[str] | None = None
    structural_features: bool = False
    training_graph: TrainingGraph | None = None
    fingerprint: str = ""

    def __repr__(self) -> str:
        numbers = sum(tensor.numel() for tensor in self.state.values())
        return (
            f"TrainedModel({self.method.name} on {self.dataset}, seed {self.seed}: "
            f"{plural(self.num_features, 'feature')}, {self.num_classes} classes, "
            f"{plural(numbers, 'parameter')})"
        )

    @fork_safe_threads()
    def logits(self, graph: Data | str, *, device: str = "cpu") -> Tensor:
        """Compute the class scores of every node of a graph.

        Args:
            graph: A torch_geometric ``Data`` with features (labels are not needed), or the name
                of a dataset.
            device: ``"cpu"``, ``"cuda"``, or ``"auto"`` for a GPU if there is one.

        Returns:
            A tensor of shape (nodes, classes) on the CPU.

        Raises:
            RawlsError: If the graph has another number of features, or the scores are not finite.
        """
        target = pick_device(device)
        clean = _checked(graph, need_features=not self.structural_features)
        places = None
        if self.structural_features and not isinstance(graph, str):
            places = self._places(clean)
            clean = in_order(clean, places)
            clean.x = structural_features(clean.edge_index, int(clean.num_nodes))
        require_width(self, clean.x.shape[1], "this graph")
        inputs = Inputs.of(
            clean,
            normalize_features=self.row_normalized,
            even_negative=True,
            device=target,
            num_classes=self.num_classes,
        )
        with kept_random_state():
            scores = self._restored(inputs).logits().cpu()
        require_finite(self, scores)
        return scores if places is None else scores[places]

    def _places(self, graph: Data) -> Tensor:
        """The number of each node in the training graph, whose structure is used."""
        places = None if self.training_graph is None else self.training_graph.places(graph)
        if places is None:
            raise RawlsError(
                f"the model in {self.folder} was trained on the structure of a graph without "
                "features and can only be used on that graph; give the same files as for training"
            )
        return places

    def split(self, graph: Any) -> list[str] | None:
        """Say which nodes of a graph the model was trained, validated and tested on.

        Args:
            graph: A graph as for :meth:`predict`.

        Returns:
            "train", "val", "test" or "" for each node; None if it is not the graph that the model
            was trained on.
        """
        if self.training_graph is None and not self.fingerprint:
            return None
        clean = _checked(graph, need_features=False)
        if self.training_graph is not None:
            return self.training_graph.split(clean)
        masks = [clean[key] for key in MASKS if clean.get(key) is not None]
        same = len(masks) == len(MASKS) and fingerprint(clean) == self.fingerprint
        return split_words(masks) if same else None

    def _restored(self, inputs: Inputs) -> Learner:
        unfit = RawlsError(
            f"the weights in {self.folder} do not fit its {CONFIG}: one of them was changed; "
            "train again"
        )
        try:
            with _no_larger_than(self.state):
                learner = self.method.restore(inputs, self.settings, self.state)
        except RawlsError as error:
            raise RawlsError(f"the model in {self.folder}: {error}") from error
        except Exception as error:
            if out_of_memory(error):
                raise RawlsError(
                    f"there is not enough memory for the model in {self.folder} on this graph: "
                    f"take a smaller one, or look for sizes in its {CONFIG} that were changed"
                ) from error
            raise unfit from error
        made = learner.module.state_dict()
        # Loading converts other types silently, and bits that were whole numbers make no weights.
        if any(tensor.dtype != made.get(name, tensor).dtype for name, tensor in self.state.items()):
            raise unfit
        return learner

    def predict(self, graph: Data | str, *, device: str = "cpu") -> Tensor:
        """Compute the class probabilities of every node of a graph.

        Args:
            graph: A torch_geometric ``Data`` with features (labels are not needed), or the name
                of a dataset.
            device: ``"cpu"``, ``"cuda"``, or ``"auto"`` for a GPU if there is one.

        Returns:
            A tensor of shape (nodes, classes) on the CPU, whose rows sum to one.

        Raises:
            RawlsError: If the graph has another number of features, or the scores are not finite.
        """
        return torch.softmax(self.logits(graph, device=device), -1)


def _checked(graph: Any, *, need_features: bool) -> Data:
    """A dataset by name, or the user's own graph, validated; it needs no labels."""
    if isinstance(graph, str):
        return load(graph, sparse=True)
    return check(graph, sparse=True, need_labels=False, need_features=need_features)


def require_width(model: TrainedModel, width: int, graph: str) -> None:
    """Raise an error for a graph with another number of features than the model has."""
    if width != model.num_features:
        raise RawlsError(
            f"the model in {model.folder} was trained on {model.num_features} features, {graph} "
            f"has {width}"
        )


def require_finite(model: TrainedModel, scores: Tensor) -> None:
    """Raise an error for scores of a graph that are not finite numbers."""
    if not bool(scores.isfinite().all()):
        raise RawlsError(
            f"the scores that the model in {model.folder} gives this graph are not all finite "
            "numbers: look for features or edge weights that are far larger than those it was "
            "trained on"
        )


@contextmanager
def _no_larger_than(state: Mapping[str, Tensor]) -> Iterator[None]:
    """Stop this thread from building a network far larger than ``state``, whose sizes come from a
    file: torch allocates lazily, and a parameter is registered before it is drawn."""
    thread = get_ident()
    tensors = 10 * len(state) + 1000
    numbers = 10 * sum(tensor.numel() for tensor in state.values()) + 1_000_000

    def count(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        nonlocal tensors, numbers
        if get_ident() == thread and parameter is not None:
            tensors, numbers = tensors - 1, numbers - parameter.numel()
            if tensors < 0 or numbers < 0:
                raise ValueError("there are far fewer weights than its settings ask for")

    hook = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        hook.remove()


@fork_safe_threads()
@one_version
def load_model(folder: str | Path, seed: int | None = None) -> TrainedModel:
    """Load a model that :meth:`rawlsgcn.Result.save` or ``rawlsgcn train --out`` wrote.

    Args:
        folder: The folder.
        seed: The seed of the run to load; by default that of the best run on validation.

    Returns:
        The model.

    Raises:
        RawlsError: If the folder has no model or a damaged one, its method is not known here (see
            :func:`rawlsgcn.methods.register`), or there is no run with the seed.

    Example:
        >>> import tempfile
        >>> import rawlsgcn as rg
        >>> graph = rg.synthetic(300)
        >>> result = rg.fit(graph, "gcn", seeds=1, epochs=10)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result.save(f"{folder}/model")
        ...     model = rg.load_model(f"{folder}/model")
        >>> tuple(model.predict(graph).shape)
        (300, 6)
    """
    if not isinstance(folder, str | Path):
        raise RawlsError(f"a model is loaded from its folder's path, not from {folder!r}")
    folder = Path(folder).expanduser()
    config = read_config(folder)
    chosen = config["best_seed"] if seed is None else seed
    if chosen not in config["seeds"]:
        raise RawlsError(f"{folder} has no run with seed {chosen}: it has {config['seeds']}")
    state = read_weights(folder, chosen)
    with reading(folder / CONFIG):
        method = find_method(config["method"])
        settings = method.configure(config["settings"])
        numbers = sum(tensor.numel() for tensor in state.values())
        sizes = {name: getattr(settings, name) for name in ("num_layers", "hidden_channels")}
        for name, size in (sizes | {"num_classes": config["num_classes"]}).items():
            if size > 10 * numbers + 1000:  # no network of so few weights has it
                raise RawlsError(
                    f"{name} is {size:,}, but {WEIGHTS} has only {numbers:,} numbers: one of the "
                    "two files was changed; train again"
                )
    edges = config["edges"]
    known = TrainingGraph(edges, read_tensors(folder / WEIGHTS, GRAPH)) if edges else None
    kept = ("row_normalized", "num_features", "num_classes", "dataset", "class_names")
    return TrainedModel(
        method=method,
        settings=settings,
        seed=chosen,
        state=state,
        folder=folder,
        training_graph=known,
        **{name: config[name] for name in (*kept, "structural_features", "fingerprint")},
    )
