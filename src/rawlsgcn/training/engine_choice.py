"""Which engine trains: on the whole graph, on smoothed rows or on samples, and why.

The rule, in this order:

1. The engine that the user names, if it can train the method on this graph.
2. A graph in shards: ``smoothed`` for smoothed-mlp whose inputs are the smoothed features alone,
   ``sampled`` for the GCN family; for everything else the whole graph, if it fits in memory.
3. A graph in memory: the whole graph; if that does not fit in memory, ``sampled`` for the GCN
   family.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._core.errors import RawlsError, unknown_name
from .._core.memory import code_memory, memory_left, size_text
from ..methods import MAIN_METHODS, Convolutional, Method, Settings
from .smoothed.smoothed_files import why_not_rows

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from ..graphs.shards.shards import Shards

#: Engines that train on the whole graph, and those that take a part of it in each step.
ENGINES = ("auto", "stacked", "reference")
STEPWISE = ("smoothed", "sampled")


@dataclass(frozen=True)
class GraphSize:
    """What the memory of training depends on: an edge is two arcs, and features are numbers."""

    nodes: int
    arcs: int
    features: int
    classes: int
    in_shards: bool = False

    @classmethod
    def of(cls, graph: Data) -> GraphSize:
        """Measure a validated graph in memory."""
        x = graph.x
        stored = x.numel() if not x.is_sparse_csr else 3 * x.values().numel()
        return cls(int(graph.num_nodes), graph.edge_index.shape[1], stored, int(graph.y.max()) + 1)

    @classmethod
    def of_shards(cls, shards: Shards) -> GraphSize:
        """Measure a graph in shards."""
        x = shards.open(0).x
        stored = 0 if x is None else shards.num_nodes * x.shape[1]
        return cls(shards.num_nodes, shards.num_arcs, stored, shards.classes, True)


@dataclass(frozen=True)
class EngineChoice:
    """The engine that trains, one of ``ENGINES`` or ``STEPWISE``, and why in a sentence."""

    engine: str
    reason: str = "you said so"

    @property
    def trained_on(self) -> str:
        """What the engine trains on, in words."""
        words = {"smoothed": "smoothed rows", "sampled": "samples"}
        return words.get(self.engine, "the whole graph")


def whole_graph_bytes(size: GraphSize, settings: Settings, runs: int = 1) -> int:
    """Estimate the memory of training so many runs at once on the whole graph, in bytes.

    For each arc 64 bytes (its ends, and two matrices with their values while they are made); for
    each stored feature 8 (the features, and divided by their row sums); for each node and run 16
    for every hidden channel and class (values and gradients). Python and torch come on top.
    """
    width = settings.hidden_channels * (settings.num_layers - 1) + size.classes
    return 64 * size.arcs + 8 * size.features + 16 * size.nodes * width * runs


def require_whole_graph(
    method: Method, settings: Settings, size: GraphSize, memory: int, runs: int = 1
) -> None:
    """Raise an error if a method needs the whole graph, which does not fit in ``memory`` bytes."""
    what = (
        f"use {method.name} with these settings, which needs the whole graph, unlike smoothed-mlp "
        "and the GCN family"
    )
    memory_left(whole_graph_bytes(size, settings, runs), memory, what)


def convolutional(method: Method) -> Convolutional:
    """Return the method if it can be trained on samples; raise an error otherwise."""
    if not isinstance(method, Convolutional):
        raise RawlsError(
            f"{method.name} cannot be trained on sampled neighborhoods: it needs the whole graph; "
            f"use {' or '.join(MAIN_METHODS)}, or another --engine"
        )
    return method


def choose_engine(
    method: Method,
    settings: Settings,
    size: GraphSize,
    memory: int,
    *,
    engine: str = "auto",
    runs: int = 1,
) -> EngineChoice:
    """Choose the engine by the graph's size, the method and the bytes of memory that may be used.

    Raises:
        RawlsError: If the ``engine`` that the user names is unknown or cannot train the method on
            this graph, or no engine can within the memory.
    """
    if engine not in (*ENGINES, *STEPWISE):
        raise unknown_name("engine", engine, (*ENGINES, *STEPWISE))
    no_rows = why_not_rows(settings, method.name)
    can_sample = isinstance(method, Convolutional)
    if engine == "smoothed" and (no_rows or not size.in_shards):
        why = no_rows or "it reads smoothed features from shards: give --shards (see 'shard')"
        raise RawlsError(f"the engine 'smoothed' cannot train this: {why}")
    if engine == "sampled":
        convolutional(method)
    if engine in STEPWISE:
        return EngineChoice(engine)
    if engine == "auto" and size.in_shards and no_rows is None:
        return EngineChoice(
            "smoothed", "once its features are smoothed, smoothed-mlp needs only their rows"
        )
    if engine == "auto" and size.in_shards and can_sample:
        return EngineChoice("sampled", f"{method.name} can be trained on samples of shards")
    if size.in_shards:
        require_whole_graph(method, settings, size, memory, runs)
    if engine != "auto":
        return EngineChoice(engine)
    needed = code_memory() + whole_graph_bytes(size, settings, runs)
    about = f"about {size_text(needed)}"
    if needed <= memory:
        return EngineChoice("auto", f"it fits in memory ({about})")
    excess = f"{about} of memory, more than the {size_text(memory)} it may use"
    if can_sample:
        return EngineChoice("sampled", f"the whole graph would need {excess}")
    return EngineChoice("auto", f"{method.name} knows no other way, though it needs {excess}")
