"""Damage that knows nothing of the format."""

from __future__ import annotations

from random import Random


def mutate(random: Random, content: bytes, others: list[bytes]) -> tuple[bytes, str]:
    """Flip, cut, repeat, overwrite or splice bytes."""
    if not content:
        return random.randbytes(random.randrange(1, 20)), "grow"
    data = bytearray(content)
    kind = random.choice(
        ("flip", "flip", "set", "set", "cut", "repeat", "remove", "zero", "splice")
    )
    at = random.randrange(len(data))
    length = min(random.choice((1, 2, 4, 8, 16, 64, 512)), len(data) - at)
    if kind == "flip":
        for _ in range(random.choice((1, 1, 2, 8))):
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    elif kind == "set":
        value = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
        data[at : at + random.choice((1, 1, 4, 8))] = bytes([value]) * min(length, 8)
    elif kind == "cut":
        del data[at:]
    elif kind == "repeat":
        data[at:at] = data[at : at + length] * random.choice((1, 2, 50))
    elif kind == "remove":
        del data[at : at + length]
    elif kind == "zero":
        data[at : at + length] = bytes(length)
    else:
        other = random.choice(others) if others and random.random() < 0.7 else content
        start = random.randrange(len(other) + 1)
        data[at:] = other[start:]
    return bytes(data), kind
