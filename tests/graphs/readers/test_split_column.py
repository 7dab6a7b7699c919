"""The words of a column ``split``."""

from __future__ import annotations

import pandas as pd

from rawlsgcn.graphs.readers.split_column import split_codes


def test_a_split_column_has_three_words_or_nothing() -> None:
    cells = pd.Series(["Train", " valid", "test", None, "none", "often"], dtype=object)
    codes, wrong = split_codes(cells)
    assert codes.tolist() == [0, 1, 2, -1, -1, -1]
    assert wrong.tolist() == [False] * 5 + [True]
