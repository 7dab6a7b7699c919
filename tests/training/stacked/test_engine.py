"""The stacked engine gives the reference engine's numbers, exactly where nothing is random."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import graphs
from torch_geometric.data import Data

import rawlsgcn as rg
from rawlsgcn._core.errors import RawlsError
from rawlsgcn.graphs import synthetic
from rawlsgcn.methods import Inputs, find_method, with_changes
from rawlsgcn.training import Job, train_runs
from rawlsgcn.training.stacked.blocks import GPU_SHARE, run_bytes
from rawlsgcn.training.stacked.engine import StackedEngine
from rawlsgcn.training.stacked.networks import Replicas

METHODS = ["gcn", "rawlsgcn-graph", "rawlsgcn-grad"]


def jobs_of(name: str, rates: list[float], seeds: int, **changes: object) -> list[Job]:
    base = with_changes(find_method(name).defaults, {"hidden_channels": 5, **changes})
    return [Job(with_changes(base, {"lr": lr}), seed) for lr in rates for seed in range(seeds)]


@settings(max_examples=40, deadline=None)
@given(
    graph=graphs(),
    layers=st.integers(1, 4),
    name=st.sampled_from(METHODS),
    form=st.sampled_from(["row", "column", "symmetric", "doubly-stochastic"]),
    decay=st.sampled_from([0.0, 5e-4, 0.1]),
)
def test_twenty_steps_equal_the_reference(
    graph: Data, layers: int, name: str, form: str, decay: float
) -> None:
    changes = {"dropout": 0.0, "epochs": 20, "num_layers": layers, "weight_decay": decay}
    if name != "gcn":
        changes["normalization"] = form
    jobs = jobs_of(name, [0.05, 0.01], seeds=2, **changes)
    inputs = Inputs.of(graph, dtype=torch.float64)
    fast, _ = train_runs(find_method(name), inputs, jobs, engine="stacked")
    plain, _ = train_runs(find_method(name), inputs, jobs, engine="reference")
    for ours, theirs in zip(fast, plain, strict=True):
        assert ours.state.keys() == theirs.state.keys()
        for key in ours.state:
            torch.testing.assert_close(ours.state[key], theirs.state[key], rtol=0, atol=1e-9)
        torch.testing.assert_close(ours.logits, theirs.logits, rtol=1e-9, atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(graph=graphs(), layers=st.integers(1, 3), name=st.sampled_from(METHODS))
def test_in_float32_the_gradients_are_those_of_float64(graph: Data, layers: int, name: str) -> None:
    jobs = jobs_of(name, [0.01], seeds=3, dropout=0.0, num_layers=layers)
    found = []
    for dtype in (torch.float32, torch.float64):
        engine = StackedEngine(find_method(name), Inputs.of(graph, dtype=dtype), jobs[0].settings)
        replicas = engine.replicas(jobs)
        replicas.step()
        found.append(replicas.gradients.double())
    torch.testing.assert_close(*found, rtol=1e-3, atol=1e-5)


def losses_of(logits: torch.Tensor, inputs: Inputs) -> torch.Tensor:
    """The mean cross entropy of every run, from logits of the shape (runs, nodes, classes)."""
    labels = inputs.y[inputs.train].expand(len(logits), -1)
    losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), labels, reduction="none")
    return losses.mean(1)


def gradients_of(replicas: Replicas, run: int) -> list[torch.Tensor]:
    """One run's gradients as weight, bias, weight, bias, …"""
    return replicas._of_run(run, replicas.weight_gradients, replicas.bias_gradients)


@settings(max_examples=60, deadline=None)
@given(graph=graphs(), layers=st.integers(1, 4), name=st.sampled_from(METHODS))
def test_first_loss_and_gradients_equal_the_reference(graph: Data, layers: int, name: str) -> None:
    jobs = jobs_of(name, [0.01], seeds=2, dropout=0.0, num_layers=layers)
    inputs = Inputs.of(graph, dtype=torch.float64)
    engine = StackedEngine(find_method(name), inputs, jobs[0].settings)
    replicas = engine.replicas(jobs)
    losses = losses_of(replicas.step(), inputs)
    for run, job in enumerate(jobs):
        learner = find_method(name).learner(inputs, job.settings, job.seed)
        assert learner.epoch() == pytest.approx(float(losses[run]), abs=1e-9)
        gradients = gradients_of(replicas, run)
        for ours, parameter in zip(gradients, learner.module.parameters(), strict=True):
            torch.testing.assert_close(ours, parameter.grad, rtol=0, atol=1e-9)


