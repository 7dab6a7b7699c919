"""``auto`` for graphs that do not fit in memory: the members that need smoothed rows alone."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..._core.atomic_folders import atomic_directory
from ..._core.distributed_context import DistributedContext
from ..._core.progress import ProgressCallback, no_progress
from ..._core.serialization import jsonable
from ...graphs.shards.shard_graph import ShardNodes
from ...methods import Method
from ...methods.ensemble import Ensemble, EnsembleSettings
from ...methods.smoothed_mlp_inputs import SmoothedMLPSettings
from ...training import Job, TrainedRun
from ...training.batch_training import DivergedError
from ...training.checkpoints import train_with_checkpoints
from ...training.smoothed.row_order import BATCH_ROWS, evenly
from ...training.smoothed.row_scores import RowModel
from ...training.smoothed.row_training import RowTraining
from ...training.smoothed.smooth_shards import smooth_shards
from ...training.smoothed.smoothed_files import SmoothedForm, SmoothedRows, take_rows, why_not_rows
from ...training.whole_graph import PartialProgress
from ..fitting import described
from ..large_graphs.row_evaluation import evaluate_rows
from ..large_graphs.shard_predictions import row_models
from ..large_graphs.step_fits import with_usual_epochs
from ..model_files import RUNS, outdated_in, write_model
from ..saved_models import TrainedModel
from .pool import (
    POOL,
    Candidate,
    Member,
    WeightedMean,
    grid,
    ranked,
    require_members,
    seeds_of,
    train_member,
)
from .selection import MOST_NODES, Judge


def row_candidates() -> tuple[list[Candidate], dict[str, str]]:
    """The candidates that need only smoothed rows, and why each of the others is left out."""
    reasons = {each.name: why_not_rows(each.settings(), each.method) for each in POOL}
    usable = [each for each in POOL if reasons[each.name] is None]
    return usable, {name: why for name, why in reasons.items() if why is not None}


def auto_rows(
    nodes: ShardNodes,
    out: Path,
    *,
    memory: int,
    seed: int = 0,
    device: torch.device | str = "cpu",
    time_limit: float | None = None,
    progress: ProgressCallback = no_progress,
) -> dict[str, Any]:
    """Train the members that need only smoothed rows, and save the mean of the best.

    They are chosen by the validation nodes as :func:`rawlsgcn.auto` does, with at most ``memory``
    bytes. A search that was killed goes on where it stopped. The metrics on the test nodes are
    returned, with the members, which were left out, and for which there was no time.
    """
    shards, context = nodes.shards, DistributedContext(device=torch.device(device))
    train, val = nodes.nodes("train"), evenly(nodes.nodes("val"), MOST_NODES)
    judge = Judge(torch.arange(len(val)), torch.from_numpy(nodes.y[val]))
    usable, left_out = row_candidates()
    members: list[Member] = []
    skipped: list[str] = []
    began, seeds = time.perf_counter(), seeds_of(seed)
    deadline = math.inf if time_limit is None else began + time_limit
    for candidate in usable:
        if members and time.perf_counter() > deadline:
            skipped.append(candidate.name)
            continue
        form = SmoothedForm.of(shards, candidate.settings())
        rows = smooth_shards(
            shards, form, context, memory=memory, training_rows=len(train), progress=progress
        ).rows
        runs = RowRuns(
            nodes,
            rows,
            take_rows(rows, val),
            out / RUNS,
            memory,
            context,
            deadline,
        )
        member = train_member(
            candidate,
            grid(candidate),
            runs,
            judge,
            seeds[:1],
            again=seeds[1:],
            progress=described(progress, f"training '{candidate.name}'"),
        )
        members += [] if member is None else [member]
        if runs.out_of_time:
            skipped.append(f"{candidate.name} (further runs)")
    require_members(members)
    chosen = WeightedMean.best(members, judge)
    settings = EnsembleSettings.of(chosen.runs(), judge.temperature(chosen.probabilities))
    about: dict[str, Any] = {
        "row_normalized": form.row_normalized,
        "num_features": rows.num_features,
        "num_classes": shards.classes,
        "dataset": shards.name,
        "class_names": shards.class_names,
        "fingerprint": shards.fingerprint,
    }
    state = chosen.state()
    model = TrainedModel(
        method=Ensemble(), settings=settings, seed=seed, state=state, folder=out, **about
    )
    models = row_models(model, shards, context, memory)
    assert models is not None
    figures = asdict(evaluate_rows(models, nodes, context, settings.temperature)[0])
    leaderboard = [
        {
            "member": member.name,
            "weight": chosen.weights.get(member, 0.0),
            "validation_loss": member.losses.scaled,
            "validation_accuracy": 100 * judge.accuracy(member.probabilities),
            "runs": member.trained,
            "seconds": member.seconds,
        }
        for member in ranked(members)
    ]
    metrics = {
        "dataset": shards.name,
        **jsonable(figures | {"calibration": figures["calibration"].value}),
        "leaderboard": jsonable(leaderboard),
        "left_out": left_out,
        "skipped": skipped,
        "seconds": time.perf_counter() - began,
    }
    about |= {"method": Ensemble.name, "settings": asdict(settings), "best_seed": seed}
    with atomic_directory(out, outdated_in(out)) as folder:
        write_model(folder, {seed: state}, metrics, **about)
    return metrics


@dataclass(eq=False)
class RowRuns:
    """Trains runs on rows, each with checkpoints, so that a killed search goes on with its last.

    The scores of a run are those of ``val_rows``, the rows of the validation nodes, and ``folder``
    has the checkpoints of all runs. After the ``deadline`` no run begins but the very first.
    """

    nodes: ShardNodes
    file: SmoothedRows
    val_rows: NDArray[np.float32]
    folder: Path
    memory: int
    context: DistributedContext
    deadline: float = math.inf
    trained: int = 0
    out_of_time: bool = False

    def __call__(
        self, method: Method, jobs: Sequence[Job], progress: ProgressCallback
    ) -> list[TrainedRun]:
        """Train jobs one after another; those for which there is time."""
        runs: list[TrainedRun] = []
        for place, job in enumerate(jobs):
            self.out_of_time = self.trained > 0 and time.perf_counter() > self.deadline
            if self.out_of_time:
                break
            runs.append(
                self._run(job, PartialProgress(progress, 1000 * place, 1000, 1000 * len(jobs)))
            )
            self.trained += 1
        return runs

    def _run(self, job: Job, progress: ProgressCallback) -> TrainedRun:
        settings = job.settings
        assert isinstance(settings, SmoothedMLPSettings)
        settings = with_usual_epochs(settings, self.nodes, self.file, BATCH_ROWS)
        training = RowTraining(
            self.nodes,
            self.file,
            settings,
            shown=0,
            seed=job.seed,
            context=self.context,
            memory=self.memory,
        )
        run = {
            "graph": self.nodes.shards.fingerprint,
            "seed": job.seed,
            "settings": asdict(settings),
        }
        key = hashlib.blake2b(json.dumps(run).encode(), digest_size=8).hexdigest()
        try:
            train_with_checkpoints(training, self.folder / key, run, progress=progress)
        except DivergedError:
            with torch.no_grad():
                next(training.kept.parameters()).fill_(torch.nan)
        state = {name: each.detach().cpu() for name, each in training.kept.state_dict().items()}
        scores = RowModel(training.kept, self.file).scores(self.val_rows)
        return TrainedRun(sum(each.numel() for each in state.values()), state, scores)
