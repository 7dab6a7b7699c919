"""Every reader of the package, a module for each family."""

from __future__ import annotations

from ..reader import Reader
from . import batches, graphs, models, predictions, raw, shards

READERS: dict[str, Reader] = {
    reader.name: reader
    for family in (graphs, raw, predictions, models, shards, batches)
    for reader in family.READERS
}