def ring(nodes: int = 60) -> Data:
    rng = np.random.default_rng(0)
    ends = np.stack([np.arange(nodes), (np.arange(nodes) + 1) % nodes])
    extra = rng.integers(0, nodes, (2, nodes))
    extra = extra[:, extra[0] != extra[1]]
    both = np.concatenate([ends, ends[::-1], extra, extra[::-1]], 1)
    mask = torch.zeros(nodes, dtype=torch.bool)
    mask[:20] = True
    return Data(
        x=torch.from_numpy(rng.random((nodes, 8))).float(),
        y=torch.from_numpy(rng.integers(0, 3, nodes)),
        edge_index=torch.unique(torch.from_numpy(both), dim=1),
        train_mask=mask,
        val_mask=~mask,
        test_mask=~mask,
        num_nodes=nodes,
    )


@pytest.mark.parametrize("dropout", [0.5, 0.3])
def test_with_dropout_the_losses_have_the_references_distribution(dropout: float) -> None:
    """One step from the same weights, over many masks: equal mean and spread of the gradient."""
    inputs = Inputs.of(ring(), dtype=torch.float64)
    job = jobs_of("rawlsgcn-grad", [0.01], seeds=1, dropout=dropout)[0]
    replicas = StackedEngine(find_method("rawlsgcn-grad"), inputs, job.settings).replicas([job])
    learner = find_method("rawlsgcn-grad").learner(inputs, job.settings, job.seed)
    start = {name: value.clone() for name, value in learner.module.state_dict().items()}
    ours, theirs = [], []
    for _ in range(1000):
        loss = float(losses_of(replicas.step(), inputs)[0])
        ours.append([loss, *torch.cat([g.reshape(-1) for g in gradients_of(replicas, 0)]).tolist()])
        learner.module.load_state_dict(start)
        loss = learner.epoch()
        flat = torch.cat([p.grad.reshape(-1) for p in learner.module.parameters()])
        theirs.append([loss, *flat.tolist()])
    a, b = np.array(ours), np.array(theirs)
    error = np.sqrt(a.var(0) / len(a) + b.var(0) / len(b)) + 1e-12
    z = (a.mean(0) - b.mean(0)) / error
    assert np.abs(z).max() < 4.5
    assert np.sqrt((z**2).mean()) < 1.6
    loud = b.std(0) > 1e-9
    assert np.allclose(a.std(0)[loud] / b.std(0)[loud], 1, atol=0.2)


def test_a_seed_means_the_same_run_whatever_trains_beside_it() -> None:
    inputs = Inputs.of(ring(), dtype=torch.float64)
    together = jobs_of("rawlsgcn-graph", [0.05, 0.01], seeds=7, epochs=15)
    runs, _ = train_runs(find_method("rawlsgcn-graph"), inputs, together)
    for place in (0, 6, 9):
        (alone,), _ = train_runs(find_method("rawlsgcn-graph"), inputs, [together[place]])
        torch.testing.assert_close(alone.logits, runs[place].logits, rtol=0, atol=1e-12)


def test_same_seed_same_numbers() -> None:
    inputs = Inputs.of(ring())
    jobs = jobs_of("rawlsgcn-grad", [0.05], seeds=3, epochs=10)
    first, _ = train_runs(find_method("rawlsgcn-grad"), inputs, jobs)
    second, _ = train_runs(find_method("rawlsgcn-grad"), inputs, jobs)
    assert all(torch.equal(a.logits, b.logits) for a, b in zip(first, second, strict=True))
    assert not torch.equal(first[0].logits, first[1].logits)


