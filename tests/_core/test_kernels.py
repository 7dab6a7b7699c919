"""The compiled kernels: numpy's numbers, whatever the threads, and only from this very source."""

from __future__ import annotations

import ctypes
import ctypes.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rawlsgcn._core import kernels as compiled
from rawlsgcn._core import threads
from rawlsgcn._core.kernels import CSRArrays, kernels, without_kernels
from rawlsgcn.balancing import balance
from rawlsgcn.balancing.vector_updates import UpdateSums, VectorUpdates

CPU = torch.device("cpu")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", autouse=True)
def _need_kernels():
    if kernels() is None:
        pytest.skip("the package was installed without a C compiler")


def a_graph(n=3000, seed=0, hub=False):
    """A symmetric pattern of some 60,000 entries, more than one piece of either kind."""
    rng = np.random.default_rng(seed)
    matrix = sp.random_array((n, n), density=20 / n, rng=rng, format="csr")
    matrix = (matrix + matrix.T + sp.eye_array(n)).tolil()
    if hub:
        matrix[0, :] = matrix[:, 0] = 1
    return matrix.tocsr()


def stored_form(matrix, ones):
    values = None if ones else torch.from_numpy(matrix.data)
    return CSRArrays(torch.from_numpy(matrix.indptr), torch.from_numpy(matrix.indices), values)


def require_scipys(fast, dtype):
    """Compare products and inspections by these kernels with scipy's."""
    matrix = a_graph(hub=True).astype(dtype or np.float64)
    if dtype is None:
        matrix.data[:] = 1
    stored = stored_form(matrix, dtype is None)
    assert stored.usable
    x = torch.from_numpy(np.random.default_rng(0).random(3000))
    for loops in (False, True):
        out = torch.full((3000,), torch.nan, dtype=torch.float64)
        form = fast.multiplication(stored, loops)(x, x, out)
        expected = matrix.astype(np.float64) @ x.numpy() + loops * x.numpy()
        np.testing.assert_allclose(out, expected, rtol=1e-13)
        assert form == pytest.approx(x.numpy() @ expected, rel=1e-12)
    lacking = matrix.tolil()
    lacking[5, 0] = 0
    lacking.setdiag(np.arange(3000) % 2)
    for each, symmetric in ((matrix, True), (lacking.tocsr(), False)):
        found = fast.inspect(stored_form(each, dtype is None), 7)
        np.testing.assert_array_equal(found.diagonal, each.diagonal())
        assert found.symmetric == symmetric
        assert (found.low, found.high) == (each.data.min(), each.data.max())


@pytest.mark.parametrize("dtype", [None, np.float32, np.float64])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_products_and_inspections_equal_scipys(dtype, number):
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        require_scipys(kernels(), dtype)
    finally:
        torch.set_num_threads(before)


def require_partners_of_ones(fast, dtype):
    """A piece of ones is looked at in another way, and has partners in pieces of other entries."""
    matrix = a_graph().astype(dtype)
    row, column = matrix.tocoo().coords
    matrix.data[(row < 1800) | (column < 1800)] = 1
    assert (matrix.data[: 1 << 15] == 1).all()
    assert matrix[1700, 1700:].nnz > 1

    def found():
        return fast.inspect(stored_form(matrix, False), 3)

    assert found().symmetric
    far = np.flatnonzero((row == 20) & (column > 2000))[0]
    for value in (2, 0.5):  # with ones at most there, or at least
        matrix.data[far] = value
        assert not found().symmetric
    matrix.data[far] = np.nan
    assert np.isnan(found().low)
    assert np.isnan(found().high)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ones_among_other_entries_are_inspected_as_these_are(dtype):
    require_partners_of_ones(kernels(), dtype)


@pytest.mark.parametrize(("place", "value"), [(0, 1), (1000, -1), (1000, 10**6), (-1, 5)])
def test_starts_that_lead_outside_the_entries_are_found(place, value):
    matrix = a_graph()
    matrix.indptr[place] = value
    assert kernels().inspect(stored_form(matrix, True), 3) is None


