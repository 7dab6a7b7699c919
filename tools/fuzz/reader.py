"""What is fuzzed: a reader with valid inputs, from which damaged ones are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from random import Random

from .mutations import mutate

Files = dict[str, bytes]
"""The files of one input, by name; all of them lie in one folder."""


@dataclass(frozen=True)
class Case:
    """One damaged input. ``how`` says which mutations made it."""

    reader: str
    index: int
    files: Files
    how: str


@dataclass
class Reader:
    """An entry point of the package that reads files.

    Args:
        name: What ``--readers`` calls it.
        make_seeds: Returns valid inputs, each a mapping from file names to contents.
        read: Reads the files in a folder; may only raise ``RawlsError``.
        damaged: The names (or suffixes) of the files to mutate; by default all.
        known_as: What an error message may say instead of a file's name.
    """

    name: str
    make_seeds: Callable[[], list[Files]]
    read: Callable[[Path], object]
    damaged: tuple[str, ...] = ("",)
    known_as: tuple[str, ...] = field(default=())

    @cached_property
    def seeds(self) -> list[Files]:
        return self.make_seeds()

    def case(self, seed: int, index: int) -> Case:
        """Case number ``index`` of a run with ``seed``, the same each time."""
        random = Random(f"{seed}/{self.name}/{index}")
        files = dict(random.choice(self.seeds))
        targets = [name for name in sorted(files) if name.endswith(self.damaged)]
        how: list[str] = []
        for _ in range(random.choices((1, 2, 3), (0.75, 0.2, 0.05))[0]):
            target = random.choice(targets)
            others = [files[name] for name in targets if name != target]
            again = any(each.startswith(f"{target}:") for each in how)
            files[target], label = mutate(random, target, files[target], others, again)
            how.append(f"{target}:{label}")
        return Case(self.name, index, files, " ".join(how))


def names_file(message: str, files: Mapping[str, bytes], folder: Path, reader: Reader) -> bool:
    """Whether an error message says which input it is about."""
    return any(name in message for name in (*files, folder.name, *reader.known_as))