@pytest.mark.parametrize("engine", ["stacked", "reference"])
def test_training_does_not_touch_the_callers_random_stream(engine: str) -> None:
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    train_runs(
        find_method("gcn"), Inputs.of(ring()), jobs_of("gcn", [0.01], 1, epochs=2), engine=engine
    )
    assert torch.equal(torch.rand(4), expected)


def test_progress_counts_every_epoch_to_the_end() -> None:
    told: list[tuple[int, int]] = []
    jobs = jobs_of("gcn", [0.05, 0.01], seeds=2, epochs=3)
    train_runs(find_method("gcn"), Inputs.of(ring()), jobs, progress=lambda *now: told.append(now))
    assert told[-1][0] == told[-1][1]
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_the_stacked_engine_does_not_pretend_to_stop_early() -> None:
    graph = synthetic(200)
    for name in METHODS:
        (job,) = jobs_of(name, [0.01], seeds=1, epochs=3, patience=2)
        with pytest.raises(RawlsError, match="cannot stop early: set patience to 0"):
            train_runs(find_method(name), Inputs.of(graph), [job], engine="stacked")
        for engine in ("auto", "reference"):
            train_runs(find_method(name), Inputs.of(graph), [job], engine=engine)


def bytes_of_run(engine: StackedEngine) -> int:
    return run_bytes(engine.sizes, engine.layers, engine.inputs.dtype)


class FakeGPU:
    """A GPU of so much free memory, for as long as nothing is computed on it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, free: float) -> None:
        monkeypatch.setattr(StackedEngine, "on_gpu", True)
        monkeypatch.setattr(
            "rawlsgcn.training.stacked.blocks.free_memory", lambda device: int(free)
        )


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(("room", "sizes"), [(100, [12]), (5, [5, 5, 2]), (0.1, [1] * 12)])
def test_a_block_on_a_gpu_is_bounded_by_its_free_memory(
    name: str, room: float, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = jobs_of(name, [0.05, 0.01, 0.1], seeds=4)
    engine = StackedEngine(find_method(name), Inputs.of(synthetic(200)), jobs[0].settings)
    FakeGPU(
        monkeypatch,
        (room + 0.01) * bytes_of_run(engine) / GPU_SHARE,
    )
    blocks = engine._blocks(jobs)
    assert [len(block) for block in blocks] == sizes
    assert sorted(place for block in blocks for place in block) == list(range(12))
    assert (not engine.notes) == (len(sizes) == 1)
    assert not engine.notes or f"fits {sizes[0]} of the runs at once" in engine.notes[0]


@settings(max_examples=20, deadline=None)
@given(graph=graphs(), layers=st.integers(1, 3), name=st.sampled_from(METHODS))
def test_the_memory_of_a_run_is_more_than_that_of_its_tensors(
    graph: Data, layers: int, name: str
) -> None:
    """All that a step keeps: parameters, gradients, both of Adam's means, every layer's tensors."""
    (job,) = jobs_of(name, [0.01], seeds=1, num_layers=layers)
    engine = StackedEngine(find_method(name), Inputs.of(graph), job.settings)
    replicas = engine.replicas([job])
    replicas.step()
    inputs, hidden = replicas._forward()
    kept = [replicas.parameters] * 4 + [product for _, product in replicas.products.values()]
    assert bytes_of_run(engine) > sum(
        t.numel() * t.element_size() for t in [*kept, *inputs, *hidden]
    )


def test_a_note_of_the_engine_reaches_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rawlsgcn.training.stacked.engine.block_size", lambda *of: 2)
    original = StackedEngine._blocks

    def on_gpu(self: StackedEngine, jobs: list[Job]) -> list[list[int]]:
        with monkeypatch.context() as lent:
            lent.setattr(StackedEngine, "on_gpu", True)
            return original(self, jobs)

    monkeypatch.setattr(StackedEngine, "_blocks", on_gpu)
    result = rg.fit(synthetic(200), "gcn", seeds=5, epochs=2, device="cpu")
    assert sum("free memory fits 2 of the runs" in note for note in result.notes) == 1
