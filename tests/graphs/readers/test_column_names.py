"""The names of columns: which first lines have them, and what a missing or a strange one says."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from rawlsgcn.graphs.readers.column_names import (
    LABEL_COLUMNS,
    edges_have_header,
    features_have_header,
    labels_have_header,
    missing_column,
    split_codes,
)


def test_a_missing_column_is_named_with_all_names_it_may_have() -> None:
    said = str(missing_column(Path("y.csv"), "labels", LABEL_COLUMNS))
    assert said.startswith("y.csv has no column of labels: call it one of class, ")
    assert all(name in said for name in LABEL_COLUMNS)


def test_a_split_column_has_three_words_or_nothing() -> None:
    cells = pd.Series(["Train", " valid", "test", None, "none", "often"], dtype=object)
    codes, wrong = split_codes(cells)
    assert codes.tolist() == [0, 1, 2, -1, -1, -1]
    assert wrong.tolist() == [False] * 5 + [True]


@pytest.mark.parametrize(
    ("cells", "numeric", "edges", "features", "labels"),
    [
        (["source", "target"], False, True, True, True),
        (["id", "label"], False, False, True, True),
        (["a", "b"], False, False, True, False),
        (["a", "b"], True, True, True, True),
        (["0", "1"], True, False, False, False),
        (["", "0", "1"], True, True, True, True),
    ],
)
def test_words_over_numbers_and_known_names_are_headers(
    cells: list[str], numeric: bool, edges: bool, features: bool, labels: bool
) -> None:
    rules = (edges_have_header, features_have_header, labels_have_header)
    assert [rule(cells, lambda _: numeric) for rule in rules] == [edges, features, labels]
