"""Fair layers under compilation, mixed precision, several processes and any optimizer."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch_geometric
from packaging.version import Version
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch_geometric.nn import APPNP, GCN, GIN, GraphSAGE
from torch_geometric.utils import to_torch_csr_tensor

import rawlsgcn as rg
from rawlsgcn.nn import fair_weights, make_fair


class Propagated(nn.Module):
    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.linear, self.propagation = nn.Linear(features, classes), APPNP(3, 0.1)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out: Tensor = self.propagation(self.linear(x), edge_index)
        return out


#: Before 2.8 torch_geometric's own self-loops split what torch.compile makes of a model.
ONE_PIECE = Version(torch_geometric.__version__) >= Version("2.8")


def gcn() -> nn.Module:
    return GCN(16, 8, 2, 3)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "GCN": gcn,
    "GCN, cached": lambda: GCN(16, 8, 2, 3, cached=True),
    "GraphSAGE": lambda: GraphSAGE(16, 8, 2, 3),
    "GIN": lambda: GIN(16, 8, 2, 3, norm=None),
    "APPNP": lambda: Propagated(16, 3),
}


def setting(seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Features, edges and labels of a small graph."""
    graph = rg.synthetic(200, classes=3, seed=7)
    torch.manual_seed(seed)
    return torch.randn(200, 16), graph.edge_index, graph.y


def gradients(model: nn.Module, x: Tensor, edges: Tensor, y: Tensor) -> list[Tensor]:
    model.zero_grad()
    nn.functional.cross_entropy(model(x, edges).float(), y).backward()
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


def plain_gradients(make: Callable[[], nn.Module], *setting: Tensor) -> list[Tensor]:
    torch.manual_seed(1)
    return gradients(make(), *setting)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", ["GCN", "GCN, cached", "GIN", "APPNP"])
def test_compiled_in_one_piece(name: str, backend: str) -> None:
    x, edges, y = setting()
    torch._dynamo.reset()
    torch.manual_seed(1)
    model = make_fair(MODELS[name]())
    expected = gradients(model, x, edges, y)
    compiled = torch.compile(model, backend=backend, fullgraph=ONE_PIECE)
    for _ in range(2):
        for one, two in zip(gradients(compiled, x, edges, y), expected, strict=True):
            torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_compiled_with_given_weights() -> None:
    x, edges, y = setting()
    torch._dynamo.reset()
    torch.manual_seed(1)
    model = make_fair(gcn())
    compiled = torch.compile(model, backend="aot_eager", fullgraph=ONE_PIECE)
    for given in (torch.rand(edges.shape[1] + 200), torch.rand(edges.shape[1] + 200)):
        with fair_weights(model, given):
            expected = gradients(model, x, edges, y)
            actual = gradients(compiled, x, edges, y)
        for one, two in zip(actual, expected, strict=True):
            torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_compiled_with_a_sparse_matrix() -> None:
    """The matrix is balanced outside the compiled code, once; the gradients stay the same."""
    x, edges, y = setting()
    adjacency = to_torch_csr_tensor(edges, size=(len(x), len(x)))
    torch._dynamo.reset()
    torch.manual_seed(1)
    model = make_fair(MODELS["GraphSAGE"]())
    expected = gradients(model, x, adjacency, y)
    compiled = torch.compile(model, backend="aot_eager")
    for one, two in zip(gradients(compiled, x, adjacency, y), expected, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_compiled_with_edge_weights_that_learn() -> None:
    x, edges, y = setting()
    torch._dynamo.reset()
    torch.manual_seed(1)
    model = make_fair(gcn())
    compiled = torch.compile(model, backend="aot_eager", fullgraph=ONE_PIECE)
    found = []
    for called in (model, compiled):
        weight = torch.ones(edges.shape[1], requires_grad=True)
        model.zero_grad()
        nn.functional.cross_entropy(called(x, edges, weight), y).backward()
        found.append([weight.grad, *(p.grad.clone() for p in model.parameters())])
    for one, two in zip(*found, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_autocast(name: str) -> None:
    """The fair gradient in bfloat16 is the fair gradient, as near as bfloat16 gets."""
    x, edges, y = setting()
    torch.manual_seed(1)
    model = make_fair(MODELS[name]())
    expected = gradients(model, x, edges, y)
    plain = plain_gradients(MODELS[name], x, edges, y)
    with torch.autocast("cpu", torch.bfloat16):
        actual = gradients(model, x, edges, y)
    for one, two, other in zip(actual, expected, plain, strict=True):
        assert one.dtype == torch.float32
        error = (one - two).norm() / two.norm()
        assert error < 0.1
        assert torch.equal(two, other) or error < 0.5 * (other - two).norm() / two.norm()


def test_a_model_in_half_precision() -> None:
    x, edges, y = setting()
    torch.manual_seed(1)
    model = make_fair(gcn())
    expected = gradients(model, x, edges, y)
    for one, two in zip(gradients(model.bfloat16(), x.bfloat16(), edges, y), expected, strict=True):
        assert one.dtype == torch.bfloat16
        assert (one.float() - two).norm() < 0.05 * two.norm()


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "Adam": lambda p: torch.optim.Adam(p, lr=0.02),
    "SGD": lambda p: torch.optim.SGD(p, lr=0.3, momentum=0.9),
    "LBFGS": lambda p: torch.optim.LBFGS(p, lr=0.1, max_iter=5),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_any_optimizer_made_before_learns(name: str) -> None:
    x, edges, y = setting()
    x = x + 2 * nn.functional.one_hot(y, 16)
    model = gcn()
    optimizer = OPTIMIZERS[name](model.parameters())
    make_fair(model)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x, edges), y)
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(25)]  # type: ignore[arg-type]
    assert losses[-1] < 0.6 * losses[0]


def rank(number: int, folder: str) -> None:
    """One of two processes, each with labels of its own half of the nodes."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=number, world_size=2
    )
    x, edges, y = setting()
    torch.manual_seed(number)  # DistributedDataParallel takes rank 0's weights
    model = DistributedDataParallel(make_fair(gcn()))
    half = torch.full_like(y, -100)
    half[number::2] = y[number::2]
    grads = gradients(model, x, edges, half)
    torch.save([grads, list(model.module.state_dict().values())], f"{folder}/{number}.pt")
    # A wrapped model that is freed after its group may wait for ever
    # (see rawlsgcn.training.sampled.distributed_context).
    del model
    gc.collect()
    torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_two_processes_agree_on_the_fair_gradient(tmp_path: Path) -> None:
    """Equal on both ranks, and equal to one process with all the labels."""
    # Processes of their own: a fork of one whose threads are at work may wait for ever.
    around = {
        **os.environ,
        "GLOO_SOCKET_IFNAME": "lo",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    ranks = [
        subprocess.Popen([sys.executable, __file__, str(number), str(tmp_path)], env=around)
        for number in range(2)
    ]
    try:
        assert [each.wait(timeout=120) for each in ranks] == [0, 0]
    finally:
        for each in ranks:
            each.kill()
    (first, state), (second, _) = (
        torch.load(tmp_path / f"{number}.pt", weights_only=True) for number in range(2)
    )
    model: Any = make_fair(gcn())
    model.load_state_dict(dict(zip(model.state_dict(), state, strict=True)))
    alone = gradients(model, *setting())
    for one, two, whole in zip(first, second, alone, strict=True):
        assert torch.equal(one, two)
        torch.testing.assert_close(one, whole, rtol=1e-5, atol=1e-7)


if __name__ == "__main__":
    rank(int(sys.argv[1]), sys.argv[2])
