"""Balancing: ours against the textbook's and the published procedure, and one scipy product."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from rawlsgcn._core.kernels import kernels, without_kernels
from rawlsgcn.balancing import balance

from .measurement import Measurement, timed, timed_in_turn
from .rivals import published_sinkhorn_knopp, textbook_sinkhorn_knopp

TOLERANCE = 1e-6
PUBLISHED_TOLERANCE = 1e-2
# A call of milliseconds is repeated more often, for a median that one hiccup does not move.
OFTEN = 25


def on_graph(graph: Data, device: torch.device, repeats: int) -> Iterator[Measurement]:
    """Measure products and time to 1e-6 on a graph, against two rivals."""
    matrix = scipy_matrix(graph)
    given = matrix if device.type == "cpu" else _on_gpu(matrix, device)
    compiled = device.type == "cpu" and kernels() is not None
    forms = [lambda: balance(given, tol=TOLERANCE), lambda: _by_numpy(matrix)]
    ours, *plain = timed_in_turn(forms[: 1 + compiled], max(repeats, OFTEN), device)
    facts = {"products": balance(given, tol=TOLERANCE).iterations, "nonzeros": int(matrix.nnz)}
    cpu = torch.device("cpu")
    steps = textbook_sinkhorn_knopp(matrix, TOLERANCE)
    yield Measurement(
        "balance",
        f"{graph.name}: to 1e-6 in {facts['products']} products",
        ours=ours,
        rival=timed(lambda: textbook_sinkhorn_knopp(matrix, TOLERANCE), 1, cpu),
        rival_name=f"textbook Sinkhorn-Knopp to 1e-6 ({steps} products)",
        goal="at most 20 products",
        facts={**facts, "rival_products": steps},
    )
    if compiled:
        yield Measurement(
            "balance",
            f"{graph.name}: to 1e-6, by compiled kernels",
            ours=ours,
            rival=plain[0],
            rival_name="the same by numpy and torch, where nothing was compiled",
        )
    if graph.name == "amazon-photo":
        a_hat = renormalized(matrix)
        steps, _ = published_sinkhorn_knopp(a_hat, PUBLISHED_TOLERANCE)
        yield Measurement(
            "balance",
            f"{graph.name}: to 1e-6, against the published procedure to 1e-2",
            ours=ours,
            rival=timed(lambda: published_sinkhorn_knopp(a_hat, PUBLISHED_TOLERANCE), repeats, cpu),
            rival_name=f"{steps} iterations that rebuild the matrix each",
            goal="at least 200",
            facts={**facts, "rival_iterations": steps},
        )


def _by_numpy(matrix: Any) -> None:
    with without_kernels():
        balance(matrix, tol=TOLERANCE)


def on_random(nonzeros: int, repeats: int) -> Iterator[Measurement]:
    """Compare balancing of a random graph with one scipy product in float64.

    Scipy's product uses one core, so balancing is measured on one core too.
    """
    matrix = random_matrix(nonzeros)
    vector, cpu = np.ones(matrix.shape[0]), torch.device("cpu")
    often = max(repeats, min(OFTEN, 2 * 10**8 // nonzeros))
    extra = _Memory()
    scaling = balance(matrix, tol=TOLERANCE)
    megabytes = extra.megabytes()
    threads = sorted({torch.get_num_threads(), 1}, reverse=True)
    ours = [partial(_with_threads, number, matrix) for number in threads]
    product, *taken = timed_in_turn([lambda: matrix @ vector, *ours], often, cpu)
    facts = {
        "nonzeros": int(matrix.nnz),
        "nodes": int(matrix.shape[0]),
        "products": scaling.iterations,
    }
    memory = {
        "extra_memory_mb": megabytes,
        "csr_mb": (matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes) / 2**20,
    }
    for number, seconds in zip(threads, taken, strict=True):
        each = {"threads": number, "nanoseconds_per_nonzero": seconds.median / matrix.nnz * 1e9}
        yield Measurement(
            "balance at scale" + (", on one core" if number == 1 else ""),
            f"{matrix.nnz:.1e} nonzeros: to 1e-6 in {scaling.iterations} products",
            ours=seconds,
            rival=product,
            rival_name="one scipy product, float64",
            goal="at most 22",
            inverse=True,
            facts={**facts, **each, **(memory if number == threads[0] else {})},
        )


def _with_threads(number: int, matrix: Any) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    balance(matrix, tol=TOLERANCE)
    torch.set_num_threads(before)


def scipy_matrix(graph: Data) -> Any:
    """Return A + I as scipy's CSR, with 32-bit indices, with which scipy is faster too."""
    from scipy import sparse

    nodes = int(graph.num_nodes)
    ones = np.ones(graph.edge_index.shape[1])
    rows, columns = graph.edge_index.numpy().astype(np.int32)
    adjacency = sparse.csr_array((ones, (rows, columns)), shape=(nodes, nodes))
    return (adjacency + sparse.eye_array(nodes, format="csr")).tocsr()


def renormalized(matrix: Any) -> Any:
    """Â = D̃^(-1/2) (A + I) D̃^(-1/2), which the published code balances."""
    from scipy import sparse

    factor = sparse.diags_array(matrix.sum(axis=1) ** -0.5)
    return (factor @ matrix @ factor).tocsr()


def random_matrix(nonzeros: int, seed: int = 0) -> Any:
    """A symmetric random A + I with power-law degrees, about 20 nonzeros a row, int32 indices."""
    from scipy import sparse

    random = np.random.default_rng(seed)
    nodes = nonzeros // 20
    pull = np.minimum((1 - random.random(nodes)) ** (-1 / 1.5), np.sqrt(nodes))
    reach = np.cumsum(pull / pull.sum())
    draws = round((nonzeros - nodes) / 2)
    ends = [
        np.searchsorted(reach, random.random(draws)).clip(max=nodes - 1).astype(np.int32)
        for _ in range(2)
    ]
    loops = np.arange(nodes, dtype=np.int32)
    rows = np.concatenate([ends[0], ends[1], loops])
    columns = np.concatenate([ends[1], ends[0], loops])
    del ends
    matrix = sparse.csr_array(
        (np.ones(len(rows), dtype=np.float32), (rows, columns)), shape=(nodes, nodes)
    )
    matrix = sparse.csr_array(
        (np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape
    )
    matrix.has_canonical_format = True
    return matrix


def _on_gpu(matrix: Any, device: torch.device) -> torch.Tensor:
    from rawlsgcn._core.sparse import csr_tensor

    crow, columns, values = map(torch.from_numpy, (matrix.indptr, matrix.indices, matrix.data))
    return csr_tensor(crow, columns, values, matrix.shape).to(device)


class _Memory:
    """The rise of the peak of resident memory since it was created (Linux; elsewhere NaN)."""

    def __init__(self) -> None:
        try:
            with open("/proc/self/clear_refs", "w", encoding="utf-8") as file:
                file.write("5")
            self.before = self._read("VmRSS")
        except OSError:
            self.before = float("nan")

    @staticmethod
    def _read(name: str) -> float:
        with open("/proc/self/status", encoding="utf-8") as file:
            return next(float(line.split()[1]) / 1024 for line in file if line.startswith(name))

    def megabytes(self) -> float:
        return self._read("VmHWM") - self.before if self.before == self.before else self.before
