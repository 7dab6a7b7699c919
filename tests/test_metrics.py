"""DegreeBias is evaluate_run().bias, however the nodes are cut into batches, metrics and ranks."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torchmetrics import Metric, MetricCollection
from torchmetrics.classification import MulticlassAccuracy

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.evaluation.run_metrics import evaluate_run
from rawlsgcn.metrics import DegreeBias


def example(seed: int, nodes: int = 80) -> tuple[Tensor, Tensor, Tensor]:
    rng = torch.Generator().manual_seed(seed)
    logits = torch.randn(nodes, 4, generator=rng)
    y = torch.randint(-1, 4, (nodes,), generator=rng)
    degree = torch.randint(0, 30, (nodes,), generator=rng)
    return logits, y, degree


def whole(logits: Tensor, y: Tensor, degree: Tensor) -> float:
    everything = torch.ones(len(y), dtype=torch.bool)
    return evaluate_run(logits, y, degree, everything, everything).bias


def batches(seed: int, size: int) -> list[tuple[Tensor, ...]]:
    return list(zip(*(part.split(size) for part in example(seed)), strict=True))


@given(st.integers(0, 10_000), st.integers(1, 80))
@settings(max_examples=15, deadline=None)
def test_batches_give_the_bias_of_the_whole(seed: int, size: int) -> None:
    metric, called = DegreeBias(), DegreeBias()
    for batch in batches(seed, size):
        metric.update(*batch)
        called(*batch)
    expected = pytest.approx(whole(*example(seed)), rel=1e-10)
    assert metric.compute().item() == expected
    assert called.compute().item() == expected
    assert metric.compute().dtype == torch.float64


@given(st.integers(0, 10_000), st.integers(1, 79))
@settings(max_examples=15, deadline=None)
def test_merged_states_give_the_bias_of_the_whole(seed: int, cut: int) -> None:
    logits, y, degree = example(seed)
    one, other = DegreeBias(), DegreeBias()
    one.update(logits[:cut], y[:cut], degree[:cut])
    other.update(logits[cut:], y[cut:], degree[cut:])
    one.merge_state(other)
    assert one.compute().item() == pytest.approx(whole(logits, y, degree), rel=1e-10)
    one.update(logits, y, degree)  # every node once more: the means stay, so does the bias
    assert one.compute().item() == pytest.approx(whole(logits, y, degree), rel=1e-10)


@pytest.mark.parametrize("call", ["update", "forward"])
def test_the_state_grows_with_degrees_not_with_nodes(call: str) -> None:
    metric = DegreeBias()
    for seed in range(50):
        getattr(metric, call)(*example(seed))
    assert [len(state) for state in (metric.degree, metric.count, metric.loss)] == [1, 1, 1]
    assert len(metric.degree[0]) == 30


@pytest.mark.parametrize("by_keyword", [True, False])
@pytest.mark.parametrize("call", ["update", "forward"])
@pytest.mark.parametrize("groups", [True, False])
def test_in_a_collection_it_is_what_it_is_alone(by_keyword: bool, call: str, groups: bool) -> None:
    accuracy = MulticlassAccuracy(num_classes=4, average="micro")
    metrics: dict[str, Metric] = {"accuracy": accuracy, "bias": DegreeBias(), "0": DegreeBias(0)}
    collection = MetricCollection(metrics, compute_groups=groups, prefix="val_")
    alone = {"val_bias": DegreeBias(), "val_0": DegreeBias(0)}
    for seed in range(2):
        for batch in batches(seed, 30):
            preds, target, degree = (part[batch[1] >= 0] for part in batch)
            run = getattr(collection, call)
            if by_keyword:
                run(preds=preds, target=target, degree=degree)
            else:
                run(preds, target, degree=degree)
            for metric in alone.values():
                metric.update(preds, target, degree)
        values = collection.compute()
        for name, metric in alone.items():
            assert values[name].item() == pytest.approx(metric.compute().item(), rel=1e-12)
        assert 0 < values["val_accuracy"] < 1


def test_a_call_returns_the_bias_of_its_batch() -> None:
    metric = DegreeBias()
    metric(*example(0))
    assert metric(*example(1)).item() == pytest.approx(whole(*example(1)), rel=1e-10)


def test_reset_forgets_and_pickle_keeps() -> None:
    metric = DegreeBias()
    metric.update(*example(0))
    assert pickle.loads(pickle.dumps(metric)).compute() == metric.compute()
    metric.reset()
    metric.update(*example(1))
    assert metric.compute().item() == pytest.approx(whole(*example(1)), rel=1e-10)


def test_ignored_targets_are_left_out() -> None:
    logits, y, degree = example(0)
    metric = DegreeBias(ignore_index=-100)
    metric.update(logits, torch.where(y < 0, -100, y), degree)
    assert metric.compute().item() == pytest.approx(whole(logits, y, degree), rel=1e-10)
    metric = DegreeBias()
    metric.update(logits, torch.full_like(y, -1), degree)
    assert math.isnan(metric.compute())


def test_fewer_than_two_degrees_have_no_bias() -> None:
    metric = DegreeBias()
    logits, y, degree = example(0)
    metric.update(logits, y, torch.ones_like(degree))
    assert math.isnan(metric.compute())
    with pytest.warns(UserWarning, match="before the"):
        assert math.isnan(DegreeBias().compute())


def test_half_precision_logits_and_casts_of_the_metric_keep_float64_sums() -> None:
    logits, y, degree = example(0)
    metric = DegreeBias().half().float()
    metric.update(logits.bfloat16(), y, degree)
    assert metric.loss[0].dtype == torch.float64
    assert metric.compute().item() == pytest.approx(whole(logits.bfloat16(), y, degree), rel=1e-10)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_it_moves_between_devices() -> None:
    metric = DegreeBias().cuda()
    metric.update(*(part.cuda() for part in example(0)))
    assert metric.compute().device.type == "cuda"
    expected = pytest.approx(whole(*example(0)), rel=1e-10)
    assert metric.compute().item() == expected
    assert metric.cpu().compute().item() == expected


@pytest.mark.parametrize(
    ("logits", "target", "degree"),
    [((4,), (4,), (4,)), ((4, 3), (5,), (4,)), ((4, 3), (4,), (3,)), ((4, 3), (4, 1), (4, 1))],
)
def test_shapes_that_disagree_are_a_sentence(logits: tuple, target: tuple, degree: tuple) -> None:
    with pytest.raises(RawlsError, match=r"needs logits \(nodes, classes\)"):
        DegreeBias().update(
            torch.zeros(logits), torch.zeros(target).long(), torch.ones(degree).long()
        )


RANK = """
import sys
import warnings
from pathlib import Path
import torch
import torch.distributed as dist
from rawlsgcn.metrics import DegreeBias

