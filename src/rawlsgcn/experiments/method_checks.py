"""``check_method``: check that a method, ours or yours, does what the package relies on."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from .._core.errors import RawlsError
from .._core.random_state import kept_random_state, random_state
from ..graphs import check
from ..methods import Inputs, Method, Settings, find_method, with_changes
from .fitting import train_settings
from .model_files import read_weights
from .saved_models import TrainedModel

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from .result import Result

#: Predictions of a reordered graph may differ by this share of the largest score. Sums of float32
#: in another order differ by the length of the sum (some 100 here) times 6e-8, in two layers.
ORDER_TOLERANCE = 1e-3


def check_method(method: str | Method | type[Method], **settings: Any) -> None:
    """Check that a method does what the package relies on.

    It is trained on graphs of forty nodes, which takes about a second; ``docs/adding-a-method.md``
    lists the checks.

    Args:
        method: A name, or a method of your own, as a class or an object.
        **settings: Settings to check it with; by default its own with 5 epochs of width 8.

    Raises:
        AssertionError: If a check fails; the message names it.
        RawlsError: If the method or a setting is not known.

    Example:
        >>> import rawlsgcn as rg
        >>> from rawlsgcn.experiments import check_method
        >>> check_method("gcn")
    """
    chosen = find_method(method)
    subject = Subject(chosen, chosen.configure({"epochs": 5, "hidden_channels": 8, **settings}))
    for each in CHECKS:
        try:
            with kept_random_state():
                each(subject)
        except Exception as error:
            said = str(error) if isinstance(error, AssertionError) else f"{error!r} was raised"
            raise AssertionError(f"{chosen.name} fails {each.__name__}: {said}") from error


@dataclass(frozen=True)
class Subject:
    """The method to be checked, with the settings that it is trained with."""

    method: Method
    settings: Settings

    def train(self, graph: Data, **changes: Any) -> Result:
        """One run, trained as ``rawlsgcn.fit`` does."""
        settings = with_changes(self.settings, changes)
        clean = check(graph, sparse=True)
        (result,), _ = train_settings(clean, self.method, [settings], [0], device="cpu")
        return result

    def train_soundly(self, graph: Data, **changes: Any) -> Result:
        """The same, with scores and weights that are finite."""
        result = self.train(graph, **changes)
        assert not result.diverged, "a weight or a score is not a finite number"
        return result

    def model(self, result: Result, state: dict[str, Tensor] | None = None) -> TrainedModel:
        """The trained run, for predictions on any graph."""
        return TrainedModel(
            method=self.method,
            settings=self.settings,
            row_normalized=self.settings.normalize_features,
            num_features=int(result.graph.x.shape[1]),
            num_classes=int(result.logits.shape[-1]),
            seed=0,
            dataset="checked",
            state=result.states[0] if state is None else state,
            folder=Path("checked"),
        )


def small_graph() -> Data:
    """Forty nodes of three classes with degrees from one to ten, the same every time."""
    from torch_geometric.data import Data

    rng = np.random.default_rng(0)
    nodes, classes = 40, 3
    y = np.arange(nodes) % classes
    ends = [(i, int(rng.integers(0, i))) for i in range(1, nodes)]
    ends += [(i, j) for i in range(nodes) for j in range(i) if rng.random() < 0.2 * (y[i] == y[j])]
    pairs = np.array(sorted(set(ends))).T
    x = rng.random((nodes, 6)) * (rng.random((nodes, 6)) < 0.6) + np.eye(6)[y]
    part = np.arange(nodes) % 4
    return Data(
        x=torch.from_numpy(x).float(),
        y=torch.from_numpy(y),
        edge_index=torch.from_numpy(np.concatenate([pairs, pairs[::-1]], axis=1)),
        train_mask=torch.from_numpy(part <= 1),
        val_mask=torch.from_numpy(part == 2),
        test_mask=torch.from_numpy(part == 3),
    )


def check_scores_are_finite(subject: Subject) -> None:
    """Training gives a finite score of every class for every node."""
    shape = subject.train_soundly(small_graph()).logits.shape
    assert shape == (1, 40, 3), f"logits of the shape {tuple(shape)}"


def check_same_seed_gives_the_same_bits(subject: Subject) -> None:
    """A run is a function of its seed, whatever the state of the global generators."""
    runs = []
    for state in (1, 2):
        _seed_everything(state)
        runs.append(subject.train(small_graph()))
    first, second = runs
    assert torch.equal(first.logits, second.logits), "two runs with the same seed differ"
    _assert_same_state(first.states[0], second.states[0])


def check_the_random_state_is_kept(subject: Subject) -> None:
    """Neither learning nor predicting changes the caller's generators: Python, numpy, torch."""
    inputs = Inputs.of(check(small_graph(), sparse=True))
    learner = subject.method.learner(inputs, subject.settings, 0)  # what it loads may be random

    def restore() -> None:
        state = {name: tensor.clone() for name, tensor in learner.module.state_dict().items()}
        subject.method.restore(inputs, subject.settings, state).logits()

    uses: dict[str, Callable[[], object]] = {
        "making a learner": lambda: subject.method.learner(inputs, subject.settings, 0),
        "an epoch": learner.epoch,
        "predicting": learner.logits,
        "validation_score": learner.validation_score,
        "restore": restore,
    }
    for doing, use in uses.items():
        _seed_everything(987)  # not a state that is common
        before = random_state()
        use()
        for kind, state in random_state().items():
            assert state == before[kind], f"{doing} changes the random state of {kind}"


