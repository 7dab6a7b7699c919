"""The names of columns that tables are read by, and whether the first line of a table has them.

They are here and nowhere else, in lower case; docs/graphs.md and docs/audit.md list them for users.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..._core.errors import RawlsError

SOURCE_COLUMNS = frozenset(
    {"source", "src", "from", "u", "node1", "source_id", "from_id", "head"}
)  # fmt: skip
TARGET_COLUMNS = frozenset(
    {"target", "dst", "to", "v", "node2", "target_id", "to_id", "tail", "destination"}
)
WEIGHT_COLUMNS = frozenset({"weight", "weights", "w", "edge_weight", "value", "count"})
ID_COLUMNS = frozenset({"id", "ids", "node", "node_id", "nodeid"})
FIRST_ID_COLUMNS = ID_COLUMNS | {"nodes", "name", "index"}
"""Names of node ids that count only for a first column."""
LABEL_COLUMNS = frozenset(
    {"label", "labels", "y", "class", "target"}
    | {"y_true", "true", "truth", "true_label", "true_class", "ground_truth"}
)
PREDICTED_COLUMNS = frozenset(
    {"predicted", "prediction", "predictions", "pred", "preds", "y_pred", "y_hat", "yhat"}
    | {"predicted_class", "predicted_label", "pred_class", "pred_label"}
)
SPLIT_COLUMNS = frozenset({"split", "set", "mask"})
NO_FEATURES = (LABEL_COLUMNS - {"y", "target", "true", "truth"}) | {"split"}
"""Names of columns that are never features: a label among them would be learned from itself."""
COLUMN_NAMES = WEIGHT_COLUMNS | FIRST_ID_COLUMNS | LABEL_COLUMNS | PREDICTED_COLUMNS
UNNAMED_COLUMNS = frozenset({"", "unnamed: 0"})
"""What pandas calls an index that it writes, or reads back, as the first column."""

HeaderRule = Callable[[list[str], Callable[[int], bool]], bool]
"""Judges the cells of the first line; it may ask whether a column is all numbers below it."""


def missing_column(path: Path, what: str, names: frozenset[str]) -> RawlsError:
    """Return the error for a table without a column of ``what``."""
    return RawlsError(f"{path} has no column of {what}: call it one of {listed(names)}")


def listed(names: frozenset[str]) -> str:
    """The names for an error message."""
    return ", ".join(sorted(names))


def edges_have_header(cells: list[str], numeric: Callable[[int], bool]) -> bool:
    """A line of known names, or words over numbers; words over words may well be ids."""
    words = [cell.strip().lower() for cell in cells]
    if len(words) > 1 and SOURCE_COLUMNS & set(words) and TARGET_COLUMNS & set(words):
        return True
    if len(words) > 2 and (words[2] in WEIGHT_COLUMNS or is_index_header(words)):
        return True
    if any(word == "" or is_number(word) for word in words):
        return False
    return any(numeric(index) for index in range(len(words)))


def features_have_header(cells: list[str], numeric: Callable[[int], bool]) -> bool:
    """Whether the first line of a table of features names its columns."""
    words = [cell.strip().lower() for cell in cells]
    if words[0] in FIRST_ID_COLUMNS or ID_COLUMNS & set(words) or is_index_header(cells):
        return True
    # Features may be named by numbers (years): then a word over ids that are numbers tells.
    return not any(map(is_number, words[1:])) or (
        words[0] != "" and not is_number(words[0]) and numeric(0)
    )


def labels_have_header(cells: list[str], numeric: Callable[[int], bool]) -> bool:
    """Whether the first line of a table of labels names its columns."""
    words = [cell.strip().lower() for cell in cells]
    label = words[1] if len(words) > 1 else ""
    if words[0] in FIRST_ID_COLUMNS or label in LABEL_COLUMNS or is_index_header(cells):
        return True
    if label == "" or is_number(label):
        return False
    # A word over numbers is a header; a word over words may be the label of the first node.
    return numeric(1) or (numeric(0) and not is_number(words[0]))


def is_index_header(cells: list[str]) -> bool:
    """Whether this is the first line of ``DataFrame.to_csv()``, which writes the index too."""
    rest = [cell.strip() for cell in cells[1:]]
    if cells[0].strip().lower() not in UNNAMED_COLUMNS or not rest:
        return False
    return rest == [str(i) for i in range(len(rest))] or not any(map(is_number, rest))


def is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (ValueError, TypeError, OverflowError):
        return False
    return True