folder, rank = Path(sys.argv[1]), int(sys.argv[2])
dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=3)
logits, y, degree, owner = torch.load(folder / "nodes.pt", weights_only=True)
metric = DegreeBias()
for part in (owner == rank).nonzero().squeeze(-1).split(9):
    metric.update(logits[part], y[part], degree[part])
value = metric.compute().item()
print(value, sum(len(rows) for rows in metric.degree))
dist.destroy_process_group()
"""


@pytest.mark.slow
def test_ranks_agree_on_the_bias_of_the_whole(tmp_path: Path) -> None:
    """Ranks with different degrees, some shared, and a rank that saw nothing at all."""
    logits, y, degree = example(7)
    owner = torch.where(degree < 10, 0, 1)
    owner[::7] = 0
    torch.save((logits, y, degree, owner), tmp_path / "nodes.pt")
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, str(tmp_path), str(rank)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(3)
    ]
    try:
        said = [rank.communicate(timeout=120)[0].split() for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    for value, _ in said:
        assert float(value) == pytest.approx(whole(logits, y, degree), rel=1e-10)
    # What was gathered is handed back after the computation: each rank keeps its own rows.
    assert int(said[2][1]) == 0
    assert 0 < int(said[0][1]) < 30


def test_probabilities_are_noticed() -> None:
    logits = torch.tensor([[2.0, 0.0], [0.0, 3.0], [1.0, 0.0]], requires_grad=True)
    target, degree = torch.tensor([0, 1, 1]), torch.tensor([5, 5, 1])
    with pytest.warns(UserWarning, match="look like probabilities"):
        DegreeBias().update(logits.softmax(-1), target, degree)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DegreeBias()(logits, target, degree)
        DegreeBias()(logits.log_softmax(-1), target, degree)


@pytest.mark.parametrize(
    ("target", "degree", "said"),
    [
        ([0.0, 1.0], [1, 2], r"classes as integers.*target.long\(\)"),
        ([0, 3], [1, 2], "targets from 0 to 3 for 3 columns of logits"),
        ([0, -2], [1, 2], "targets from -2 to 0 for 3 columns"),
        ([0, 1], [1, -2], "degrees that are at least 0 and finite"),
        ([0, 1], [1, float("nan")], "degrees that are at least 0 and finite"),
    ],
)
def test_invalid_targets_and_degrees_are_a_sentence(target: list, degree: list, said: str) -> None:
    bias = DegreeBias()
    with pytest.raises(RawlsError, match=said):
        bias.update(torch.zeros(2, 3), torch.tensor(target), torch.tensor(degree))
    assert bias.compute().isnan()  # nothing was added
