"""Column blocks of Π F on disk: what is finished stays, and the files of rows are made of them.

A smoothing works in a hidden folder beside the shards, ``.smoothed-KEY``, with ``smoothed.json`` as
it will be. A finished block of columns is one file for each shard, named after the shard and the
columns. A run that is started again keeps them, whatever its limit of memory and its number of
processes. When all columns are there, each shard's blocks are put side by side into one file of
rows, and the folder of these files gets its final name.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._core.atomic_files import atomic_file, own_folder, remove, sync
from ..._core.errors import RawlsError
from ..._core.row_files import read_rows, write_rows
from ...graphs.shards.shards import Shards
from .smoothed_files import MANIFEST, SmoothedForm, map_rows

_BLOCK_NAME = re.compile(r"(\d{5})-(\d{8})-(\d{8})\.npy")
#: Numbers of a part of rows that is read, joined and written: some megabytes.
PART_SIZE = 1 << 20


class ColumnBlocks:
    """The hidden folder of one smoothing of so many features of shards."""

    def __init__(self, shards: Shards, form: SmoothedForm, features: int) -> None:
        self.shards, self.form, self.features = shards, form, features
        self.folder = shards.folder / f".{form.name}"
        self._rows = self.folder / "rows"
        self._manifest = json.dumps(form.manifest(shards, features), indent=1) + "\n"

    @contextmanager
    def only_here(self, waiting: Callable[[], None]) -> Iterator[None]:
        """Make the folder, and keep other runs out of it; without a finished block it goes again.

        ``waiting`` is called while another process has the folder.
        """
        with own_folder(self.folder, waiting):
            try:
                self.prepare()
                yield
            except BaseException:
                if next(self._blocks(), None) is None:
                    remove(self.folder)
                raise

    def prepare(self) -> None:
        """Fill the folder, without what an earlier run left of another graph or damaged."""
        path = self.folder / MANIFEST
        try:
            current = path.read_text(encoding="utf-8") == self._manifest
        except (OSError, UnicodeDecodeError):
            current = False
        if not current:
            # Not the folder itself, which is locked.
            for old in self.folder.iterdir() if self.folder.is_dir() else ():
                remove(old)
            self._rows.mkdir(parents=True)
            with atomic_file(path) as temporary:
                temporary.write_text(self._manifest, encoding="utf-8")
        for shard, first, last, block in list(self._blocks()):
            try:
                self._map(shard, first, last, block)
            except RawlsError:
                remove(block)  # which is then done again

    def local_folder(self, rank: int) -> Path:
        """A new folder for files of one process, which nobody reads again after it."""
        folder = self.folder / f"process-{rank:05d}"
        remove(folder)
        folder.mkdir()
        return folder

    def finished(self) -> NDArray[np.bool_]:
        """Which columns are there for every shard."""
        there = np.zeros((len(self.shards), self.features), dtype=bool)
        for shard, first, last, _ in self._blocks():
            there[shard, first:last] = True
        return np.asarray(there.all(0))

    def write(self, shard: int, first: int, last: int, parts: Iterable[NDArray[Any]]) -> None:
        """Keep the columns ``first`` to ``last`` of a shard's rows, which come in parts."""
        path = self.folder / f"{shard:05d}-{first:08d}-{last:08d}.npy"
        if (first, last) == (0, self.features):
            path = self._row_file(shard)  # nothing is to be joined
        write_rows(path, (self._height(shard), last - first), self.form.dtype, parts)

    def join(self, shard: int) -> None:
        """Put the blocks of a shard side by side into its file of rows."""
        if not self._row_file(shard).exists():
            self.write(shard, 0, self.features, self._joined(shard))

    def publish(self) -> None:
        """Give the finished files of rows their final name, and remove everything else."""
        with atomic_file(self._rows / MANIFEST) as temporary:
            temporary.write_text(self._manifest, encoding="utf-8")
        final = self.shards.folder / self.form.name
        remove(final)  # of another graph, or damaged
        os.rename(self._rows, final)
        sync(self.shards.folder)
        remove(self.folder)

    def _height(self, shard: int) -> int:
        return self.shards.cuts[shard + 1] - self.shards.cuts[shard]

    def _row_file(self, shard: int) -> Path:
        return self._rows / f"{shard:05d}.npy"

    def _map(self, shard: int, first: int, last: int, path: Path) -> np.memmap[Any, Any]:
        return map_rows(path, (self._height(shard), last - first), self.form.dtype)

    def _blocks(self) -> Iterator[tuple[int, int, int, Path]]:
        """The shard, the columns and the path of every file, also of those of whole rows."""
        for path in sorted(self.folder.glob("*.npy")):
            name = _BLOCK_NAME.fullmatch(path.name)
            if name:
                shard, first, last = map(int, name.groups())
                if shard < len(self.shards) and first < last <= self.features:
                    yield shard, first, last, path
        for shard in range(len(self.shards)):
            if self._row_file(shard).exists():
                yield shard, 0, self.features, self._row_file(shard)

    def _joined(self, shard: int) -> Iterator[NDArray[Any]]:
        blocks = [
            (slice(*block[1:3]), self._map(*block)) for block in self._blocks() if block[0] == shard
        ]
        height, dtype = self._height(shard), self.form.dtype
        size = max(1, PART_SIZE // self.features)
        out = np.empty((min(size, height), self.features), dtype=dtype)
        for row in range(0, height, size):
            count = min(size, height - row)
            for columns, mapped in blocks:
                part = np.empty((count, mapped.shape[1]), dtype=dtype)
                out[:count, columns] = read_rows(mapped, row, part)
            yield out[:count]
