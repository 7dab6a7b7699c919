"""Parquet tables with columns of other types, and with damaged metadata."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from . import plain
from .values import FLOATS, INTEGERS, JSON, TEXTS


def mutate(random: Random, content: bytes) -> tuple[bytes, str]:
    """Damage a Parquet file: a column, its metadata, its footer or its pages."""
    if random.random() < 0.15:
        cut = max(len(content) - random.choice((200, 1000, 4)), 0)
        changed, label = plain.mutate(random, content[cut:-8], [])
        size = len(changed) - max(len(content) - 8 - cut, 0)
        length = int.from_bytes(content[-8:-4], "little") + (size if random.random() < 0.5 else 0)
        end = max(length, 0).to_bytes(4, "little") + content[-4:]
        return content[:cut] + changed + end, f"footer-{label}"
    table = pq.read_table(io.BytesIO(content))
    kind = random.choice(
        ("column", "column", "column", "column", "add", "drop", "names", "rows", "pandas", "write")
    )
    place = random.randrange(max(table.num_columns, 1))
    label = kind
    if kind in ("column", "add"):
        column, label = odd_column(random, table.num_rows)
        if kind == "add":
            table = table.add_column(place, random.choice(("", "extra", "label", "id")), column)
        else:
            table = table.set_column(place, table.column_names[place], column)
    elif kind == "drop":
        table = table.remove_column(place)
    elif kind == "names":
        names = list(table.column_names)
        names[place] = random.choice(
            (names[0], "", "id", "node", "a.b", "0", "label", "é", "x" * 999)
        )
        table = table.rename_columns(names)
    elif kind == "rows":
        table = random.choice((table.slice(0, 0), table.slice(0, 1), pa.concat_tables([table] * 2)))
    elif kind == "pandas":
        table = table.replace_schema_metadata(_metadata(random, table.schema.metadata))
    file = io.BytesIO()
    options: dict[str, Any] = {"store_schema": random.random() < 0.8}
    if kind == "write":
        options |= {
            "compression": random.choice(("none", "gzip", "zstd", "brotli")),
            "version": random.choice(("1.0", "2.4", "2.6")),
            "data_page_version": random.choice(("1.0", "2.0")),
            "use_dictionary": random.random() < 0.5,
            "row_group_size": random.choice((1, 2, 1000)),
        }
    pq.write_table(table, file, **options)
    return file.getvalue(), f"parquet-{label}"


def odd_column(random: Random, rows: int) -> tuple[Any, str]:
    """A column of a type that nobody expects, and its type."""
    makers: dict[str, Any] = {
        "lists": lambda: pa.array([[1.0] * random.randrange(3) for _ in range(rows)]),
        "equal-lists": lambda: pa.array([[0.5, 0.5] for _ in range(rows)]),
        "fixed-lists": lambda: pa.array([[0.5, 0.5]] * rows, pa.list_(pa.float64(), 2)),
        "holed-lists": lambda: pa.array([[0.5, None] for _ in range(rows)]),
        "nested": lambda: pa.array([[[1]] for _ in range(rows)]),
        "struct": lambda: pa.array([{"a": 1, "b": "x"}] * rows),
        "map": lambda: pa.array([[("a", 1)]] * rows, pa.map_(pa.string(), pa.int64())),
        "timestamp": lambda: pa.array(np.arange(rows), pa.timestamp("us")),
        "zoned": lambda: pa.array(np.arange(rows), pa.timestamp("us", tz="Europe/Berlin")),
        "far-time": lambda: pa.array([2**62] * rows, pa.timestamp("us")),
        "date": lambda: pa.array(np.arange(rows, dtype=np.int32), pa.date32()),
        "far-date": lambda: pa.array([2**31 - 1] * rows, pa.date32()),
        "time": lambda: pa.array(np.arange(rows), pa.time64("us")),
        "duration": lambda: pa.array(np.arange(rows), pa.duration("s")),
        "null": lambda: pa.nulls(rows),
        "bool": lambda: pa.array([i % 2 == 0 for i in range(rows)]),
        "holes": lambda: pa.array([None if i % 2 else i for i in range(rows)], pa.int64()),
        "decimal": lambda: pa.array([Decimal(random.choice(("1", "1.5", "-3")))] * rows),
        "big-decimal": lambda: pa.array([Decimal(10**30)] * rows, pa.decimal128(38, 0)),
        "huge-decimal": lambda: pa.array([Decimal(10**70)] * rows, pa.decimal256(76, 0)),
        "holed-decimal": lambda: pa.array([None, *[Decimal("1.5")] * (rows - 1)][:rows]),
        "binary": lambda: pa.array([b"\xff\x00"] * rows),
        "text": lambda: pa.array([random.choice(TEXTS) for _ in range(rows)], pa.string()),
        "large-text": lambda: pa.array([str(i) for i in range(rows)], pa.large_string()),
        "view": lambda: pa.array([str(i) for i in range(rows)], pa.string_view()),
        "dictionary": lambda: pa.array([str(i % 2) for i in range(rows)]).dictionary_encode(),
        "number-dictionary": lambda: pa.array([i % 2 for i in range(rows)]).dictionary_encode(),
        "float16": lambda: pa.array(np.zeros(rows, np.float16)),
        "float32": lambda: pa.array(np.full(rows, random.choice(FLOATS), np.float32)),
        "float64": lambda: pa.array([random.choice(FLOATS) for _ in range(rows)], pa.float64()),
        "uint64": lambda: pa.array([2**64 - 1 - i for i in range(rows)], pa.uint64()),
        "int64": lambda: pa.array(
            random.choices([i for i in INTEGERS if abs(i) < 2**63], k=rows), pa.int64()
        ),
        "int8": lambda: pa.array([i % 100 for i in range(rows)], pa.int8()),
        "empty": lambda: pa.array([[]] * rows, pa.list_(pa.float64())),
        "long-text": lambda: pa.array(["x" * random.choice((10**4, 10**6))] * rows),
    }  # fmt: skip
    name = random.choice(sorted(makers))
    return makers[name](), name


def _metadata(random: Random, metadata: dict[bytes, bytes] | None) -> dict[bytes, bytes]:
    about = json.loads((metadata or {}).get(b"pandas", b"{}"))
    kind = random.random()
    if kind < 0.3 or not about:
        return {
            b"pandas": random.choice((b"", b"{}", b"[]", b"null", b"{", b"\xff", b'{"columns": 1}'))
        }
    key = random.choice(sorted(about))
    entry = about[key]
    if kind < 0.6 or not isinstance(entry, list) or not entry:
        about[key] = random.choice(JSON)
    else:
        each = random.choice(entry)
        if isinstance(each, dict):
            each[random.choice(sorted(each))] = random.choice(
                (*JSON, "object", "int64", "datetime64[ns]", "category", "datetimetz", "bytes")
            )
        else:
            entry[0] = random.choice(
                (*JSON, {"kind": "range", "start": 0, "stop": 10**12, "step": 1})
            )
    return {b"pandas": json.dumps(about).encode("utf-8", "replace")}
