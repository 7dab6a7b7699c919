"""Shards: the whole graph in even parts, mapped from disk, and refused when they do not fit."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import graphs
from torch_geometric.data import Data

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.graphs import synthetic
from rawlsgcn.graphs.shards import Shards, write_shards
from rawlsgcn.training.sampled.sources import Source


@settings(max_examples=15, deadline=None)
@given(graphs(), st.data())
def test_the_shards_are_the_graph(graph: Data, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, min(4, int(graph.num_nodes))))
    with tempfile.TemporaryDirectory() as folder:
        shards = write_shards(graph, count, folder)
        parts = [shards.open(place) for place in range(len(shards))]
        rows = np.concatenate(
            [np.repeat(np.arange(part.first, part.last), np.diff(part.row_start)) for part in parts]
        )
        columns = np.concatenate([part.column for part in parts])
        assert torch.equal(torch.from_numpy(np.stack([rows, columns])), graph.edge_index)
        x = graph.x.to_dense() if graph.x.layout != torch.strided else graph.x
        np.testing.assert_array_equal(np.concatenate([p.x for p in parts]), x.float().numpy())
        assert (np.concatenate([p.y for p in parts]) == graph.y.numpy()).all()
        split = np.concatenate([p.split for p in parts])
        assert ((split == 1) == graph.train_mask.numpy()).all()
        if graph.get("edge_weight") is not None:
            weight = np.concatenate([p.weight for p in parts])
            assert (weight == graph.edge_weight.numpy()).all()
        assert all(part.last > part.first for part in parts)
        del parts


def test_parts_are_even_and_mapped_and_hold_no_pickle(tmp_path: Path) -> None:
    graph = synthetic(2000)
    shards = write_shards(graph, 4, tmp_path)
    sizes = [shards.open(place).graph_bytes for place in range(4)]
    assert max(sizes) < 1.15 * min(sizes)
    assert isinstance(shards.open(0).column, np.memmap)
    for path in tmp_path.glob("*.npy"):
        np.load(path, allow_pickle=False)


def test_shards_written_again_forget_the_old_scaling(tmp_path: Path) -> None:
    graph = synthetic(300)
    shards = write_shards(graph, 2, tmp_path)
    shards.write_scale(1, np.ones(shards.cuts[2] - shards.cuts[1]))
    assert shards.open(1).scale is not None
    assert write_shards(graph, 2, tmp_path).open(1).scale is None


def test_no_kill_leaves_new_shards_beside_an_old_scaling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the old shards is left to be removed once the new ones are there."""
    graph, folder = synthetic(300), tmp_path / "shards"
    shards = write_shards(graph, 1, folder)
    shards.write_scale(0, np.ones(shards.num_nodes))

    def killed(path: Path, missing_ok: bool = False) -> None:
        raise KeyboardInterrupt

    def rewrite() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Path, "unlink", killed)
            write_shards(graph, 1, folder)

    with contextlib.suppress(KeyboardInterrupt):
        rewrite()
    assert Shards(folder).open(0).scale is None