@pytest.mark.parametrize("column", [3000, -1, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("at", [0, 40_000, -1])
def test_a_column_outside_the_matrix_is_found_wherever_it_is(column, at):
    matrix = a_graph()
    assert kernels().inspect(stored_form(matrix, True), 3) is not None
    matrix.indices[at] = column
    assert kernels().inspect(stored_form(matrix, True), 3) is None


def smoothing_arguments(dtype, weighted, width=40, first=700, last=2100):
    """Rows of a matrix with int64 starts that do not begin at 0, and what a step adds to them."""
    rng = np.random.default_rng(4)
    matrix = a_graph(hub=True).astype(dtype)
    matrix.data[:] = rng.random(len(matrix.data)) if weighted else 1
    a, b = matrix.indptr[[first, last]]
    right, added = rng.random((2, 3000, width)).astype(dtype)
    factor = rng.random(3000).astype(dtype)
    parts = matrix.indptr[first : last + 1].astype(np.int64), matrix.indices[a:b]
    stored = [torch.from_numpy(each) for each in parts]
    values = torch.from_numpy(matrix.data[a:b]) if weighted else None
    dense = right, right[first:last], factor[first:last], added[first:last]
    given = [*stored, values, *map(torch.from_numpy, dense)]
    whole = (matrix + sp.eye_array(3000)).astype(np.float64)
    expected = factor[:, None] * (whole @ right.astype(np.float64)) + added
    return given, expected[first:last]


def smoothed_by(fast, given):
    out = torch.full_like(given[-1], torch.nan)
    fast.smoothing_step(*given, out)
    return out


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-4), (np.float64, 1e-13)])
def test_a_step_of_smoothing_equals_scipys_product(dtype, rtol, weighted):
    for width in (16, 32, 48, 128):
        given, expected = smoothing_arguments(dtype, weighted, width)
        np.testing.assert_allclose(smoothed_by(kernels(), given), expected, rtol=rtol)


@pytest.mark.parametrize("weighted", [False, True])
def test_bits_of_a_step_depend_on_no_threads_widths_rows_or_addresses(weighted):
    given, _ = smoothing_arguments(np.float32, weighted, 112)
    row_start, column, values, right, own, factor, added = given
    whole = smoothed_by(kernels(), given)
    before = torch.get_num_threads()
    try:
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            assert torch.equal(smoothed_by(kernels(), given), whole)
    finally:
        torch.set_num_threads(before)
    for first, last in ((0, 16), (16, 80), (80, 112)):
        columns = slice(first, last)
        cut = [each[:, columns].contiguous() for each in (right, own, added)]
        part = smoothed_by(kernels(), [row_start, column, values, cut[0], cut[1], factor, cut[2]])
        assert torch.equal(part, whole[:, columns])
    a, b = (row_start[[300, 900]] - row_start[0]).tolist()
    some = None if values is None else values[a:b]
    rows = slice(300, 900)
    part = smoothed_by(
        kernels(),
        [row_start[300:901], column[a:b], some, right, own[rows], factor[rows], added[rows]],
    )
    assert torch.equal(part, whole[rows])
    shifted = torch.empty(right.numel() + 1)[1:].view_as(right).copy_(right)
    moved = [row_start, column, values, shifted, shifted[700:2100], factor, added]
    assert torch.equal(smoothed_by(kernels(), moved), whole)


