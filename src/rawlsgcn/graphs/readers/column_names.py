"""The names of columns that tables are read by, in lower case; each list is here and nowhere else.

docs/graphs.md and docs/audit.md list them for users.
"""

from __future__ import annotations

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
SPLIT_VALUES = {"train": 0, "val": 1, "valid": 1, "validation": 1, "test": 2}
"""The words of a split column, and the number of the mask that each one means."""
UNNAMED_COLUMNS = frozenset({"", "unnamed: 0"})
"""What pandas calls an index that it writes, or reads back, as the first column."""


def listed(names: frozenset[str]) -> str:
    """The names for an error message."""
    return ", ".join(sorted(names))
