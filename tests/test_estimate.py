"""The cost at scale: bytes as real arrays have them, and a page that cannot drift."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rawlsgcn.balancing.distributed import balance_shards
from rawlsgcn.bench import estimate as module
from rawlsgcn.bench.estimate import Measured, Setting, estimate
from rawlsgcn.compiled import kernels
from rawlsgcn.errors import RawlsError
from rawlsgcn.graphs import synthetic
from rawlsgcn.graphs.shards import write_shards
from rawlsgcn.methods import find
from rawlsgcn.training.sampled import SampledTraining
from rawlsgcn.training.sources import Source

ROOT = Path(__file__).parents[1]
MEASURED = Measured(10.0, 14, 0.05, 40_000)


def test_the_bytes_are_those_of_real_arrays(tmp_path: Path) -> None:
    graph = synthetic(20_000, average_degree=10, features=8, words=2, split="random")
    shards = write_shards(graph, 1, tmp_path)
    scaling = balance_shards(shards)
    reckoned = module.balancing_bytes(shards.num_arcs, shards.num_nodes, 1)
    # Without compiled passes there is no second copy of the row starts.
    starts = 0 if kernels() is not None else 4 * shards.num_nodes
    assert scaling.held_bytes + starts == pytest.approx(reckoned, rel=1e-3)

    shards.write_scale(0, scaling.scale.numpy())
    source = Source.of_shards(shards)
    method = find("rawlsgcn-grad")
    training = SampledTraining(method, source, method.defaults, fan_out=[3, 3], batch_size=50)
    sampler = training.maker.neighbourhoods
    vectors = [source.adjacency.row_start, source.y.numpy(), source.scale, training.forward.left]
    vectors += [sampler._place, training.train, *(mask.numpy() for mask in source.masks.values())]
    assert training.forward.right is training.forward.left
    share = len(training.train) / shards.num_nodes
    reckoned = module.training_bytes(shards.num_nodes, Setting(training_share=share))
    assert sum(each.nbytes for each in vectors) == pytest.approx(reckoned, rel=1e-3)


def test_more_processes_take_less_each_but_not_of_the_vector_that_all_hold() -> None:
    one, many = (estimate(10**9, k, MEASURED, Setting()) for k in (1, 64))
    assert many.product_compute == pytest.approx(one.product_compute / 64)
    assert many.epoch_time < one.epoch_time / 60
    assert one.balance_traffic == 0
    assert many.balance_traffic == pytest.approx(8 * 5e7 / 1e9, rel=0.02)
    assert many.balance_memory > 16 * 5e7 / 1e9
    assert many.train_memory == one.train_memory


def test_larger_graphs_cost_in_proportion_until_numbers_need_eight_bytes() -> None:
    small, large = (estimate(edges, 16, MEASURED, Setting()) for edges in (10**9, 10**11))
    assert large.product_compute == pytest.approx(100 * small.product_compute)
    assert large.train_memory == pytest.approx(100 * small.train_memory)
    assert large.disk > 100 * small.disk
    assert np.isfinite(large.balance_time)


def test_the_page_shows_what_was_measured() -> None:
    measured = Measured.of(ROOT / "benchmarks")
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    assert module.drawn(page, measured) == page, "python -m rawlsgcn.bench.estimate --write …"


def test_what_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(RawlsError, match=r"holds no results-cpu\.json"):
        Measured.of(tmp_path)
    (tmp_path / "results-cpu.json").write_text("[]")
    with pytest.raises(RawlsError, match="run 'rawlsgcn bench sampling'"):
        Measured.of(tmp_path)
    with pytest.raises(RawlsError, match="no place for the tables"):
        module.drawn("a page", MEASURED)
