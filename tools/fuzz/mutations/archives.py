"""Zip archives of arrays, rebuilt with right checksums so that the damage inside is reached."""

from __future__ import annotations

import io
import zipfile
from random import Random

import numpy as np

from . import arrays, plain

_NAMES = (
    "x", "y", "labels", "edge_index", "edge_weight", "num_nodes", "node_ids", "features", "format",
    "adj_data", "adj_indices", "adj_indptr", "adj_shape", "attr_data", "attr_indices",
    "attr_indptr", "attr_shape", "data", "indices", "indptr", "shape", "row", "col", "offsets",
    "_is_array", "train_mask", "val_mask", "test_mask", "node", "ids", "predicted",
    "probabilities", "logits",
    "scores", "",
)  # fmt: skip


def unpack(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def pack(members: list[tuple[str, bytes]], deflated: bool = False) -> bytes:
    file = io.BytesIO()
    method = zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return file.getvalue()


def mutate(random: Random, content: bytes) -> tuple[bytes, str]:
    """Damage a member of an .npz file, or which members there are."""
    members = unpack(content)
    names = sorted(members)
    name = random.choice(names)
    kind = random.random()
    pairs = members
    extra: list[tuple[str, bytes]] = []
    if kind < 0.5:
        array, label = arrays.odd(random, _array(members[name]))
        pairs[name], label = arrays.to_npy(array), f"{name[:-4]}-{label}"
    elif kind < 0.7:
        pairs[name], label = arrays.mutate_file(random, members[name])
        label = f"{name[:-4]}-{label}"
    elif kind < 0.75:
        pairs[name], label = plain.mutate(random, members[name], [members[random.choice(names)]])
        label = f"{name[:-4]}-bytes-{label}"
    elif kind < 0.8:
        del pairs[name]
        label = f"{name[:-4]}-gone"
    elif kind < 0.85:
        other = random.choice(_NAMES) + random.choice((".npy", ".npy", ""))
        extra, label = [(other, members[name])], "renamed"
        if random.random() < 0.5:
            del pairs[name]
    elif kind < 0.9:
        other = random.choice(names)
        pairs[name], pairs[other] = members[other], members[name]
        label = "swapped"
    elif kind < 0.93:
        extra, label = [(name, members[random.choice(names)])], "twice"
    elif kind < 0.96:
        big = random.choice((np.zeros(40_000_000, np.uint8), np.zeros((5_000, 5_000), np.int8)))
        pairs[name], label = arrays.to_npy(big), f"{name[:-4]}-bomb"
        if random.random() < 0.9:  # slow to make, so rarely
            return content[: len(content) // 2], "cut"
        return pack([*pairs.items()], deflated=True), label
    else:
        changed, label = _directory(random, content)
        return changed, f"zip-{label}"
    return pack([*pairs.items(), *extra], deflated=random.random() < 0.2), label


def _array(content: bytes) -> arrays.Array:
    return np.asarray(np.load(io.BytesIO(content), allow_pickle=False))


def _directory(random: Random, content: bytes) -> tuple[bytes, str]:
    """Change a field of the local headers, the central directory or the end record."""
    data = bytearray(content)
    marks = [b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06"]
    mark = random.choice(marks)
    places = [at for at in range(len(data) - 3) if data[at : at + 4] == mark]
    at = random.choice(places) + 4 + random.randrange(30)
    value = random.choice((0, 1, 8, 9, 12, 14, 0x7F, 0x80, 0xFF, random.randrange(256)))
    width = random.choice((1, 1, 2, 4))
    data[at : at + width] = bytes([value]) * width
    return bytes(data), "directory"
