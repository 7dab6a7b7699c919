"""The names of columns: which first lines have them, and what a missing or a strange one says."""

from __future__ import annotations

from pathlib import Path

import pytest

from rawlsgcn.graphs.readers.column_names import (
    LABEL_COLUMNS,
    edges_have_header,
    features_have_header,
    labels_have_header,
    missing_column,
)


def test_a_missing_column_is_named_with_all_names_it_may_have() -> None:
    said = str(missing_column(Path("y.csv"), "labels", LABEL_COLUMNS))
    assert said.startswith("y.csv has no column of labels: call it one of class, ")
    assert all(name in said for name in LABEL_COLUMNS)


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
