"""Files of torch: odd tensors, and archives whose pickle or storages were changed."""

from __future__ import annotations

import io
import warnings
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor

from . import arrays, plain
from .archives import pack, unpack
from .pickles import change_opcode
from .values import JSON


def mutate(random: Random, content: bytes) -> tuple[bytes, str]:
    """Damage a .pt file."""
    if content[:2] != b"PK":
        if random.random() < 0.7:
            return plain.mutate(random, content, [])
        value, label = _odd_value(random, content)
        return save(value, legacy=True), f"legacy-{label}"
    if random.random() < 0.5:
        value, label = _odd_value(random, content)
        return save(value, legacy=random.random() < 0.1), label
    members = unpack(content)
    pickles = [name for name in members if name.endswith("data.pkl")]
    storages = [name for name in members if "/data/" in name]
    kind = random.random()
    if kind < 0.65 or not storages:
        members[pickles[0]], label = change_opcode(random, members[pickles[0]])
    elif kind < 0.9:
        name = random.choice(storages)
        members[name], label = plain.mutate(random, members[name], [])
        label = f"storage-{label}"
    else:
        name = random.choice(sorted(members))
        label = f"without-{name.partition('/')[2]}"
        del members[name]
    return pack([*members.items()]), f"pt-{label}"


def save(value: Any, legacy: bool = False) -> bytes:
    file = io.BytesIO()
    torch.save(value, file, _use_new_zipfile_serialization=not legacy)
    return file.getvalue()


def _odd_value(random: Random, content: bytes) -> tuple[Any, str]:
    # A seed of our own: what is damaged already does not come here.
    value = torch.load(io.BytesIO(content), weights_only=False)
    target = value[0] if isinstance(value, tuple) else value
    keys = sorted(target.keys()) if isinstance(target, dict) else sorted(target.to_dict())
    key = random.choice(keys)
    if random.random() < 0.15:
        key = random.choice(
            ("edge_weight", "adj_t", "num_nodes", "node_ids", "train_mask", "notes", "name")
        )
    kind = random.random()
    if kind < 0.1:
        return random.choice((value, [value], (value,), {1: value}, {"a": value}, *JSON)), "wrapped"
    old = target.get(key)
    if kind < 0.15:
        target[key] = None
        return value, f"{key}-none"
    new, label = odd_tensor(random, old if isinstance(old, Tensor) else torch.arange(6.0))
    target[key] = new
    return value, f"{key}-{label}"


def odd_tensor(random: Random, tensor: Tensor) -> tuple[Any, str]:
    """Something that may stand where a plain tensor is expected."""
    dense = tensor.to_dense() if tensor.layout != torch.strided else tensor
    flat = dense.reshape(-1).float()
    size = max(flat.numel(), 1)

    def coo() -> Tensor:
        n = random.choice((3, 6, 6, 10**6, 10**12))
        high = random.choice((3, 6, 10, 10**9))
        places = torch.randint(-1, high, (2, 4), generator=torch.Generator().manual_seed(size))
        return torch.sparse_coo_tensor(places, torch.ones(4), (n, n), check_invariants=False)

    def compressed(layout: Any) -> Tensor:
        starts = torch.tensor(
            random.choice(([0, 1, 2, 3, 3, 3, 4], [0, 9, 1, 3, 3, 3, 4], [0] * 7))
        )
        places = torch.tensor([random.choice((0, 1, 5, 6, -1, 10**9)) for _ in range(4)])
        return torch.sparse_compressed_tensor(
            starts, places, torch.ones(4), (6, 6), layout=layout, check_invariants=False
        )

    makers: dict[str, Any] = {
        "sparse": lambda: dense.to_sparse(),
        "coo": coo,
        "csr": lambda: compressed(torch.sparse_csr),
        "csc": lambda: compressed(torch.sparse_csc),
        "bsr": lambda: dense.reshape(-1, dense.shape[-1])[:2, :2].to_sparse_bsr((1, 1)),
        "quantized": lambda: torch.quantize_per_tensor(flat, 0.1, 0, torch.qint8),
        "channels": lambda: torch.quantize_per_channel(
            flat.reshape(1, -1), torch.ones(1), torch.zeros(1), 0, torch.quint8
        ),
        "scalar": lambda: torch.tensor(random.choice((0, 3.5, True, -1))),
        "empty": lambda: torch.empty(random.choice(((0,), (2, 0), (0, 3)))),
        "complex": lambda: flat.to(torch.complex64),
        "conjugate": lambda: flat.to(torch.complex64).conj(),
        "negative": lambda: torch.ones(3, dtype=torch.complex64).conj().imag,
        "meta": lambda: dense.to("meta"),
        "half": lambda: dense.to(torch.float16),
        "bfloat16": lambda: dense.to(torch.bfloat16),
        "float8": lambda: flat.to(torch.float8_e4m3fn),
        "uint16": lambda: torch.zeros(dense.shape, dtype=torch.uint16),
        "uint64": lambda: torch.zeros(dense.shape, dtype=torch.uint64),
        "bool": lambda: dense.to(torch.bool),
        "expanded": lambda: torch.ones(1).expand(random.choice((6, 10**6, 10**10))),
        "strided": lambda: dense.t() if dense.dim() == 2 else dense[::2],
        "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        "parameter": lambda: torch.nn.Parameter(flat),
        "grad": lambda: flat.clone().requires_grad_(),
        "buffer": lambda: torch.nn.Buffer(flat),
        "values": lambda: torch.from_numpy(np.array(arrays.odd(random, dense.numpy())[0])),
        "more": lambda: torch.from_numpy(np.array(arrays.odd(random, dense.numpy())[0])),
        "numpy": lambda: arrays.odd(random, dense.numpy())[0],
        "numpy-scalar": lambda: np.float64(3),
        "list": lambda: dense.tolist(),
        "ragged": lambda: [[1], [1, 2]],
        "json": lambda: random.choice(JSON),
        "dict": lambda: {"a": dense},
        "dtype": lambda: torch.float32,
        "device": lambda: torch.device("cpu"),
        "size": lambda: dense.shape,
        "set": lambda: {1, 2},
        "bytes": lambda: b"abc",
    }
    name = random.choice(sorted(makers))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return makers[name](), name