def test_types_that_the_kernels_do_not_know_are_left_to_torch():
    starts, column = torch.tensor([0, 1], dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    assert CSRArrays(starts, column, None).usable
    assert not CSRArrays(starts.long(), column, None).usable
    assert not CSRArrays(starts, column, torch.ones(1, dtype=torch.int64)).usable
    assert not CSRArrays(starts, torch.zeros(4, dtype=torch.int32)[::2], torch.ones(2)).usable


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([1, 2, 9, 2048, 5000]),
    st.integers(0, 2**32 - 1),
    st.tuples(st.floats(-2, 2), st.one_of(st.just(0.0), st.floats(-2, 2))),
    st.sampled_from(["ones", "none", "array"]),
    st.sampled_from([1, 2]),
)
def test_a_move_equals_numpys(n, seed, weights, diagonal, to):
    rng = np.random.default_rng(seed)
    m = {"ones": 1.0, "none": 0.0, "array": rng.random(n)}[diagonal]
    whole = SimpleNamespace(size=n, step_coefficients=lambda: [((0, n), (2.0, m))])
    # Two ranges that are handled differently, as Sinkhorn-Knopp's halves are.
    half = n // 2
    ranges = [((0, half), (1.0, 0.0)), ((half, n), (np.inf, 0.0))]
    halves = SimpleNamespace(size=n, step_coefficients=lambda: ranges)
    for iteration in (whole, halves) if half else (whole,):
        one = VectorUpdates(iteration, CPU)
        with without_kernels():
            other = VectorUpdates(iteration, CPU)
        for name in ("points", "steps", "image"):
            getattr(one, name)[:] = 0.5 + rng.random(getattr(one, name).shape)
            getattr(other, name)[:] = getattr(one, name)
        # The new point may take the place of point 2, from which point 0 was reached.
        sums = [which.move(0, 2, to, 1, weights) for which in (one, other)]
        for mine, theirs in zip(*sums, strict=True):
            assert mine == pytest.approx(theirs, rel=1e-9, abs=1e-9 * n)
        np.testing.assert_allclose(one.points, other.points, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(one.steps[0], other.steps[0], rtol=1e-9, atol=1e-9)


def test_without_a_share_of_it_the_last_displacement_is_not_looked_at():
    iteration = SimpleNamespace(size=3000, step_coefficients=lambda: [((0, 3000), (2.0, 1.0))])
    with without_kernels():
        slow = VectorUpdates(iteration, CPU)
    for which in (VectorUpdates(iteration, CPU), slow):
        which.points[:], which.steps[:], which.image[:] = 1, 0.1, 0.1
        which.points[2] = np.nan
        assert all(np.isfinite(which.move(0, 2, 2, 0, (-1.0, 0.0))))
        assert np.isfinite(which.points[2]).all()


def test_sums_over_two_ranges_are_sums_over_both():
    one, other = UpdateSums(*range(10)), UpdateSums(*range(10, 20))
    assert one.and_of(other) == UpdateSums(10, 12, 14, 16, 18, 20, 16, 7, 8, 19)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_balancing_is_the_same_for_any_number_of_threads_and_as_good_as_numpys(
    monkeypatch, weighted, directed
):
    matrix = a_graph(hub=True)
    if not weighted:
        matrix.data[:] = 1
    if directed:
        matrix = (sp.diags_array(1.0 + np.arange(3000) % 7) @ matrix).tocsr()
    monkeypatch.setattr(threads, "_is_busy", lambda: False)
    before, found = torch.get_num_threads(), []
    try:
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            found.append(balance(matrix, tol=1e-10))
    finally:
        torch.set_num_threads(before)
    with without_kernels():
        slow = balance(matrix, tol=1e-10)
    for fast in found:
        assert torch.equal(fast.row_scale, found[0].row_scale)
        assert fast.history == found[0].history
        assert fast.converged
        assert slow.converged
        assert abs(fast.iterations - slow.iterations) <= 2
    dense = [(np.outer(s.row_scale, s.col_scale) * matrix.toarray()) for s in (found[0], slow)]
    np.testing.assert_allclose(*dense, rtol=1e-6, atol=1e-9)


def loaded_from(monkeypatch, path: Path):
    """What is loaded if the library is there."""
    with monkeypatch.context() as patch:
        patch.setattr(compiled, "path", lambda: path)
        found = compiled._found.__wrapped__()
        return None if isinstance(found, str) else found


def reason_for(monkeypatch, path: Path) -> str:
    """Why nothing is loaded if the library is there."""
    with monkeypatch.context() as patch:
        patch.setattr(compiled, "path", lambda: path)
        patch.setattr(compiled, "_found", compiled._found.__wrapped__)
        assert kernels() is None
        return compiled.missing_reason()


@pytest.fixture
def building(monkeypatch) -> ModuleType:
    """The build hook, without the build system that calls it."""
    module = ModuleType("interface")
    module.BuildHookInterface = type("BuildHookInterface", (), {})
    monkeypatch.setitem(sys.modules, "hatchling.builders.hooks.plugin.interface", module)
    for name in ("hatchling", "hatchling.builders", "hatchling.builders.hooks"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    plugin = "hatchling.builders.hooks.plugin"
    monkeypatch.setitem(sys.modules, plugin, ModuleType(plugin))
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.delitem(sys.modules, "hatch_build", raising=False)
    import hatch_build

    return hatch_build


@pytest.mark.skipif(not (ROOT / "hatch_build.py").exists(), reason="not run from a clone")
@pytest.mark.slow
class TestBuilding:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "kernels.c").write_bytes(compiled.SOURCE.read_bytes())
        (tmp_path / "_kernels-0ld.so").touch()
        return tmp_path

    @pytest.mark.parametrize("answer", ["-DGATHERS_WELL=1", "-DGATHERS_WELL=0"])
    def test_what_it_compiles_is_what_is_loaded_and_right_on_any_processor(
        self, monkeypatch, building: Any, folder: Path, answer: str
    ) -> None:
        monkeypatch.setenv("CC", f"cc {answer}")  # a compiler may have arguments
        library, _ = building.compiled(folder)
        assert library == compiled.path(folder)
        assert sorted(path.name for path in folder.iterdir()) == [library.name, "kernels.c"]
        fast = compiled.Kernels(ctypes.CDLL(str(library)))
        require_scipys(fast, None)
        given, expected = smoothing_arguments(np.float64, False)
        np.testing.assert_allclose(smoothed_by(fast, given), expected, rtol=1e-13)
        for dtype in (np.float32, np.float64):
            require_partners_of_ones(fast, dtype)

    @pytest.mark.parametrize(
        ("name", "value", "why"),
        [
            ("CC", "no-such-compiler", "no-such-compiler"),
            ("CC", "false", "returned non-zero"),
            ("RAWLSGCN_PURE", "1", "RAWLSGCN_PURE"),
        ],
    )
    def test_without_a_compiler_the_reason_is_kept_and_nothing_is_lost(
        self, monkeypatch, building: Any, folder: Path, name: str, value: str, why: str
    ) -> None:
        monkeypatch.setenv(name, value)
        made, said = building.compiled(folder)
        assert made == compiled.path(folder).with_suffix(".txt")
        assert why in said
        names = sorted(path.name for path in folder.iterdir())
        assert names == ["_kernels-0ld.so", made.name, "kernels.c"]
        reason = reason_for(monkeypatch, compiled.path(folder))
        assert reason == f"they were not compiled: {said}"
        # With a compiler again, the reason goes.
        monkeypatch.delenv(name)
        made, said = building.compiled(folder)
        assert (made, said) == (compiled.path(folder), "")
        assert sorted(path.name for path in folder.iterdir()) == [made.name, "kernels.c"]

    @pytest.mark.skipif(shutil.which("readelf") is None, reason="there is no readelf")
    def test_the_library_needs_no_openmp_runtime_but_torchs(
        self, building: Any, folder: Path
    ) -> None:
        library, _ = building.compiled(folder)
        command = ["readelf", "--wide", "--dynamic", "--dyn-syms", str(library)]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert "GOMP_parallel" in said
        assert not re.findall(r"NEEDED.*\[(?!libc\.)(.*)\]", said)

    def test_a_compiler_for_another_runtime_compiles_without_threads(
        self, monkeypatch, building: Any, folder: Path
    ) -> None:
        monkeypatch.setattr(building, "FOREIGN_RUNTIME", b"GOMP_parallel")
        library, _ = building.compiled(folder)
        assert b"GOMP_parallel" not in library.read_bytes()
        require_scipys(compiled.Kernels(ctypes.CDLL(str(library))), None)

    @pytest.mark.parametrize(
        ("system", "host", "archflags", "expected"),
        [
            ("linux", "linux-aarch64", "", "linux_aarch64"),
            ("win32", "win-amd64", "", "win_amd64"),
            ("darwin", "macosx-11.0-arm64", "", "macosx_11_0_arm64"),
            ("darwin", "macosx-10.9-universal2", "", "macosx_10_9_arm64"),
            ("darwin", "macosx-10.9-universal2", "-arch x86_64", "macosx_10_9_x86_64"),
            (
                *("darwin", "macosx-10.9-universal2"),
                *("-arch x86_64 -arch arm64", "macosx_10_9_universal2"),
            ),
        ],
    )
    def test_the_tag_names_the_processor_that_was_compiled_for(
        self, monkeypatch, building: Any, system: str, host: str, archflags: str, expected: str
    ) -> None:
        monkeypatch.setenv("ARCHFLAGS", archflags)
        monkeypatch.setattr(building.sys, "platform", system)
        monkeypatch.setattr(building.sysconfig, "get_platform", lambda: host)
        monkeypatch.setattr(building.platform, "machine", lambda: "arm64")
        assert building.platform_tag() == expected

    def test_another_source_is_never_called(self, monkeypatch, folder: Path) -> None:
        shutil.copy(compiled.path(), compiled.path(folder))
        source = folder / "kernels.c"
        source.write_text(source.read_text() + "\n")
        monkeypatch.setattr(compiled, "SOURCE", source)
        assert not compiled.path(folder).exists()
        assert loaded_from(monkeypatch, compiled.path(folder)) is None


def test_a_damaged_file_is_as_good_as_none(monkeypatch, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.so"
    damaged.write_bytes(compiled.path().read_bytes()[:100])
    assert loaded_from(monkeypatch, damaged) is None
    assert "damaged.so cannot be loaded: " in reason_for(monkeypatch, damaged)
    assert loaded_from(monkeypatch, Path(ctypes.util.find_library("m"))) is None
    assert "not compiled: install" in reason_for(monkeypatch, tmp_path / "none.so")
    assert kernels() is not None
    assert compiled.missing_reason() is None
    with without_kernels():
        assert "switched off" in compiled.missing_reason()
