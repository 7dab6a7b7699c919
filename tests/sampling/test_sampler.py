"""The sampler behind torch_geometric's loaders."""

from __future__ import annotations

import pytest
import torch
from sampling.copies import small_graph
from torch_geometric import typing as pyg
from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader
from torch_geometric.sampler import NodeSamplerInput, SamplerOutput

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.sampling import NeighborSampler
from rawlsgcn.sampling import sampler as module


def directed_graph() -> Data:
    """Random arcs in no order, each with its number as an attribute."""
    generator = torch.Generator().manual_seed(0)
    pairs = torch.randperm(30 * 30, generator=generator)[:200]
    return Data(
        x=torch.rand(30, 2, generator=generator),
        edge_index=torch.stack([pairs // 30, pairs % 30]),
        edge_attr=torch.arange(200),
        num_nodes=30,
    )


def loader_of(graph: Data, workers: int = 0, num_neighbors: str = "3,2") -> NodeLoader:
    sampler = NeighborSampler(graph, num_neighbors)
    return NodeLoader(graph, sampler, batch_size=5, shuffle=True, num_workers=workers)


def test_batches_are_parts_of_the_graph() -> None:
    graph = directed_graph()
    in_degree = torch.bincount(graph.edge_index[1], minlength=30)
    seen = []
    for batch in loader_of(graph):
        seen += batch.n_id[: batch.batch_size].tolist()
        assert torch.equal(batch.x, graph.x[batch.n_id])
        # e_id names the arcs of the graph that the batch's arcs are, attributes included.
        assert torch.equal(batch.n_id[batch.edge_index], graph.edge_index[:, batch.e_id])
        assert torch.equal(batch.edge_attr, batch.e_id)
        drawn = torch.bincount(batch.edge_index[1], minlength=len(batch.n_id))
        first, second, third = batch.num_sampled_nodes
        most = torch.tensor([3] * first + [2] * second + [0] * third)
        assert torch.equal(drawn, torch.minimum(in_degree[batch.n_id], most))
        assert sum(batch.num_sampled_edges) == batch.edge_index.shape[1]
    assert sorted(seen) == list(range(30))


def test_a_seed_repeats_a_run_with_workers_and_workers_differ() -> None:
    graph = small_graph()
    runs = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        runs.append([batch.e_id for batch in loader_of(graph, workers=2)])
    assert all(torch.equal(a, b) for a, b in zip(runs[0], runs[1], strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(runs[0], runs[2], strict=True))

    same_seeds = [torch.arange(5)] * 2
    sampler = NeighborSampler(graph, [3, 2])
    loader = NodeLoader(graph, sampler, num_workers=2, batch_sampler=same_seeds)
    one, other = (batch.e_id for batch in loader)
    assert not torch.equal(one, other)


def test_all_neighbours_are_taken_where_asked() -> None:
    graph, seeds = directed_graph(), torch.tensor([4, 7])
    sampler = NeighborSampler(graph, [-1])
    out = sampler.sample_from_nodes(NodeSamplerInput(input_id=None, node=seeds))
    into = torch.isin(graph.edge_index[1], seeds).nonzero().view(-1)
    assert sampler.edge_permutation is not None
    assert sampler.edge_permutation[out.edge].sort().values.tolist() == into.tolist()


def test_what_it_cannot_do_is_told() -> None:
    with pytest.raises(RawlsError, match="needs a graph with an edge_index"):
        NeighborSampler(Data(num_nodes=3), [2])
    with pytest.raises(RawlsError, match="use a NodeLoader"):
        NeighborSampler(small_graph(), [2]).sample_from_edges(None)
    with pytest.raises(RawlsError, match="edge index of shape"):
        NeighborSampler(Data(edge_index=torch.ones(3, 2).long(), num_nodes=3), [2])


def test_nodes_that_are_not_there_are_told() -> None:
    for edges, said in ([[0, 9], [9, 0]], "got node 9"), ([[0, -1], [1, 0]], "got node -1"):
        with pytest.raises(RawlsError, match=said):
            NeighborSampler(Data(edge_index=torch.tensor(edges), num_nodes=3), [2])
    sampler = NeighborSampler(small_graph(), [2])
    for seed in (24, -1):
        seeds = NodeSamplerInput(input_id=None, node=torch.tensor([0, seed]))
        with pytest.raises(RawlsError, match=f"got node {seed}, but the 24 nodes"):
            sampler.sample_from_nodes(seeds)
    with pytest.raises(RawlsError, match="needs a torch_geometric Data, not NoneType"):
        NeighborSampler(None, [2])  # type: ignore[arg-type]


def test_a_fan_out_above_every_degree_is_all_neighbours() -> None:
    graph = directed_graph()
    drawn = []
    for k in (-1, 10**9):
        seeds = NodeSamplerInput(input_id=None, node=torch.arange(5))
        drawn.append(NeighborSampler(graph, [k, k]).sample_from_nodes(seeds).edge)
    assert torch.equal(*drawn)


def test_pyg_lib_does_the_work_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Compiled:
        edge_permutation = torch.tensor([1, 0])

        def __init__(self, data: Data, num_neighbors: list[int]) -> None:
            asked.append(num_neighbors)

        def sample_from_nodes(self, index: NodeSamplerInput) -> SamplerOutput:
            return "from pyg-lib"

    monkeypatch.setattr(pyg, "WITH_PYG_LIB", True)
    monkeypatch.setattr(module, "PygNeighborSampler", Compiled)
    sampler = NeighborSampler(small_graph(), "4,3")
    assert asked == [[4, 3]]
    assert sampler.sample_from_nodes(None) == "from pyg-lib"
    assert sampler.edge_permutation is Compiled.edge_permutation
