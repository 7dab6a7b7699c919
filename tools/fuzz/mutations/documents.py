"""JSON documents, and safetensors files, whose header is one."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from . import plain
from .values import INTEGERS, JSON


def mutate(random: Random, content: bytes) -> tuple[bytes, str]:
    """Damage a JSON document."""
    if random.random() < 0.2:
        text = random.choice(
            (
                b"[" * 100_000, b'{"a":' * 50_000, b"9" * 6000, b"-", b"", b"nan", b"null", b"[]",
                b"{}", b"\xff\xfe", b'"' + b"x" * 9000 + b'"', content + content, b"\x00",
                content.replace(b"1", b"9" * 5000, 1), content.replace(b"1", b"1e999"),
                content.replace(b":", b": [[[[", 1), b"\xef\xbb\xbf" + content,
            )
        )  # fmt: skip
        return text, "json-text"
    value = json.loads(content)
    label = change(random, value)
    return json.dumps(value).encode("utf-8", "replace"), f"json-{label}"


def change(random: Random, value: Any) -> str:
    """Change one entry of a JSON value in place."""
    path = []
    while True:
        key = random.choice(sorted(value) if isinstance(value, dict) else range(len(value)))
        path.append(str(key))
        inner = value[key]
        if not isinstance(inner, list | dict) or not inner or random.random() < 0.15:
            break
        value = inner
    kind = random.random()
    if kind < 0.1:
        del value[key]
        return f"{'/'.join(path)}-gone"
    if kind < 0.25 and isinstance(inner, int):
        value[key] = inner + random.choice((-1, 1, 2, 100))
    elif kind < 0.5 and isinstance(inner, int):
        value[key] = random.choice(INTEGERS)
    elif kind < 0.55:
        deep: Any = 1
        for _ in range(200):
            deep = [deep]
        value[key] = deep
    else:
        value[key] = random.choice(JSON)
    return f"{'/'.join(path)}-value"


_DTYPES = ("F32", "F64", "F16", "BF16", "I64", "I32", "I8", "U8", "BOOL", "F8_E4M3", "U64", "X", 1)


def mutate_safetensors(random: Random, content: bytes) -> tuple[bytes, str]:
    """Damage the header or the data of a safetensors file."""
    length = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + length]), content[8 + length :]
    kind = random.random()
    names = [name for name in sorted(header) if name != "__metadata__"]
    label = "header"
    if kind < 0.3:
        label = change(random, header)
    elif kind < 0.45:
        header[random.choice(names)]["dtype"] = random.choice(_DTYPES)
    elif kind < 0.6:
        entry = header[random.choice(names)]
        entry["shape"] = random.choice(
            ([], [0], entry["shape"][::-1], [*entry["shape"], 1], [2**40], [2**32, 2**32, 0],
             [1, *entry["shape"]], [entry["shape"][0] if entry["shape"] else 1])
        )  # fmt: skip
    elif kind < 0.7:
        name = random.choice(names)
        other = random.choice((f"{name}x", "0/", "/", "1/weight", name.replace("0/", "7/"), "a"))
        header[other] = header.pop(name)
    elif kind < 0.9:
        data, label = plain.mutate(random, data, [])
    else:
        text = json.dumps(header).encode()
        size = random.choice((0, 1, len(text) - 1, 2**31, 2**63, 2**64 - 1, 10**8 + 1))
        return size.to_bytes(8, "little") + text + data, "safetensors-size"
    text = json.dumps(header).encode("utf-8", "replace")
    return len(text).to_bytes(8, "little") + text + data, f"safetensors-{label}"
