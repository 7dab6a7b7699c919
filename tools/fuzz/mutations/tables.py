"""Tables as text: cells, columns, quotes, line ends and encodings."""

from __future__ import annotations

from random import Random

from .values import FLOATS, INTEGERS, TEXTS

_HEADERS = (
    "id", "node", "source", "target", "weight", "label", "split", "y", "x", "", "Unnamed: 0", "0",
    "1", "predicted", "p_0", "p_1", "prob_9", "logit_0", "index", "1e5", "nan", "class", "mask",
)  # fmt: skip


def mutate(random: Random, content: bytes) -> tuple[bytes, str]:
    """Damage a text table."""
    text = content.decode("utf-8")
    if random.random() < 0.2:
        return _encoded(random, text)
    lines = text.split("\n")
    separator = "\t" if "\t" in lines[0] else "," if "," in text else " "
    rows = [line.split(separator) for line in lines if line]
    kind = random.choice(
        (
            "cell", "cell", "cell", "cell", "column", "ragged", "header", "drop-column",
            "twice-column", "swap-columns", "drop-row", "twice-row", "no-header", "blank",
            "quote", "long", "many", "wide", "separator", "shuffle",
        )
    )  # fmt: skip
    row = random.randrange(len(rows))
    cell = random.randrange(max(len(rows[row]), 1))
    if kind == "cell":
        for _ in range(random.choice((1, 1, 3))):
            row = random.randrange(len(rows))
            rows[row][random.randrange(len(rows[row]))] = value(random)
    elif kind == "column":
        odd = (
            [value(random) for _ in rows] if random.random() < 0.5 else [value(random)] * len(rows)
        )
        for each, new in zip(rows[random.randrange(2) :], odd, strict=False):
            each[cell % len(each)] = new
    elif kind == "ragged":
        if random.random() < 0.5:
            rows[row].insert(cell, value(random))
        else:
            del rows[row][cell]
    elif kind == "header":
        rows[0][cell % len(rows[0])] = random.choice(_HEADERS)
    elif kind == "drop-column":
        rows = [each[:cell] + each[cell + 1 :] for each in rows]
    elif kind == "twice-column":
        rows = [[*each, each[cell % len(each)]] for each in rows]
    elif kind == "swap-columns":
        rows = [each[::-1] for each in rows]
    elif kind == "drop-row":
        del rows[row : row + random.choice((1, 2, 100))]
    elif kind == "twice-row":
        rows.insert(row, rows[row])
    elif kind == "no-header":
        del rows[0]
    elif kind == "blank":
        rows.insert(row, random.choice(([], [""], [" "], ["", ""], ["", "", "", ""])))
    elif kind == "quote":
        rows[row][cell] = random.choice(('"', '"a', 'a"', '""', '"a\nb"', "'", '"a"b', '"1"'))
    elif kind == "long":
        rows[row][cell] = random.choice(("1", "x", "ä", ".", "-")) * random.choice((400, 70_000))
    elif kind == "wide":
        rows[row] = rows[row] * random.choice((10, 1000, 100_000))
    elif kind == "many":
        rows = rows * random.choice((5, 300))
    elif kind == "separator":
        separator = random.choice((",", "\t", ";", " ", ", ", ",,", "|", "\x1f"))
    else:
        random.shuffle(rows)
    return "\n".join([*map(separator.join, rows), ""]).encode("utf-8", "replace"), kind


def value(random: Random) -> str:
    """A cell that no table should have there."""
    return str(random.choice(random.choice((INTEGERS, FLOATS, TEXTS))))


def _encoded(random: Random, text: str) -> tuple[bytes, str]:
    kind = random.choice(
        ("utf-16", "utf-16-le", "utf-32", "bom", "latin1", "nul", "cr", "crlf", "eof")
    )
    if kind.startswith("utf"):
        return text.encode(kind), kind
    if kind == "bom":
        return b"\xef\xbb\xbf" * random.choice((1, 2)) + text.encode(), kind
    data = bytearray(text.encode())
    at = random.randrange(len(data) + 1)
    if kind == "latin1":
        data[at:at] = random.choice(
            (b"\xe9", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80")
        )
    elif kind == "nul":
        data[at:at] = random.choice((b"\0", b"\0\0\0", b"\x1a", b"\x0c", b"\x0b", b"\x85"))
    elif kind == "eof":
        data += random.choice((b"\n\n\n", b"\x1a", b",", b'"', b"\r", b" \n", b"#", b"\0"))
    else:
        data = data.replace(b"\n", b"\r" if kind == "cr" else b"\r\n")
    return bytes(data), kind
