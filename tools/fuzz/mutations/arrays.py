"""Odd numpy arrays, and .npy files whose header does not tell the truth."""

from __future__ import annotations

import io
import re
from random import Random
from typing import Any

import numpy as np

from . import plain
from .values import FLOATS, INTEGERS, TEXTS

Array = np.ndarray[Any, np.dtype[Any]]
_DTYPES = (
    "?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "g", "c8", "c16",
    "S1", "S5", "U1", "U9", "M8[s]", "M8[ns]", "m8[D]", "O", "V3", ">i8", ">i4", ">f4", ">u2",
    "i4,f8", "(2,)i8",
)  # fmt: skip
_SHAPES = (
    "()", "(0,)", "(-1,)", "(1,)", "(6,)", "(0, 0)", "(2, -3)", "(1000000000000,)", "(3, 10000000)",
    "(4294967296, 4294967296)", "(1.5,)", "('a',)", "None", "(2,)", "6", "(True,)", "((1,),)",
    "(1,) * 9", "(9223372036854775807,)", "(9223372036854775808,)", "(100000000,)", "(0, 10**9)",
    "(0, 1000000000)", "(1, 1, 1, 1, 6)", "(None,)", "[6]", "(" + "1, " * 70 + ")",
)  # fmt: skip
_DESCRS = (
    "'<i8'", "'<i4'", "'<f8'", "'<f4'", "'>i8'", "'|b1'", "'|O'", "'<U1000000'", "'<U0'", "'|S0'",
    "'|V8'", "'<c16'", "'<M8[s]'", "'<M8'", "'nonsense'", "''", "None", "5", "[('a', '<i8')]",
    "[('a', '|O')]", "('<i8', (3,))", "('<i8', (100000,))", "'<f16'", "'<i16'", "'<V1000000000'",
    "[('a', ('<i8', (1000000000,)))]", "'<U268435456'", "'i8,f8'", "'object'", "b'<i8'", "'<f2'",
)  # fmt: skip


def odd(random: Random, array: Array) -> tuple[Array, str]:
    """An array near ``array`` with another type, shape or values."""
    kind = random.choice(("value", "value", "value", "dtype", "dtype", "shape", "length", "other"))
    if kind == "value" and array.size:
        return _with_values(random, array), kind
    if kind == "dtype":
        return _cast(array, random.choice(_DTYPES)), kind
    if kind == "length" and array.ndim:
        cut = random.randrange(len(array) + 1)
        return random.choice(
            (array[:cut], array[cut:], array[:0], np.concatenate([array, array[:cut]]), array[::-1])
        ), kind
    if kind == "other":
        return random.choice(
            (
                np.array(random.choice(INTEGERS[:30])),
                np.array(random.choice(FLOATS)),
                np.array(random.choice(TEXTS)),
                np.array([]),
                np.zeros((0, 3)),
                np.zeros((3, 0), dtype=np.int64),
                np.array([None, 1], dtype=object),
                np.array(random.choice((b"csr", b"csc", b"coo", b"bsr", b"dia", b"lil", b"dok"))),
                np.arange(random.choice((1, 5, 40))),
                np.zeros(array.shape, dtype="datetime64[s]"),
                np.full(array.shape, random.choice(FLOATS)),
                np.broadcast_to(np.float32(1), (random.choice((3, 200)), 40)),
            )
        ), kind
    return _reshaped(random, array), "shape"


def _with_values(random: Random, array: Array) -> Array:
    pool: Any = FLOATS if array.dtype.kind in "fc" else INTEGERS
    if array.dtype.kind in "SU":
        changed = array.astype("U12")
        changed.flat[random.randrange(array.size)] = random.choice(TEXTS)[:12]
        return changed
    for _ in range(8):
        changed = array.copy()
        try:
            for _ in range(random.choice((1, 1, 2, array.size))):
                value = random.choice((*pool, random.randrange(-2, array.size + 3)))
                changed.flat[random.randrange(array.size)] = value
        except (OverflowError, ValueError, TypeError):
            continue
        return changed
    return array.astype(np.uint64) if array.dtype.kind in "iu" else array


def _cast(array: Array, dtype: str) -> Array:
    with np.errstate(all="ignore"):
        try:
            return array.astype(dtype)
        except (ValueError, TypeError):
            return np.zeros(array.shape, dtype=dtype)


def _reshaped(random: Random, array: Array) -> Array:
    forms = [
        array.reshape(-1),
        array.reshape(-1, 1),
        array.reshape(1, -1),
        array.reshape(1, *array.shape),
        array.T,
        np.asfortranarray(array),
        array[None, None],
        np.stack([array, array]),
        np.stack([array, array], axis=-1),
    ]
    if array.size:
        forms += [array.reshape(-1)[0], array.reshape(-1)[:1]]
    return np.asarray(random.choice(forms))


def to_npy(array: Array) -> bytes:
    file = io.BytesIO()
    # Arrays of objects are written, for the readers to refuse; nothing here loads them.
    np.lib.format.write_array(file, array, allow_pickle=True)
    return file.getvalue()


def mutate_file(random: Random, content: bytes) -> tuple[bytes, str]:
    """Damage an .npy file."""
    kind = random.random()
    if kind < 0.5:
        array, label = odd(random, np.load(io.BytesIO(content), allow_pickle=False))
        return to_npy(array), f"npy-{label}"
    if kind < 0.85:
        return _false_header(random, content), "npy-header"
    changed, label = plain.mutate(random, content[10:], [])
    return content[:10] + changed, f"npy-{label}"


def _false_header(random: Random, content: bytes) -> bytes:
    length = int.from_bytes(content[8:10], "little")
    header, data = content[10 : 10 + length].decode("latin1"), content[10 + length :]
    version = b"\x01\x00"
    kind = random.choice(("shape", "shape", "shape", "descr", "descr", "order", "text", "version"))
    if kind == "shape":
        shape = random.choice(_SHAPES)
        if random.random() < 0.3:
            shape = f"({random.choice(INTEGERS)}, {random.choice(INTEGERS)})"
        header = re.sub(r"'shape': \(.*?\)", f"'shape': {shape}", header)
    elif kind == "descr":
        header = re.sub(r"'descr': '.*?'", f"'descr': {random.choice(_DESCRS)}", header)
    elif kind == "order":
        order = random.choice(("True", "1", "None", "'C'", "[]"))
        header = header.replace("False", order)
    elif kind == "version":
        version = random.choice((b"\x02\x00", b"\x03\x00", b"\x00\x00", b"\x09\x01"))
    else:
        header = random.choice(
            (
                "", "{}", "1", "{'shape': (6,)}", header[: len(header) // 2], "{" * 300,
                "[" * 2000, "-" * 3000 + "1", header + "\x00", "(" * 90 + ")" * 90, "x" * 20000,
                "{'descr': '<i8', 'fortran_order': False, 'shape': (6,), 'more': 1}", "\udcff",
            )
        )  # fmt: skip
    encoded = header.encode("utf-8", "replace") + (b"\n" if random.random() < 0.9 else b"")
    size = len(encoded)
    if version[0] == 1 and size < 65536:
        return b"\x93NUMPY" + version + size.to_bytes(2, "little") + encoded + data
    return b"\x93NUMPY" + version + size.to_bytes(4, "little") + encoded + data
