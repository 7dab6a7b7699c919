"""Smoothing shards on disk: what the form in memory computes, whatever the blocks and restarts."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from rawlsgcn._core import atomic_files
from rawlsgcn._core.distributed_context import DistributedContext
from rawlsgcn._core.errors import RawlsError
from rawlsgcn._core.kernels import kernels, without_kernels
from rawlsgcn.balancing import propagation_matrix
from rawlsgcn.balancing.distributed import balance_and_save
from rawlsgcn.graphs import synthetic
from rawlsgcn.graphs.node_features import row_normalized
from rawlsgcn.graphs.shards import Shards, write_shards
from rawlsgcn.graphs.shards.shard_files import array_path
from rawlsgcn.methods import find_method
from rawlsgcn.training.smoothed import column_blocks as column_blocks_module
from rawlsgcn.training.smoothed import memory_plan
from rawlsgcn.training.smoothed import smooth_shards as module
from rawlsgcn.training.smoothed.column_blocks import ColumnBlocks
from rawlsgcn.training.smoothed.memory_plan import column_blocks
from rawlsgcn.training.smoothed.smooth_shards import WAITING, smooth_shards
from rawlsgcn.training.smoothed.smoothed_files import SmoothedForm, SmoothedRows, open_smoothed

FORM = SmoothedForm("doubly-stochastic", 0.1, 10, True, "float64")


def a_graph(weighted: bool = False, features: int = 40) -> Data:
    graph = synthetic(400, average_degree=6, features=features, words=3)
    # A node without neighbors has its own features alone.
    kept = (graph.edge_index != 7).all(0)
    graph.edge_index = graph.edge_index[:, kept]
    if weighted:
        row, column = graph.edge_index
        graph.edge_weight = (1 + (row * column) % 5).double()
    return graph


def expected(graph: Data, form: SmoothedForm) -> np.ndarray:
    """K dense products in float64."""
    matrix = propagation_matrix(
        graph.edge_index,
        graph.get("edge_weight"),
        graph.num_nodes,
        form.normalization,
        dtype=torch.float64,
    ).to_dense()
    features = (row_normalized(graph.x) if form.row_normalized else graph.x).double()
    smoothed = features
    for _ in range(form.steps):
        smoothed = (1 - form.teleport) * matrix @ smoothed + form.teleport * features
    return smoothed.numpy()


def balanced(graph: Data, count: int, folder: Path) -> Shards:
    """Shards whose scaling is as exact as float64 allows."""
    shards = write_shards(graph, count, folder)
    balance_and_save(shards, DistributedContext(), tol=1e-13)
    return shards


def rows_of(found: SmoothedRows) -> np.ndarray:
    return found.read(0, len(found))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("normalization", ["doubly-stochastic", "renormalized"])
@pytest.mark.parametrize("compiled", [True, False])
def test_the_result_is_the_dense_product(
    tmp_path: Path, weighted: bool, normalization: str, compiled: bool
) -> None:
    graph = a_graph(weighted)
    shards = balanced(graph, 3, tmp_path)
    form = SmoothedForm(normalization, 0.2, 7, row_normalized=not weighted, dtype="float64")
    if compiled:
        result = smooth_shards(shards, form)
    else:
        with without_kernels():
            result = smooth_shards(shards, form)
    assert result.blocks == [(0, 40)]
    found, dense = rows_of(result.rows), expected(graph, form)
    assert np.abs(found - dense).max() < 1e-12 * np.abs(dense).max()


def test_no_steps_and_a_single_feature(tmp_path: Path) -> None:
    graph = a_graph()
    graph.x = graph.x[:, :1].contiguous()
    shards = balanced(graph, 2, tmp_path)
    for steps in (0, 1):
        form = SmoothedForm("doubly-stochastic", 0.1, steps, False, "float64")
        np.testing.assert_allclose(
            rows_of(smooth_shards(shards, form).rows), expected(graph, form), rtol=1e-12
        )


@pytest.mark.skipif(kernels() is None, reason="there is no compiled code")
def test_bits_depend_on_no_blocks_shards_or_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = a_graph(weighted=True, features=50)
    form = SmoothedForm("renormalized", 0.1, 5, True)
    whole = smooth_shards(write_shards(graph, 1, tmp_path / "one"), form)
    assert whole.blocks == [(0, 50)]
    assert rows_of(whole.rows).dtype == np.float32
    np.testing.assert_allclose(rows_of(whole.rows), expected(graph, form), rtol=1e-5)
    narrow = smooth_shards(write_shards(graph, 1, tmp_path / "narrow"), form, most_columns=16)
    assert narrow.blocks == [(0, 16), (16, 32), (32, 48), (48, 50)]
    plan = memory_plan.plan_memory
    monkeypatch.setattr(module, "plan_memory", lambda *a: (plan(*a)[0], 0))
    read = smooth_shards(write_shards(graph, 3, tmp_path / "read"), form, most_columns=32)
    assert read.arcs_read
    assert read.blocks == [(0, 32), (32, 50)]
    for other in (narrow, read):
        np.testing.assert_array_equal(rows_of(other.rows), rows_of(whole.rows))


def test_a_run_that_was_killed_goes_on_with_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = a_graph(features=50)
    form = SmoothedForm("doubly-stochastic", 0.1, 5, True)
    whole = smooth_shards(balanced(graph, 2, tmp_path / "whole"), form, most_columns=16)
    shards = balanced(graph, 2, tmp_path / "killed")
    write, join = ColumnBlocks.write, ColumnBlocks.join

    class Killed(BaseException):
        pass

    def write_some(self: Any, shard: int, first: int, last: int, parts: Any) -> None:
        if (shard, first) == (1, 16):
            raise Killed
        write(self, shard, first, last, parts)

    def join_some(self: Any, shard: int) -> None:
        if shard == 1:
            raise Killed
        join(self, shard)

    monkeypatch.setattr(ColumnBlocks, "write", write_some)
    with pytest.raises(Killed):
        smooth_shards(shards, form, most_columns=16)
    assert find_smoothed_form(shards, form) is None
    monkeypatch.setattr(ColumnBlocks, "write", write)
    monkeypatch.setattr(ColumnBlocks, "join", join_some)
    with pytest.raises(Killed):
        smooth_shards(shards, form, most_columns=32)
    monkeypatch.setattr(ColumnBlocks, "join", join)
    again = smooth_shards(shards, form)
    assert again.blocks == []
    np.testing.assert_array_equal(rows_of(again.rows), rows_of(whole.rows))
    assert sorted(path.name for path in shards.folder.iterdir() if path.is_dir()) == [form.name]
    # Nothing is left to do.
    assert smooth_shards(shards, form).exchange is None


def find_smoothed_form(shards: Shards, form: SmoothedForm) -> SmoothedRows | None:
    settings = find_method("smoothed-mlp").configure(
        {"steps": form.steps, "teleport": form.teleport, "normalization": form.normalization}
    )
    return open_smoothed(shards, SmoothedForm.of(shards, settings))


def test_what_a_run_on_another_graph_left_is_not_used(tmp_path: Path) -> None:
    graph = a_graph()
    shards = balanced(graph, 2, tmp_path)
    files = ColumnBlocks(shards, FORM, 40)
    files.prepare()
    for shard in range(2):
        files.write(shard, 0, 8, [np.full((np.diff(shards.cuts)[shard], 8), 9.0)])
    assert files.finished().tolist() == [True] * 8 + [False] * 32
    text = (files.folder / "smoothed.json").read_text()
    (files.folder / "smoothed.json").write_text(text.replace(shards.fingerprint, "another"))
    found = rows_of(smooth_shards(shards, FORM).rows)
    np.testing.assert_allclose(found, expected(graph, FORM), rtol=1e-10)


def test_what_was_made_of_another_scaling_is_not_used(tmp_path: Path) -> None:
    shards = balanced(a_graph(), 2, tmp_path)
    form = SmoothedForm("doubly-stochastic", 0.1, 5, True)
    renormalized = SmoothedForm("renormalized", 0.1, 5, True)
    smooth_shards(shards, renormalized)
    first = rows_of(smooth_shards(shards, form).rows)
    balance_and_save(shards, DistributedContext(), tol=1e-13)
    assert find_smoothed_form(shards, form) is not None  # the same bits
    files = ColumnBlocks(shards, FORM, 40)
    files.prepare()
    balance_and_save(shards, DistributedContext(), tol=1e-7)
    assert find_smoothed_form(shards, form) is None
    assert find_smoothed_form(shards, renormalized) is not None
    assert ColumnBlocks(shards, FORM, 40)._manifest != files._manifest
    second = smooth_shards(shards, form)
    assert second.blocks == [(0, 40)]
    assert not np.array_equal(rows_of(second.rows), first)


@pytest.mark.parametrize("name", ["x", "weight", "scale"])
def test_what_was_made_of_files_that_have_changed_is_not_used(name: str, tmp_path: Path) -> None:
    shards = balanced(a_graph(weighted=True), 2, tmp_path)
    first = rows_of(smooth_shards(shards, FORM).rows)
    path = array_path(tmp_path, 1, name)
    changed = np.load(path)[::-1].copy()
    np.save(path, changed)
    assert open_smoothed(shards, FORM) is None
    again = smooth_shards(shards, FORM)
    assert again.blocks == [(0, 40)]
    assert not np.array_equal(rows_of(again.rows), first)


def test_a_rough_scaling_is_refused(tmp_path: Path) -> None:
    shards = balanced(a_graph(), 2, tmp_path)
    smooth_shards(shards, FORM)
    balance_and_save(shards, DistributedContext(), tol=0.5)
    with pytest.raises(RawlsError, match=r"a residual of .* only, not 1e-06: balance again"):
        smooth_shards(shards, FORM)
    smooth_shards(shards, SmoothedForm("renormalized", 0.1, 2, True))
    balance_and_save(shards, DistributedContext())
    smooth_shards(shards, FORM)


def test_balancing_repairs_a_damaged_scaling(tmp_path: Path) -> None:
    shards = balanced(a_graph(), 2, tmp_path)
    for damage in (b"", (tmp_path / "00001-scale.npy").read_bytes()[:-8]):
        (tmp_path / "00001-scale.npy").write_bytes(damage)
        with pytest.raises(RawlsError, match=r"balance again: rawlsgcn balance --shards .*$"):
            smooth_shards(shards, FORM)
        balance_and_save(shards, DistributedContext())
        assert shards.open(1).scale is not None


def test_shards_without_a_scaling_are_balanced_first(tmp_path: Path) -> None:
    graph = a_graph()
    shards = write_shards(graph, 2, tmp_path)
    seen: list[tuple[int, int, str | None]] = []
    form = SmoothedForm("doubly-stochastic", 0.1, 10, True)
    found = smooth_shards(shards, form, progress=lambda *call: seen.append(call)).rows
    np.testing.assert_allclose(rows_of(found), expected(graph, form), rtol=1e-4, atol=1e-7)
    assert shards.open(1).scale is not None
    words = [call[2] for call in seen]
    assert any(word and word.startswith("balancing") for word in words)
    done = [call[0] for call in seen if call[1] == 1000]
    assert done == sorted(done)
    assert seen[-1][0] == 1000


def test_features_that_are_missing_or_no_numbers_are_named(tmp_path: Path) -> None:
    graph = a_graph()
    shards = balanced(graph, 2, tmp_path)
    x = np.load(tmp_path / "00001-x.npy")
    x[3, 5] = np.inf
    np.save(tmp_path / "00001-x.npy", x)
    form = SmoothedForm("doubly-stochastic", 0.1, 2, False)
    with pytest.raises(RawlsError, match="are not all finite"), np.errstate(all="ignore"):
        smooth_shards(shards, form)
    for path in tmp_path.glob("*-x.npy"):
        path.unlink()
    with pytest.raises(RawlsError, match="have no features to smooth"):
        smooth_shards(Shards(tmp_path), form)


def test_too_little_memory_is_an_error_that_names_the_least(tmp_path: Path) -> None:
    shards = balanced(a_graph(), 2, tmp_path)
    with pytest.raises(RawlsError, match=r"1 MB of memory are too little .* at least [\d,]+ MB"):
        smooth_shards(shards, FORM, memory=10**6)
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


def test_a_run_that_waited_for_another_uses_its_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards = balanced(a_graph(), 2, tmp_path)
    lock, runs = atomic_files.only_writer, []

    def lock_late(folder: Path, waiting: Any) -> Any:
        """Another run does everything between making the folder and locking it."""
        if not runs:
            runs.append(None)
            runs[0] = smooth_shards(shards, FORM)
        return lock(folder, waiting)

    monkeypatch.setattr(atomic_files, "only_writer", lock_late)
    waited = smooth_shards(shards, FORM)
    assert runs[0].blocks == [(0, 40)]
    assert waited.blocks == []
    np.testing.assert_array_equal(rows_of(waited.rows), rows_of(runs[0].rows))
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [FORM.name]


def test_a_run_says_that_it_waits_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic_files, "PATIENCE_SECONDS", 0)
    shards = balanced(a_graph(), 2, tmp_path)
    hidden = ColumnBlocks(shards, FORM, 40).folder
    hidden.mkdir()
    said: list[str] = []
    other = ExitStack()
    other.enter_context(atomic_files.only_writer(hidden))

    def progress(done: int, total: int, words: str | None = None) -> None:
        said.append(words or "")
        if said.count(WAITING) == 3:
            other.close()

    assert smooth_shards(shards, FORM, progress=progress).blocks == [(0, 40)]
    assert said.count(WAITING) == 3


def test_a_block_that_was_cut_short_is_done_again(tmp_path: Path) -> None:
    graph = a_graph()
    shards = balanced(graph, 2, tmp_path)
    files = ColumnBlocks(shards, FORM, 40)
    files.prepare()
    whole = expected(graph, FORM)
    for shard, rows in enumerate(np.split(whole, shards.cuts[1:-1])):
        for first in (0, 8):
            files.write(shard, first, first + 8, [rows[:, first : first + 8]])
    block = files.folder / "00001-00000008-00000016.npy"
    os.truncate(block, block.stat().st_size - 8)
    result = smooth_shards(shards, FORM)
    assert result.blocks == [(8, 40)]
    np.testing.assert_allclose(rows_of(result.rows), whole, rtol=1e-10)


def test_blocks_of_columns_are_even_and_skip_what_is_finished() -> None:
    none = np.zeros(100, dtype=bool)
    assert column_blocks(none, 7, 16) == [(0, 100)]
    assert column_blocks(none, 3, 16) == [(0, 32), (32, 64), (64, 100)]
    assert column_blocks(none, 1, 16)[-1] == (96, 100)
    some = none.copy()
    some[16:32] = some[90:] = True
    assert column_blocks(some, 2, 16) == [(0, 16), (32, 64), (64, 90)]
    assert column_blocks(~none, 2, 16) == []


SCRIPT = """
import sys
from rawlsgcn._core.machine import peak_resident_bytes
from rawlsgcn._core.memory import resident_memory
from rawlsgcn.graphs.shards import Shards
from rawlsgcn.training.smoothed.smooth_shards import smooth_shards
from rawlsgcn.training.smoothed.smoothed_files import SmoothedForm
form = SmoothedForm("renormalized", 0.1, 3, True)
limit = int(sys.argv[2]) + resident_memory()
result = smooth_shards(Shards(sys.argv[1]), form, memory=limit)
print(len(result.blocks), int(result.arcs_read), peak_resident_bytes(), limit)
"""


@pytest.mark.slow
def test_resident_memory_stays_within_the_limit(tmp_path: Path) -> None:
    """Features of 192 MB and arcs of 26 MB; 270 MB beside what the interpreter has at the start."""
    graph = synthetic(300_000, average_degree=20, features=6, words=3)
    shards = write_shards(graph, 2, tmp_path)
    rng = np.random.default_rng(0)
    for shard, rows in enumerate(np.diff(shards.cuts).tolist()):
        np.save(array_path(tmp_path, shard, "x"), rng.random((rows, 160), dtype=np.float32))
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    command = [sys.executable, "-c", SCRIPT, str(tmp_path), str(270 * 10**6)]
    said = subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment, timeout=240
    ).stdout
    blocks, arcs_read, peak, limit = map(int, said.split())
    assert blocks > 1
    assert arcs_read
    assert peak <= limit


def test_a_folder_that_cannot_be_filled_is_not_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards = balanced(a_graph(), 2, tmp_path)

    def full(*arguments: Any) -> None:
        raise RawlsError("no space left")

    monkeypatch.setattr(column_blocks_module, "atomic_file", full)
    with pytest.raises(RawlsError, match="no space"):
        smooth_shards(shards, FORM)
    assert not list(tmp_path.glob(".*"))
