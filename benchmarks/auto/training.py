"""Train the runs of a rival's grid, and take the mean probability of its best runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils import parameters_to_vector

from rawlsgcn._core.errors import RawlsError
from rawlsgcn._core.progress import ProgressCallback, no_progress
from rawlsgcn._core.random_state import kept_random_state
from rawlsgcn._core.threads import threads_for_graph, training_threads
from rawlsgcn.experiments.model_search import tuned_gcn
from rawlsgcn.experiments.model_search.pool import RATES, RUNS_OF_SETTING
from rawlsgcn.methods import Inputs, find_method
from rawlsgcn.methods.base import all_finite
from rawlsgcn.training import Job, train_runs
from rawlsgcn.training.stacked.adam import FusedAdam, VectorAdam
from rawlsgcn.training.stacked.engine import recorded

from .models import NETWORKS, SideBySide

RIVALS = ("gcn", *NETWORKS)
#: The answer of a rival is the mean probability of so many runs.
BEST = tuned_gcn.BEST_RUNS
EPOCHS = 200
#: The largest tensor of a block of runs that are trained side by side, in bytes.
BLOCK_BYTES = {"cpu": 1 << 25, "cuda": 1 << 31}
#: GAT drops inputs, hidden units and attention at once; 0.6 is the published value.
DROPOUTS = {"gat": (0.3, 0.6)}


@dataclass(frozen=True)
class RunSettings:
    """The settings of one run that are tuned."""

    hidden_channels: int
    dropout: float
    lr: float
    weight_decay: float
    seed: int


@dataclass(frozen=True)
class Trained:
    """One trained run.

    Attributes:
        settings: Its settings.
        logits: Of shape (nodes, classes), on the CPU; NaN if the run diverged.
    """

    settings: RunSettings
    logits: Tensor

    @property
    def diverged(self) -> bool:
        """Whether a logit is not a finite number."""
        return not all_finite([self.logits])


@dataclass(frozen=True)
class Answer:
    """The mean probability of the best runs.

    Attributes:
        probabilities: Of shape (nodes, classes), in float64.
        runs: The number of runs that were trained; None if that is not known.
        diverged: How many of them diverged.
        chosen: What the mean consists of: of a rival the settings and the validation accuracy (%)
            of its runs, of ``auto`` the names of its members.
        details: Further tables of ``auto``.
    """

    probabilities: Tensor
    runs: int | None
    diverged: int
    chosen: list[Any]
    details: dict[str, Any] = field(default_factory=dict)


def grid(rival: str, runs: int | None = None, seed: int = 0) -> list[RunSettings]:
    """The runs of a rival: rate × decay × width × dropout × two seeds, 96 in all.

    Args:
        rival: One of :data:`RIVALS`.
        runs: A smaller number takes so many of them, drawn at random, always the same.
        seed: The first of the two seeds of the runs is 2 · seed.

    Returns:
        The settings, runs of the same shape one after another.

    Raises:
        RawlsError: If there are fewer runs than asked for.
    """
    every = [
        RunSettings(hidden, dropout, lr, decay, 2 * seed + each)
        for hidden, dropout, lr, decay, each in product(
            tuned_gcn.WIDTHS,
            DROPOUTS.get(rival, tuned_gcn.DROPOUTS),
            RATES,
            tuned_gcn.DECAYS,
            range(RUNS_OF_SETTING),
        )
    ]
    if runs is None or runs == len(every):
        return every
    if not 1 <= runs <= len(every):
        raise RawlsError(f"--runs must be from 1 to {len(every)}, not {runs}")
    drawn = torch.randperm(len(every), generator=torch.Generator().manual_seed(0))[:runs]
    return [every[i] for i in sorted(drawn.tolist())]


def train_rival(
    rival: str,
    inputs: Inputs,
    settings: Sequence[RunSettings],
    *,
    epochs: int = EPOCHS,
    progress: ProgressCallback = no_progress,
) -> list[Trained]:
    """Train runs of a rival with Adam on the cross entropy of the training nodes.

    Args:
        rival: One of :data:`RIVALS`.
        inputs: The graph.
        settings: The settings of each run.
        epochs: The number of epochs of each run.
        progress: Called with the epochs done and the epochs in total.

    Returns:
        The runs, in the order of ``settings``.
    """
    if rival == "gcn":
        method = find_method("gcn")
        jobs = [
            Job(
                method.configure(
                    {
                        "hidden_channels": each.hidden_channels,
                        "dropout": each.dropout,
                        "lr": each.lr,
                        "weight_decay": each.weight_decay,
                        "epochs": epochs,
                    }
                ),
                each.seed,
            )
            for each in settings
        ]
        runs, _ = train_runs(method, inputs, jobs, progress=progress)
        return [Trained(s, run.logits) for s, run in zip(settings, runs, strict=True)]
    with threads_for_graph(inputs.x, inputs.edge_index), kept_random_state():
        return _side_by_side(NETWORKS[rival], inputs, settings, epochs, progress)


def best_mean(runs: Sequence[Trained], inputs: Inputs, best: int = BEST) -> Answer:
    """Take the mean probability of the best runs by validation accuracy.

    Runs that diverged are left out. Of runs with the same accuracy the first are taken.

    Args:
        runs: The trained runs.
        inputs: The graph, with its validation nodes.
        best: How many runs to take.

    Returns:
        The answer.

    Raises:
        RawlsError: If every run diverged.
    """
    val, y = inputs.val.cpu(), inputs.y.cpu()
    sound = [run for run in runs if not run.diverged]
    if not sound:
        raise RawlsError("every run of the grid diverged: there is nothing to choose from")
    accuracy = [float((run.logits[val].argmax(-1) == y[val]).double().mean()) for run in sound]
    order = sorted(range(len(sound)), key=lambda i: -accuracy[i])[:best]
    mean = torch.stack([torch.softmax(sound[i].logits.double(), -1) for i in order]).mean(0)
    chosen = [
        {**asdict(sound[i].settings), "validation_accuracy": 100 * accuracy[i]} for i in order
    ]
    return Answer(mean, len(runs), len(runs) - len(sound), chosen)


def _side_by_side(
    kind: type[SideBySide],
    inputs: Inputs,
    settings: Sequence[RunSettings],
    epochs: int,
    progress: ProgressCallback,
) -> list[Trained]:
    """Train runs of the same shape in blocks, and compute the logits of all nodes."""
    training, everywhere = kind(inputs, inputs.train), kind(inputs, None)
    # The runs of a block share the dropout of their inputs, as runs with the same seed would.
    groups: dict[tuple[int, float, int], list[int]] = {}
    for index, each in enumerate(settings):
        groups.setdefault((each.hidden_channels, each.dropout, each.seed), []).append(index)
    limit = BLOCK_BYTES[inputs.device.type] // 4
    trained: dict[int, Trained] = {}
    for (hidden, _, _), members in groups.items():
        size = max(1, limit // training.numbers(hidden))
        for block in _blocks(members, size):
            before = len(trained)

            def report(epoch: int, before: int = before, runs: int = len(block)) -> None:
                progress(before * epochs + runs * epoch, len(settings) * epochs)

            weights = _train_block(training, [settings[i] for i in block], epochs, report)
            # A forward pass over the whole graph takes more memory for each run.
            fitting = max(1, limit // everywhere.numbers(hidden))
            for part in _blocks(list(range(len(block))), fitting):
                with torch.no_grad():
                    some = {name: weight[part] for name, weight in weights.items()}
                    logits = everywhere(some, 0).cpu()
                for at, i in enumerate(part):
                    # A copy, which does not keep the logits of the other runs.
                    trained[block[i]] = Trained(settings[block[i]], logits[:, at].clone())
    return [trained[index] for index in range(len(settings))]


def _train_block(
    forward: SideBySide, settings: Sequence[RunSettings], epochs: int, report: Callable[[int], None]
) -> dict[str, Tensor]:
    """Train one block of runs of the same shape; the weights of all of them by name."""
    inputs, dropout = forward.inputs, settings[0].dropout
    models = []
    for each in settings:
        torch.manual_seed(each.seed)
        sizes = (inputs.num_features, each.hidden_channels, inputs.num_classes)
        models.append(forward.network(*sizes, dropout))
    # A row for each run, so that one product, one gradient and one step serve all of them.
    rows = [parameters_to_vector(model.parameters()) for model in models]
    flat = torch.stack(rows).detach().to(inputs.device).requires_grad_()
    shapes = {name: parameter.shape for name, parameter in models[0].named_parameters()}
    torch.manual_seed(settings[0].seed)
    labels = inputs.y[inputs.train].repeat_interleave(len(models))
    gradients = torch.zeros_like(flat)
    adam = _adam(flat.detach(), gradients, settings)

    def step() -> None:
        logits = forward(_by_name(flat, shapes), dropout).flatten(0, 1)
        # The sum over the runs of their means over the nodes: no run changes another.
        loss = functional.cross_entropy(logits, labels, reduction="sum") / len(inputs.train)
        gradients.copy_(torch.autograd.grad(loss, flat)[0])
        for each in adam:
            each.step()

    if isinstance(adam[0], VectorAdam):
        step = recorded(step, adam[0].state)
    with training_threads() as update_threads:
        for epoch in range(epochs):
            update_threads()
            step()
            report(epoch + 1)
    return _by_name(flat.detach(), shapes)


def _adam(
    parameters: Tensor, gradients: Tensor, settings: Sequence[RunSettings]
) -> list[FusedAdam] | list[VectorAdam]:
    """Adam for a row of parameters of each run; on a GPU one that can be recorded."""
    if parameters.device.type == "cpu":
        return [
            FusedAdam(row, gradient, each.lr, each.weight_decay)
            for row, gradient, each in zip(parameters, gradients, settings, strict=True)
        ]
    lr = parameters.new_tensor([[each.lr] for each in settings])
    decay = parameters.new_tensor([[each.weight_decay] for each in settings])
    return [VectorAdam(parameters, gradients, lr, decay)]


def _by_name(flat: Tensor, shapes: Mapping[str, torch.Size]) -> dict[str, Tensor]:
    """The parameters of all runs by name, of rows with all parameters of a run."""
    parts = torch.split(flat, [shape.numel() for shape in shapes.values()], 1)
    return {
        name: part.reshape(-1, *shape)
        for (name, shape), part in zip(shapes.items(), parts, strict=True)
    }


def _blocks(items: list[int], size: int) -> list[list[int]]:
    """Divide a list into as few parts of about the same length as the size allows."""
    count = -(-len(items) // size)
    length = -(-len(items) // count)
    return [items[i : i + length] for i in range(0, len(items), length)]
