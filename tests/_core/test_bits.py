"""Same input, same bits: on the CPU, wherever buffers lie, call after call.

How far the last bits may differ between processors and between numbers of threads is no matter
here: balancing gives the same bits for any number of threads, training for the same number.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import numpy as np
import pytest
import torch

import rawlsgcn as rg
from rawlsgcn._core.kernels import kernels, without_kernels
from rawlsgcn._core.sparse import aligned, dot, empty_array
from rawlsgcn.graphs.synthetic_graph import synthetic

OFFSETS = range(0, 16, 3)
CPU = torch.device("cpu")


@pytest.fixture(params=["compiled", "numpy"], autouse=True)
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "compiled" and kernels() is None:
        pytest.skip("the package was installed without a C compiler")
    with without_kernels() if request.param == "numpy" else nullcontext():
        yield request.param


@pytest.fixture(params=[1, 2, 4])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def moved(tensor: torch.Tensor, by: int) -> torch.Tensor:
    """The same numbers, beginning ``by`` elements behind the start of an allocation."""
    room = torch.empty(tensor.numel() + by, dtype=tensor.dtype)
    room[by:] = tensor.reshape(-1)
    return room[by:].view(tensor.shape)


def weighted_edges(nodes: int = 2000) -> tuple[torch.Tensor, torch.Tensor]:
    graph = synthetic(nodes)
    row, column = graph.edge_index
    weight = 0.5 + ((row + 1) * (column + 1) % 97).double() / 7
    return graph.edge_index, weight


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_balancing_does_not_depend_on_where_its_input_lies(dtype, threads):
    edges, weight = weighted_edges()
    weight = weight.to(dtype)
    expected = rg.balance(edges, weight, num_nodes=2000)
    for by in OFFSETS:
        found = rg.balance(moved(edges, by), moved(weight, by), num_nodes=2000)
        assert torch.equal(found.scale, expected.scale)
        assert found.history == expected.history
        numbers = weight.numpy()
        array = np.frombuffer(bytes(by) + numbers.tobytes(), numbers.dtype, offset=by)
        found = rg.balance(edges.numpy(), array, num_nodes=2000)
        assert torch.equal(found.scale, expected.scale)


def test_balancing_does_not_depend_on_the_number_of_threads():
    edges, weight = weighted_edges()
    before, found = torch.get_num_threads(), []
    try:
        for count in (1, 2, 4, 3):
            torch.set_num_threads(count)
            found.append(rg.balance(edges, weight, num_nodes=2000).scale)
            found.append(rg.balance(edges, num_nodes=2000).scale)
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(each, found[place % 2]) for place, each in enumerate(found))


def test_balancing_does_not_depend_on_the_type_that_holds_the_weights():
    edges, _ = weighted_edges()
    whole = 1 + (edges[0] * edges[1] % 100)
    expected = rg.balance(edges, whole.double(), num_nodes=2000).scale
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float32):
        assert torch.equal(rg.balance(edges, whole.to(dtype), num_nodes=2000).scale, expected)


def test_balancing_a_directed_matrix_gives_the_same_bits_each_time(threads):
    from scipy.sparse import csr_array

    random = np.random.default_rng(0)
    dense = (random.random((300, 300)) < 0.05) * random.random((300, 300)) + np.eye(300)
    found, kept = [], []
    for by in OFFSETS:
        kept.append(np.empty(1000 + by))  # moves what is allocated next
        found.append(rg.balance(csr_array(dense)))
    assert all(torch.equal(each.row_scale, found[0].row_scale) for each in found)
    assert all(torch.equal(each.col_scale, found[0].col_scale) for each in found)


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("method", ["gcn", "rawlsgcn-graph", "rawlsgcn-grad"])
def test_training_does_not_depend_on_where_its_input_lies(method, dense, threads):
    graph = synthetic(800)
    x = graph.x.to_dense() if graph.x.layout != torch.strided else graph.x
    found = []
    for by in OFFSETS:
        own = graph.clone()
        own.x = moved(x, by) if dense else moved(x, by).to_sparse_csr()
        own.edge_index = moved(graph.edge_index, by)
        found.append(rg.fit(own, method, seeds=2, epochs=5).logits)
    assert all(torch.equal(each, found[0]) for each in found)


def test_memory_of_the_descent_begins_at_64_bytes():
    kept = []
    for by in range(1, 40):
        kept.append(np.empty(by))
        room = empty_array((3, by), CPU)
        assert room.shape == (3, by)
        assert room.ctypes.data % 64 == 0


def test_a_tensor_that_lies_well_is_not_copied():
    x = torch.arange(100.0)
    assert aligned(x) is x
    off = aligned(x[1:])
    assert off.data_ptr() % 64 == 0
    assert torch.equal(off, x[1:])


def test_a_dot_product_is_right_and_does_not_depend_on_where_it_lies():
    x, y = torch.randn(2, 100_000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    found = {dot(moved(x, by).numpy(), moved(y, 2 * by).numpy()) for by in OFFSETS}
    assert len(found) == 1
    exact = float(np.sum(x.numpy().astype(np.longdouble) * y.numpy()))
    # Pairwise summation: log2(n) roundings of sums that |x| · |y| bounds.
    bound = 20 * torch.finfo(torch.float64).eps * float(x.abs() @ y.abs())
    assert abs(found.pop() - exact) <= bound
