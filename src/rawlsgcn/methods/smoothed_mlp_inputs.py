"""What a smoothed MLP is given: its settings, and the inputs that they make of a graph."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import torch
from torch import Tensor

from .._core.errors import RawlsError, unknown_name
from .._core.sparse import csr_entries, csr_from_entries
from ..balancing import propagation_matrix
from ..graphs.graph_fingerprint import edge_digest
from ..graphs.lifting.lifted_graph import LiftedGraph, lift_low_degrees
from ..graphs.tf_idf import inverse_document_frequency, tf_idf
from ._ops.fixed_matrix import FixedMatrix, short_indices, suited
from ._ops.receptive_field import select_rows
from ._ops.smoothing import PageRankSmoothing, product
from .base import Layer, LayerStack, layer_sizes
from .inputs import Inputs
from .settings import Settings

T = TypeVar("T")
FEATURES = ("raw", "tf-idf")
INPUTS = ("smoothed", "both", "adjacency")
#: More steps than this are a typing error.
MOST_STEPS = 10_000


@dataclass(frozen=True)
class SmoothedMLPSettings(Settings):
    """The settings of an MLP, and of what it is given.

    Args:
        features: ``"raw"`` for the features as they are, or ``"tf-idf"``, which leaves dense and
            negative features as they are, in rows of unit length.
        inputs: ``"smoothed"`` for Π F, ``"both"`` for [F, Π F], or ``"adjacency"`` for [A, F],
            with which a model cannot be used on another graph.
        teleport: α, the share of the own features in each step of the smoothing.
        steps: The number of steps.
        min_degree: Nodes with fewer neighbors are joined to the nodes with the nearest features
            before the smoothing, until they have so many; 0 leaves the graph as it is.
        label_smoothing: The share of a label that is spread evenly over the classes.
    """

    normalization: str = "doubly-stochastic"
    features: str = "raw"
    inputs: str = "smoothed"
    teleport: float = 0.1
    steps: int = 10
    min_degree: int = 0
    label_smoothing: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.features not in FEATURES:
            raise unknown_name("kind of features", self.features, FEATURES)
        if self.inputs not in INPUTS:
            raise unknown_name("kind of inputs", self.inputs, INPUTS)
        self._require(0 < self.teleport <= 1, "teleport", "more than 0 and at most 1")
        self._require(0 <= self.steps <= MOST_STEPS, "steps", f"from 0 to {MOST_STEPS:,}")
        self._require(self.min_degree >= 0, "min_degree", "zero or more")
        if self.min_degree and self.inputs == "adjacency":
            raise RawlsError(
                "min_degree changes nothing with inputs 'adjacency', which are not smoothed: leave "
                "one of them out"
            )
        smoothing = self.label_smoothing
        self._require(0 <= smoothing < 1, "label_smoothing", "at least 0 and less than 1")


class SmoothedStack(LayerStack):
    """The smoothed inputs of the labeled rows; the other layers multiply by no matrix.

    ``fixed`` is what a saved model has beside its weights; by default computed from the graph.
    """

    def __init__(
        self,
        inputs: Inputs,
        settings: SmoothedMLPSettings,
        fixed: Mapping[str, Tensor] | None = None,
    ) -> None:
        self.inputs, self.settings = inputs, settings
        self.fixed = dict(self._compute_fixed() if fixed is None else self._checked(fixed))
        features, *later = layer_sizes(inputs, settings)
        beside = {"both": features, "adjacency": len(self.fixed.get("columns", ()))}
        self.sizes = [features + beside.get(settings.inputs, 0), *later]

    @property
    def _uses_tf_idf(self) -> bool:
        return self.settings.features == "tf-idf" or self.settings.min_degree > 0

    def _compute_fixed(self) -> dict[str, Tensor]:
        """tf-idf's weights; for [A, F] the nodes with a neighbor in training, and the graph."""
        i, fixed = self.inputs, {}
        if self._uses_tf_idf:
            fixed["idf"] = self._shared("idf", lambda: inverse_document_frequency(i.x))
        if self.settings.inputs == "adjacency":
            seen = torch.zeros(i.num_nodes, dtype=torch.bool, device=i.device)
            trained = torch.zeros_like(seen)
            trained[i.train] = True
            seen[i.edge_index[1][trained[i.edge_index[0]]]] = True
            fixed["columns"] = seen.nonzero().view(-1)
            fixed["graph"] = self._digest()
        return fixed

    def _checked(self, fixed: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """What a file has beside the weights, valid for this graph."""
        i, adjacency = self.inputs, self.settings.inputs == "adjacency"
        kinds = {"idf": (torch.float32, i.num_features)} if self._uses_tf_idf else {}
        if adjacency:
            count = fixed.get("columns", i.train).numel()
            kinds |= {"columns": (torch.int64, count), "graph": (torch.int64, 1)}
        for name, (dtype, size) in kinds.items():
            tensor = fixed.get(name)
            if tensor is None or tensor.dtype != dtype or tensor.shape != (size,):
                raise RawlsError(
                    f"its weights have no {name} of {size} numbers: they were changed; train again"
                )
        kept = {name: fixed[name].to(i.device) for name in kinds}
        if adjacency:
            if not torch.equal(kept["graph"], self._digest()):
                raise RawlsError(
                    "it was trained on the rows of its graph's adjacency matrix and can only be "
                    "used on that graph, with the nodes in the order of the training: train with "
                    "inputs 'smoothed' or 'both', or rawlsgcn auto with --transferable"
                )
            columns = kept["columns"]
            inside = (columns >= 0) & (columns < i.num_nodes)
            if not bool(inside.all()) or not bool((columns.diff() > 0).all()):
                raise RawlsError("its columns are not nodes of the graph in order: train again")
        return kept

    def _digest(self) -> Tensor:
        """The edges of the graph as a number."""
        i = self.inputs
        number = int(edge_digest(i.edge_index, i.num_nodes), 16)
        return torch.tensor([number], device=i.device)

    def _shared(self, key: object, compute: Callable[[], T]) -> T:
        """A value that all runs on this graph share."""
        if key not in self.inputs.shared:
            self.inputs.shared[key] = compute()
        value: T = self.inputs.shared[key]
        return value

    @cached_property
    def _features(self) -> FixedMatrix:
        """F with its transpose."""
        x, weighted = self.inputs.x, self.settings.features == "tf-idf"

        def compute() -> FixedMatrix:
            return FixedMatrix.of(short_indices(tf_idf(x, self.fixed["idf"]) if weighted else x))

        return self._shared(("features", self._idf_key if weighted else ""), compute)

    @cached_property
    def _idf_key(self) -> str:
        idf = self.fixed["idf"].cpu().contiguous().numpy()
        return hashlib.blake2b(idf.tobytes(), digest_size=8).hexdigest()

    @cached_property
    def lifted(self) -> LiftedGraph | None:
        """The graph with edges added for low degrees, or None for the graph itself."""
        least, i = self.settings.min_degree, self.inputs
        if not least:
            return None

        def compute() -> LiftedGraph:
            features = tf_idf(i.x, self.fixed["idf"])
            return lift_low_degrees(
                i.edge_index, features, edge_weight=i.edge_weight, min_degree=least
            )

        return self._shared(("lifted", least, self._idf_key), compute)

    @property
    def notes(self) -> tuple[str, ...]:
        return () if self.lifted is None else (self.lifted.note,)

    @cached_property
    def _smoothing(self) -> PageRankSmoothing:
        s, i = self.settings, self.inputs
        graph = i if self.lifted is None else self.lifted
        matrix = self._shared(
            ("matrix", s.normalization, s.min_degree, self._idf_key if s.min_degree else ""),
            lambda: propagation_matrix(
                graph.edge_index, graph.edge_weight, i.num_nodes, s.normalization, dtype=i.dtype
            ),
        )
        return PageRankSmoothing(matrix, s.teleport, s.steps)

    @cached_property
    def _adjacency(self) -> Tensor:
        """The columns of A that the network has weights for, as CSR."""
        i, columns = self.inputs, self.fixed["columns"]
        place = torch.full((i.num_nodes,), -1, dtype=torch.long, device=i.device)
        place[columns] = torch.arange(len(columns), device=i.device)
        row, column = i.edge_index[0], place[i.edge_index[1]]
        weight = i.edge_weight
        value = torch.ones(len(row), device=i.device) if weight is None else weight
        kept = column >= 0
        return csr_from_entries(
            row[kept], column[kept], value[kept].to(i.dtype), (i.num_nodes, len(columns))
        )

    @cached_property
    def rows(self) -> FixedMatrix:
        """The inputs of the training nodes."""
        nodes, features = self.inputs.train, self._features
        kind = self.settings.inputs
        if kind == "smoothed":
            return FixedMatrix.of(self._smoothing.rows(features, nodes))
        own = select_rows(features.matrix, nodes)
        if kind == "both":
            dense = own if own.layout == torch.strided else own.to_dense()
            return FixedMatrix.of(torch.cat([dense, self._smoothing.rows(features, nodes)], 1))
        return FixedMatrix.of(suited(_side_by_side(select_rows(self._adjacency, nodes), own)))

    @property
    def tensors(self) -> list[Tensor]:
        return [self.rows.matrix]

    @property
    def layers(self) -> list[Layer]:
        identity = [Layer(None, None)] * (len(self.sizes) - 2)
        return [Layer(self.rows, self.rows), *identity]

    @torch.no_grad()
    def logits(self, state: Sequence[Tensor]) -> Tensor:
        h = self._first(state[0]) + state[1]
        for weight, bias in zip(state[2::2], state[3::2], strict=True):
            h = torch.addmm(bias, h.relu_(), weight)
        return h

    def _first(self, weight: Tensor) -> Tensor:
        """The inputs of all nodes times a weight matrix, smoothed after the product."""
        features, kind = self._features.matrix, self.settings.inputs
        if kind == "smoothed":
            return self._smoothing(product(features, weight))
        cut = weight.shape[0] - self.inputs.num_features
        if kind == "both":
            smoothed = self._smoothing(product(features, weight[cut:].contiguous()))
            return smoothed.add_(product(features, weight[:cut].contiguous()))
        own = product(features, weight[cut:].contiguous())
        return own.add_(product(self._adjacency, weight[:cut].contiguous()))


def _side_by_side(left: Tensor, right: Tensor) -> Tensor:
    """[left, right] as CSR, of a CSR matrix and a dense or CSR one."""
    right = right.to_sparse_csr() if right.layout == torch.strided else right
    row, column, value = csr_entries(left)
    other_row, other_column, other_value = csr_entries(right)
    return csr_from_entries(
        torch.cat([row, other_row]),
        torch.cat([column, other_column + left.shape[1]]),
        torch.cat([value, other_value]),
        (left.shape[0], left.shape[1] + right.shape[1]),
    )
