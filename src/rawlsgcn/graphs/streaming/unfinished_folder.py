"""The folder of unfinished shards: what a killed process had done, for the same command again."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..._core import __version__
from ..._core.atomic_files import atomic_file, cannot_write, only_writer, resolved, sync_tree

_KEY = "command.json"


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
        self._write(f"{stage}.json", noted)

    def forget(self, *stages: str) -> None:
        """Count stages as not begun."""
        for stage in stages:
            (self.path / f"{stage}.json").unlink(missing_ok=True)

    def begin(self, key: Mapping[str, Any]) -> None:
        """Remove what another command left here."""
        wanted = json.loads(json.dumps({"version": __version__, **key}))
        if self.finished(_KEY.removesuffix(".json")) == wanted:
            return
        for entry in self.path.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
        self._write(_KEY, wanted)

    def folder(self, name: str, *, empty: bool = False) -> Path:
        """Return a folder in this one; what an interrupted stage left in it can be removed."""
        path = self.path / name
        if empty:
            shutil.rmtree(path, ignore_errors=True)
        path.mkdir(exist_ok=True)
        return path

    def _write(self, name: str, content: Any) -> None:
        with atomic_file(self.path / name) as temporary:
            temporary.write_text(json.dumps(content), encoding="utf-8")


@contextmanager
def unfinished_folder(out: str | Path, key: Mapping[str, Any]) -> Iterator[UnfinishedFolder]:
    """Open the hidden folder beside ``out`` in which its content is made; removed at the end.

    A killed or interrupted process leaves it, and the next one with the same ``key`` goes on from
    the last finished stage; one with another key begins again. An error removes it.

    Args:
        out: The folder that is made.
        key: All that the content depends on.
    """
    out = Path(out)
    final = resolved(out, into=True)
    # Beside a folder without the right to write, its content is made in it.
    home = final if final.is_dir() and not os.access(final.parent, os.W_OK) else final.parent
    path = home / f".{final.name}-unfinished"
    try:
        path.mkdir(parents=True, exist_ok=True)
        with only_writer(path):
            folder = UnfinishedFolder(path)
            folder.begin(key)
            yield folder
    except OSError as error:
        shutil.rmtree(path, ignore_errors=True)
        raise cannot_write(out, error, into=True) from error
    except Exception:
        shutil.rmtree(path, ignore_errors=True)
        raise
    with suppress(OSError):
        shutil.rmtree(path)