@pytest.mark.parametrize(
    "name", ["abcde-notes.npy", "12345-notes.npy", "00000-y.npy", "hello.json", "notes.txt"]
)
def test_a_folder_with_files_of_others_is_refused_and_left_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(RawlsError, match=f"holds '{name}', which is no part"):
        write_shards(synthetic(300), 2, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_fewer_shards_replace_more(tmp_path: Path) -> None:
    write_shards(synthetic(300), 5, tmp_path)
    write_shards(synthetic(300), 2, tmp_path)
    assert {path.name[:5] for path in tmp_path.iterdir()} == {"00000", "00001", "shard"}


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    graph = synthetic(300)
    shards = write_shards(graph, 2, tmp_path)
    with pytest.raises(RawlsError, match="holds no whole set of shards"):
        Shards(tmp_path / "elsewhere")
    with pytest.raises(RawlsError, match=r"cannot be cut into 301 shards, .* --count of 1 to 300"):
        write_shards(graph, 301, tmp_path)

    column = tmp_path / "00001-column.npy"
    content = column.read_bytes()
    column.write_bytes(content[:-40])
    with pytest.raises(RawlsError, match="damaged or cut short"):
        shards.open(1)
    column.unlink()
    with pytest.raises(RawlsError, match=r"00001-column\.npy is missing"):
        shards.open(1)
    column.write_bytes(content)

    (tmp_path / "00001.json").write_text(json.dumps({"graph": "another"}))
    with pytest.raises(RawlsError, match=r"shard 1 .* is of another graph"):
        shards.open(1)
    (tmp_path / "00001.json").unlink()
    with pytest.raises(RawlsError, match=r"cannot read 00001\.json"):
        shards.open(1)
    for text in ("{", "[]", "{}", '{"format": 7}'):
        (tmp_path / "shards.json").write_text(text)
        with pytest.raises(RawlsError, match="again"):
            Shards(tmp_path)


def swapped(array: np.ndarray, a: int, b: int) -> np.ndarray:
    array[[a, b]] = array[[b, a]]
    return array


def with_entry(array: np.ndarray, value: float, place: int = 3) -> np.ndarray:
    array[place] = value
    return array


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two shards of a weighted graph, balanced."""
    folder = tmp_path_factory.mktemp("shards")
    graph = synthetic(300)
    graph.edge_weight = torch.ones(graph.edge_index.shape[1])
    shards = write_shards(graph, 2, folder)
    for place in range(2):
        shards.write_scale(place, np.ones(shards.cuts[place + 1] - shards.cuts[place]))
    return folder


@pytest.mark.parametrize(
    ("what", "change", "said"),
    [
        ("row_start", lambda a: swapped(a, 5, 9), "a row that ends before it begins"),
        ("row_start", lambda a: with_entry(a, 2**62), "a row that ends before it begins"),
        ("row_start", lambda a: with_entry(a, -(2**62), 0), "a row that ends before it begins"),
        ("row_start", lambda a: with_entry(a, 2**40, -1), "does not run from 0 to the"),
        ("row_start", lambda a: a[:-1], "entries, not"),
        ("row_start", lambda a: a.astype(np.int32), "holds int32, not int64"),
        ("row_start", lambda a: a.astype(">i8"), "holds >i8, not int64"),
        ("row_start", lambda a: a[:, None], "damaged or cut short"),
        ("column", lambda a: with_entry(a, -1), "names nodes outside 0 to 299"),
        ("column", lambda a: with_entry(a, 300), "names nodes outside 0 to 299"),
        ("column", lambda a: a.astype(np.float32), "holds float32, not int32 or int64"),
        ("column", lambda a: np.array(3, np.int32), "damaged or cut short"),
        ("column", lambda a: a[:-1], "does not run from 0 to the|entries, not"),
        ("weight", lambda a: a[:-1], "entries, not"),
        ("weight", lambda a: with_entry(a, np.nan), "negative, NaN or infinite"),
        ("weight", lambda a: with_entry(a, -1.0), "negative, NaN or infinite"),
        ("x", lambda a: a[:-1], "entries, not"),
        ("x", lambda a: a[:, :-1], "do not fit together"),
        ("x", lambda a: a.astype("S4"), "not float32"),
        ("y", lambda a: with_entry(a, 10**6), "labels outside -1 to"),
        ("y", lambda a: with_entry(a, -2), "labels outside -1 to"),
        ("y", lambda a: np.zeros_like(a) - 1, "names nodes without a label"),
        ("split", lambda a: with_entry(a, 9), "numbers outside 0 to 3"),
        ("scale", lambda a: with_entry(a, np.nan), "not positive"),
        ("scale", lambda a: with_entry(a, 0.0), "not positive"),
    ],
)
def test_no_damaged_array_is_followed(
    whole: Path,
    tmp_path: Path,
    what: str,
    change: Callable[[np.ndarray], np.ndarray],
    said: str,
) -> None:
    """Compiled products, torch and numpy would read outside, or count a negative node from the
    end of the graph without a word."""
    folder = tmp_path / "shards"
    shutil.copytree(whole, folder)
    path = folder / f"00001-{what}.npy"
    np.save(path, change(np.load(path)))
    with pytest.raises(RawlsError, match=said) as caught:
        Source.of_shards(Shards(folder))
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bytes_behind_an_array_are_no_part_of_it(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "shards"
    shutil.copytree(whole, folder)
    for path in folder.glob("*.npy"):
        path.write_bytes(path.read_bytes() + b"\xff" * 100)
    Source.of_shards(Shards(folder))


def test_files_that_are_no_arrays_are_refused(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "shards"
    shutil.copytree(whole, folder)
    column = folder / "00000-column.npy"
    content = column.read_bytes()
    damages = [
        b"",
        content[:64],
        content.replace(b"'<i4'", b"'|O' "),
        content.replace(b"(", b"(" * 9),
        content.replace(b"'shape': (", b"'shape':(9"),
        b"\x93NUMPY\x03\x00\xff\xff\xff\xff" + content[12:],
    ]
    for damage in damages:
        column.write_bytes(damage)
        with pytest.raises(RawlsError, match=r"00000-column\.npy is damaged"):
            Shards(folder).open(0)
    with column.open("wb") as file:
        np.savez(file, column=np.arange(3))
    with pytest.raises(RawlsError, match=r"00000-column\.npy is damaged"):
        Shards(folder).open(0)


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        *(("nodes", value) for value in (301, -1, 3e2, "300", None, True, 10**30)),
        *(("arcs", value) for value in (7, 1e300, [])),
        *(("classes", value) for value in (99, 10**12, "two", None)),
        *(("negative_features", value) for value in ("no", 0, None)),
        *(("cuts", value) for value in ([0, 300, 300], [0, "9", 300], {}, [0], [0, 10**20], "0")),
        *(("graph", value) for value in (5, None, "another")),
        ("name", 3),
        ("name", None),
    ],
)
def test_a_damaged_manifest_is_refused(whole: Path, tmp_path: Path, entry: str, value: Any) -> None:
    folder = tmp_path / "shards"
    shutil.copytree(whole, folder)
    about = json.loads((folder / "shards.json").read_text())
    (folder / "shards.json").write_text(json.dumps(about | {entry: value}))
    with pytest.raises(RawlsError, match="write the shards again") as caught:
        Source.of_shards(Shards(folder))
    assert str(folder) in str(caught.value)


def test_a_manifest_of_endless_depth_or_of_no_text_is_refused(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "shards"
    shutil.copytree(whole, folder)
    for content in (b"[" * 100_000, b"\xff\xfe{}", b'{"format": ' + b"9" * 5000 + b"}"):
        (folder / "shards.json").write_bytes(content)
        with pytest.raises(RawlsError, match=r"shards\.json cannot be read"):
            Shards(folder)


def test_node_ids_and_class_names_are_kept(tmp_path: Path) -> None:
    graph = synthetic(300)
    plain = write_shards(graph, 2, tmp_path / "plain")
    assert plain.class_names is None
    assert plain.open(1).node_ids(200, 203) == [200, 201, 202]
    graph.class_names = [f"class {i}" for i in range(6)]
    for ids in (np.arange(300) * 7, [f"é{i}" * (i % 3) for i in range(300)]):
        graph.node_ids = ids
        shards = write_shards(graph, 2, tmp_path / "named")
        assert shards.class_names == graph.class_names
        part = shards.open(1)
        assert part.node_ids(part.first + 2, part.last) == list(ids[part.first + 2 :])
    damage = np.load(tmp_path / "named" / "00001-id_start.npy")
    damage[5] = 10**9
    np.save(tmp_path / "named" / "00001-id_start.npy", damage)
    with pytest.raises(
        RawlsError, match=r"id_start\.npy is damaged, it has a row that ends before"
    ):
        Shards(tmp_path / "named").open(1)
    (tmp_path / "named" / "00001-id_start.npy").unlink()
    with pytest.raises(RawlsError, match=r"00001-id_start\.npy is missing"):
        Shards(tmp_path / "named").open(1)
    about = json.loads((tmp_path / "named" / "shards.json").read_text())
    for names in (["a"], "abcdef", [1] * 6):
        (tmp_path / "named" / "shards.json").write_text(json.dumps(about | {"class_names": names}))
        with pytest.raises(RawlsError, match="class_names must be a list of 6 or more names"):
            Shards(tmp_path / "named")


FULL_DISK = """
import sys
import numpy as np
from pathlib import Path
from rawlsgcn._core.errors import RawlsError
from rawlsgcn.graphs import synthetic
from rawlsgcn.graphs.shards import write_shards
from rawlsgcn.graphs.shards.feature_files import FeatureFiles

folder = Path(sys.argv[1])
try:
    if sys.argv[2] == "at once":
        write_shards(synthetic(2000, features=500), 2, folder / "shards")
    else:
        files = FeatureFiles([0, 2000], 500, lambda shard: folder / "x.npy")
        files.create()
        files.add(np.arange(2000)[::-1], np.ones((2000, 500), np.float32))
except (RawlsError, OSError) as error:
    (folder / "x.npy").unlink(missing_ok=True)
    print(error, [path.name for path in folder.iterdir()])
"""


@pytest.mark.parametrize("way", ["at once", "in batches"])
def test_a_full_disk_is_an_error_and_no_crash(way: str, tmp_path: Path) -> None:
    """Features are not written through a mapping, or only where there is room for them."""
    mounted = 'mount -t tmpfs -o size=2m tmpfs "$1" || exit 77; shift; exec "$@"'
    command = ["unshare", "-rm", "sh", "-c", mounted, "sh", str(tmp_path)]
    command += [sys.executable, "-c", FULL_DISK, str(tmp_path), way]
    if shutil.which("unshare") is None:
        pytest.skip("needs a disk of its own")
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode in (1, 77) and "Traceback" not in found.stderr:
        pytest.skip(f"needs a disk of its own: {found.stderr}")
    assert found.returncode == 0, found
    assert re.search(r"(No space left on device|the disk is full) \[\]$", found.stdout)


@pytest.mark.parametrize("name", ["y", "split", "x", "weight", "node_id"])
def test_a_file_that_one_shard_lacks_is_missing(name: str, tmp_path: Path) -> None:
    """Its nodes would have no labels, or other ids than theirs."""
    graph = synthetic(300)
    graph.edge_weight = torch.full((graph.num_edges,), 2.0)
    graph.node_ids = np.arange(300) + 7
    shards = write_shards(graph, 3, tmp_path)
    (tmp_path / f"00001-{name}.npy").unlink()
    with pytest.raises(RawlsError, match=f"00001-{name}.npy is missing: copy it there"):
        Shards(tmp_path).open(1)
    for shard in (0, 2):
        (tmp_path / f"{shard:05d}-{name}.npy").unlink()
    if name == "y":  # the manifest says that there are labels
        with pytest.raises(RawlsError, match=r"00001-y\.npy is missing"):
            Shards(tmp_path).open(1)
    else:
        assert getattr(Shards(tmp_path).open(1), name) is None
    assert shards.classes
