"""A hidden folder in which a large folder is made in stages, so that a killed run can go on."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..._core import __version__
from ..._core.atomic_files import atomic_file, cannot_write, own_folder, resolved, sync_tree


class UnfinishedFolder:
    """A folder with stages, each finished or not begun."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def finished(self, stage: str) -> dict[str, Any] | None:
        """Return what was noted at the end of a stage; None if it is not finished."""
        try:
            noted = json.loads((self.path / f"{stage}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return noted if isinstance(noted, dict) else None

    def finish(self, stage: str, **noted: Any) -> None:
        """Note that a stage is finished, when its files are on the disk."""
        sync_tree(self.path)
        with atomic_file(self.path / f"{stage}.json") as temporary:
            temporary.write_text(json.dumps(noted), encoding="utf-8")

    def forget(self, *stages: str) -> None:
        """Count stages as not begun."""
        for stage in stages:
            (self.path / f"{stage}.json").unlink(missing_ok=True)

    def begin(self, key: Mapping[str, Any]) -> None:
        """Remove what another command left here."""
        wanted = json.loads(json.dumps({"version": __version__, **key}))
        if self.finished("command") == wanted:
            return
        for entry in self.path.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
        self.finish("command", **wanted)

    def folder(self, name: str, *, empty: bool = False) -> Path:
        """Return a folder in this one; what an interrupted stage left in it can be removed."""
        path = self.path / name
        if empty:
            shutil.rmtree(path, ignore_errors=True)
        path.mkdir(exist_ok=True)
        return path


@contextmanager
def unfinished_folder(
    out: str | Path, key: Mapping[str, Any], waiting: Callable[[], None]
) -> Iterator[UnfinishedFolder]:
    """Open the hidden folder beside ``out`` in which its content is made; removed at the end.

    A killed or interrupted process leaves it, and the next one with the same ``key`` goes on from
    the last finished stage; one with another key begins again. An error removes it.

    Args:
        out: The folder that is made.
        key: All that the content depends on, and that JSON can hold.
        waiting: Called while another process has the folder.
    """
    out = Path(out)
    final = resolved(out, into=True)
    # Beside a folder without the right to write, its content is made in it.
    home = final if final.is_dir() and not os.access(final.parent, os.W_OK) else final.parent
    path = home / f".{final.name}-unfinished"
    try:
        with own_folder(path, waiting):
            folder = UnfinishedFolder(path)
            try:
                folder.begin(key)
                yield folder
            except Exception:
                shutil.rmtree(path, ignore_errors=True)
                raise
            shutil.rmtree(path, ignore_errors=True)
    except OSError as error:
        raise cannot_write(out, error, into=True) from error
