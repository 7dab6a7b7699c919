"""The commands that are measured, one after another, and what each leaves on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

DEGREE, FEATURES, EPOCHS = 10, 100, 5
PHASES = ("shard", "balance", "smooth", "train", "predict", "audit")
#: Bytes that are hashed at a time.
_BLOCK = 1 << 22


@dataclass(frozen=True)
class Folders:
    """Where the commands of one size write."""

    root: Path

    @property
    def shards(self) -> Path:
        return self.root / "shards"

    @property
    def model(self) -> Path:
        return self.root / "model"

    @property
    def predictions(self) -> Path:
        return self.root / "predictions.parquet"

    @property
    def page(self) -> Path:
        return self.root / "report.html"


def phases(nodes: int, folders: Folders, memory: str, device: str, count: int) -> dict[str, str]:
    """Return the command line of every phase, without the program's name.

    Args:
        nodes: The number of nodes of the synthetic graph; it has ten times as many arcs.
        folders: Where to write.
        memory: The limit of memory.
        device: The device of the phases that compute.
        count: The number of shards.

    Returns:
        The phases in their order.
    """
    graph = f"--dataset synthetic --nodes {nodes} --average-degree {DEGREE}"
    graph += f" --num-features {FEATURES} --split 0.6,0.2,0.2 --count {count}"
    shards, limit, where = f"--shards {folders.shards}", f"--memory {memory}", f"--device {device}"
    learn = f"--method smoothed-mlp --engine smoothed --epochs {EPOCHS}"
    predicted = f"--predictions {folders.predictions} --out {folders.page}"
    return {
        "shard": f"shard {graph} --out {folders.shards} {limit}",
        "balance": f"balance {shards} {where}",
        "smooth": f"smooth {shards} {limit} {where}",
        "train": f"train {shards} {learn} {limit} {where} --out {folders.model}",
        "predict": f"predict {shards} --model {folders.model} {where} --out {folders.predictions}",
        "audit": f"audit {shards} {predicted}",
    }


def written(phase: str, folders: Folders) -> list[Path]:
    """Return the files that hold the answer of a phase, in order."""
    shards, model = folders.shards, folders.model
    found: Iterable[Path] = {
        "shard": (p for p in shards.glob("*.npy") if not p.name.endswith("-scale.npy")),
        "balance": shards.glob("*-scale.npy"),
        "smooth": shards.glob("smoothed-*/*.npy"),
        "train": model.glob("*.safetensors"),
        "predict": [folders.predictions],
        "audit": [],  # its page names the time
    }[phase]
    return sorted(found)


def digest(files: Iterable[Path]) -> str:
    """Return a hash of the names and contents of files."""
    hashed = hashlib.blake2b(digest_size=16)
    for path in files:
        hashed.update(path.name.encode())
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                hashed.update(block)
    return hashed.hexdigest()