def check_a_saved_state_predicts_the_same(subject: Subject) -> None:
    """A model that was written and read predicts the same bits: ``module`` contains all of it."""
    graph = small_graph()
    result = subject.train(graph)
    with tempfile.TemporaryDirectory() as folder:
        result.write_model(Path(folder))
        state = read_weights(Path(folder), 0)
    _assert_same_state(result.states[0], state)
    scores = subject.model(result, state).logits(graph)
    assert torch.equal(scores, result.logits[0]), "the model predicts differently after it was read"


def check_predictions_ignore_the_order_of_nodes(subject: Subject) -> None:
    """Renumbering the nodes renumbers the predictions and changes nothing else."""
    graph = small_graph()
    model = subject.model(subject.train(graph))
    order = torch.from_numpy(np.random.default_rng(1).permutation(graph.num_nodes))
    moved = graph.subgraph(order)
    scores = model.logits(graph)
    _assert_close(model.logits(moved), scores[order], "the predictions depend on the nodes' order")


def check_sparse_features_are_like_dense_ones(subject: Subject) -> None:
    """Features in CSR form mean the same as dense ones."""
    graph = small_graph()
    model = subject.model(subject.train(graph))
    sparse = graph.clone()
    sparse.x = graph.x.to_sparse_csr()
    _assert_close(model.logits(sparse), model.logits(graph), "sparse features give other scores")
    assert not subject.train(sparse).diverged, "training on sparse features diverges"


def check_isolated_nodes(subject: Subject) -> None:
    """Nodes without neighbors get finite scores, also where training meets them."""
    graph = small_graph()
    graph.edge_index = graph.edge_index[:, (graph.edge_index >= 8).all(0)]
    subject.train_soundly(graph)


def check_a_graph_without_edges(subject: Subject) -> None:
    """Without a single edge predictions are finite, and training is finite or a RawlsError."""
    graph = small_graph()
    model = subject.model(subject.train(graph))
    graph.edge_index = graph.edge_index[:, :0]
    model.logits(graph)
    with suppress(RawlsError):
        subject.train_soundly(graph)


def check_it_predicts_on_another_graph(subject: Subject) -> None:
    """``restore`` needs neither labels nor training nodes, and not the degrees of before."""
    from torch_geometric.data import Data

    model = subject.model(subject.train(small_graph()))
    star = torch.stack([torch.zeros(14, dtype=torch.long), torch.arange(1, 15)])
    x = torch.linspace(0, 1, 120).view(20, 6)
    scores = model.logits(Data(x=x, edge_index=torch.cat([star, star.flip(0)], 1)))
    assert scores.shape == (20, 3), f"scores of the shape {tuple(scores.shape)}"


def check_one_class(subject: Subject) -> None:
    """Training nodes of a single class, or a graph of one, give finite scores or a RawlsError."""
    graph = small_graph()
    for nodes in (graph.train_mask, slice(None)):
        graph.y[nodes] = 0
        with suppress(RawlsError):
            subject.train_soundly(graph)


def check_features_that_are_not_numbers(subject: Subject) -> None:
    """A feature that is NaN raises a RawlsError."""
    graph = small_graph()
    graph.x[3, 2] = float("nan")
    try:
        subject.train(graph)
    except RawlsError:
        return
    raise AssertionError("a NaN among the features was accepted")


def check_divergence_is_reported(subject: Subject) -> None:
    """At a learning rate of 1e30 a run diverges and says so, or gives numbers or a RawlsError."""
    with suppress(RawlsError):
        result = subject.train(small_graph(), lr=1e30)
        if result.diverged:
            assert np.isnan(result.accuracy.mean), "a diverged run has an accuracy"
            assert result.failure in result.notes, "no note says that the run diverged"


def check_early_stopping(subject: Subject) -> None:
    """With patience the best weights on the validation nodes are kept, and are finite."""
    subject.train_soundly(small_graph(), patience=1, epochs=4)


#: In the order above: what fails first explains what would fail after it.
CHECKS: list[Callable[[Subject], None]] = [
    value
    for name, value in list(globals().items())
    if name.startswith("check_") and value is not check_method
]


def _assert_same_state(first: dict[str, Tensor], second: dict[str, Tensor]) -> None:
    assert first.keys() == second.keys(), f"the states have {sorted(first)} and {sorted(second)}"
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), f"the weights {name} differ"


def _assert_close(scores: Tensor, expected: Tensor, words: str) -> None:
    away = float((scores - expected).abs().max())
    limit = ORDER_TOLERANCE * float(expected.abs().max())
    assert away <= limit, f"{words}: by up to {away:.2g}, more than rounding's {limit:.2g}"


def _seed_everything(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
