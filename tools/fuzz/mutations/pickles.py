"""Pickles: opcodes and their arguments changed, or arrays in them replaced."""

from __future__ import annotations

import pickle
import pickletools
from collections import defaultdict
from random import Random
from typing import Any

import numpy as np
import scipy.sparse as sp

from . import arrays, plain
from .values import INTEGERS, JSON


def mutate(random: Random, content: bytes) -> tuple[bytes, str]:
    """Damage a pickle of an array, a sparse matrix or a table of lists."""
    if random.random() < 0.6:
        return change_opcode(random, content)
    # A seed of our own: what is damaged already only gets its opcodes changed.
    value = pickle.loads(content, encoding="latin1")
    return pickle.dumps(odd(random, value), random.choice((0, 2, 2, 2, 4))), "pickle-value"


def odd(random: Random, value: Any) -> Any:
    """A value near ``value``."""
    if sp.issparse(value):
        matrix = value.copy()
        part = random.choice(("data", "indices", "indptr", "_shape", "format"))
        if part == "_shape":
            matrix._shape = random.choice(
                (
                    (2**40, 3),
                    (-1, 3),
                    (1.5, 2),
                    "ab",
                    None,
                    (3,),
                    (0, 0),
                    (10**9, 10**9),
                    (2, 10**6),
                )
            )
        elif part == "format":
            return random.choice((matrix.tocsc(), matrix.tocoo(), matrix.toarray(), matrix.tolil()))
        else:
            setattr(matrix, part, arrays.odd(random, getattr(matrix, part))[0])
        return matrix
    if isinstance(value, np.ndarray):
        return arrays.odd(random, value)[0]
    if isinstance(value, dict):
        changed = defaultdict(list, value)
        key = random.choice(list(changed) or [0])
        kind = random.randrange(6)
        if kind == 0:
            changed[key] = random.choice(JSON)
        elif kind == 1:
            changed[random.choice([k for k in JSON if not isinstance(k, list | dict)])] = [0]
        elif kind == 2:
            changed[key] = [random.choice(INTEGERS)]
        elif kind == 3:
            changed[key] = [random.choice(JSON)]
        elif kind == 4:
            return {}
        else:
            return random.choice(JSON)
        return changed
    return random.choice(JSON)


_INTEGER = {"BININT": (1, 4), "BININT1": (1, 1), "BININT2": (1, 2)}


def change_opcode(random: Random, content: bytes) -> tuple[bytes, str]:
    """Change one integer, text or opcode of a pickle."""
    ops = [(op, argument, at or 0) for op, argument, at in pickletools.genops(content)]
    kind = random.random()
    integers = [(op, at) for op, _, at in ops if op.name in _INTEGER]
    if kind < 0.5 and integers:
        op, at = random.choice(integers)
        _, width = _INTEGER[op.name]
        number = random.choice(INTEGERS)
        if random.random() < 0.4:
            number = random.randrange(12)
        new = _integer(number)
        return content[:at] + new + content[at + 1 + width :], "pickle-integer"
    which = random.randrange(len(ops))
    at = ops[which][2]
    end = ops[which + 1][2] if which + 1 < len(ops) else len(content)
    if kind < 0.65:
        return content[:at] + content[end:], "pickle-drop"
    if kind < 0.75:
        return content[:end] + content[at:end] + content[end:], "pickle-twice"
    if kind < 0.85:
        other = random.choice(
            (b"N", b"\x88", b"K\x00", b"]", b"}", b")", b"0", b"2", b"b", b"R", b"\x85", b"a", b"u",
             b"X\x03\x00\x00\x00abc", b"U\x02|O", b"X\x02\x00\x00\x00i1", b"X\x04\x00\x00\x00U999",
             b"cbuiltins\neval\n", b"cnumpy\ndtype\n", b"cnumpy\nndarray\n")
        )  # fmt: skip
        return content[:at] + other + content[end:], "pickle-replace"
    changed, label = plain.mutate(random, content[at:end], [])
    return content[:at] + changed + content[end:], f"pickle-{label}"


def _integer(number: int) -> bytes:
    if 0 <= number < 256:
        return b"K" + bytes([number])
    if -(2**31) <= number < 2**31:
        return b"J" + number.to_bytes(4, "little", signed=True)
    data = number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data
