"""Odd values, which every format can be made to hold."""

from __future__ import annotations

from typing import Any

INTEGERS = (
    -1, 0, 1, 2, 3, 7, 63, 127, 128, 255, 256, 32767, 65535, 65536, 10**6, 2**24, 10**8,
    2**31 - 1, 2**31, 2**32 - 1, 2**32, 10**10, 2**53, 2**60, 2**62, 2**63 - 1, 2**63, 2**64 - 1,
    2**64, 2**70, 10**30, -2, -7, -(2**31), -(2**31) - 1, -(2**63), -(2**63) - 1,
)  # fmt: skip
FLOATS = (
    0.0, -0.0, 0.5, -1.5, 1e-320, 1e-38, 1e16, 1e38, 1e39, 1e300, 1e308, -1e308,
    float("nan"), float("inf"), float("-inf"),
)  # fmt: skip
TEXTS = (
    "", " ", "a", "nan", "NaN", "inf", "-inf", "None", "null", "NA", "True", "false", "-", "1.5",
    "1e5", "1e400", "0x10", "1_000", "1,5", "١", "é", "\u200b", "\ufeff", "a\nb", 'a"b', "a'b",
    "2024-01-01", "12:30", "2024-01-01T00:00:00Z", "99999999999999999999999999", "-0", "+1",
    "train", "test", "=1+1", "../x", "\x00", "\ud7ff", "x" * 3000, "9" * 400, "%s", "{0}", "[1]",
)  # fmt: skip
JSON: tuple[Any, ...] = (
    None, True, False, *INTEGERS, *FLOATS, *TEXTS, [], {}, [[]], [None], [1, "a"], {"a": 1},
    [0] * 100, [2**70], [-1], ["0"], {"": None},
)  # fmt: skip
