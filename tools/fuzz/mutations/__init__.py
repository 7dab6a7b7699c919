"""Ways to damage a file that keep enough of its structure for the damage to be reached."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from random import Random

Mutation = Callable[[Random, bytes], tuple[bytes, str]]
"""Returns the new content and a word for what was done."""


def mutate(
    random: Random, name: str, content: bytes, others: list[bytes], again: bool
) -> tuple[bytes, str]:
    """Damage the file ``name``: mostly by its format, sometimes its plain bytes.

    What is damaged ``again`` is not taken apart by libraries that may crash or run code over it.
    """
    from . import plain

    structural = _for(name, again)
    if structural is None or random.random() < 0.2:
        return plain.mutate(random, content, others)
    try:
        return structural(random, content)
    except Exception:  # damaged too much already to be taken apart
        return plain.mutate(random, content, others)


def _for(name: str, again: bool) -> Mutation | None:
    from . import archives, arrays, documents, parquet, pickles, tables, tensors

    if name.startswith("ind.") and not name.endswith(".index"):
        return pickles.change_opcode if again else pickles.mutate
    suffix = PurePath(name).suffix
    if again and suffix in (".parquet", ".pt"):
        return None
    return {
        ".npz": archives.mutate,
        ".npy": arrays.mutate_file,
        ".csv": tables.mutate,
        ".tsv": tables.mutate,
        ".txt": tables.mutate,
        ".edges": tables.mutate,
        ".edgelist": tables.mutate,
        ".index": tables.mutate,
        ".parquet": parquet.mutate,
        ".pt": tensors.mutate,
        ".json": documents.mutate,
        ".safetensors": documents.mutate_safetensors,
    }.get(suffix)
