"""Which columns of a table of predictions are the node ids, the predicted class and the scores.

Columns are found by name, and score columns are matched with the classes by name or number, never
by position; only a file without a header has its columns in a fixed order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .._core.errors import RawlsError
from ..graphs.readers.column_names import (
    ID_COLUMNS,
    LABEL_COLUMNS,
    PREDICTED_COLUMNS,
    SPLIT_COLUMNS,
    UNNAMED_COLUMNS,
    is_number,
    listed,
)
from ..graphs.readers.tables import TableHeader

_KINDS = {
    "probabilities": re.compile(r"p|pr|prob|probs|proba|probability|probabilities|softmax"),
    "logits": re.compile(r"logit|logits|z"),
    None: re.compile(r"|score|scores|class"),
}
"""The prefixes of score columns, and what kind of scores each one says they are."""
_NUMBERED = re.compile(r"(.*?)[ _.\-:]?(\d{1,9})")
_PREFIXED = tuple(re.compile(rf"([A-Za-z]+)[ _.\-:]{count}(.+)", re.DOTALL) for count in ("", "+"))
"""A prefix and a name, which may itself begin with a separator."""


@dataclass
class PredictionColumns:
    """The columns of a table by their roles.

    Attributes:
        node: The node ids; None for rows that are in the order of the graph.
        predicted: The predicted class; not used where there are scores.
        scores: The scores, in the order of the classes.
        score_list: One column with a list of scores for each node, in the order of the classes.
        kind: "probabilities" or "logits" where the names say so.
        split: Which nodes train, validate and test, if a column says so.
    """

    node: int | None
    predicted: int | None = None
    scores: list[int] = field(default_factory=list)
    score_list: int | None = None
    kind: str | None = None
    split: int | None = None


def has_header(cells: list[str], numeric: Any) -> bool:
    """Whether the first line has names: one of node ids first, or a word after the first cell."""
    named = cells[0].strip().lower() in ID_COLUMNS | UNNAMED_COLUMNS
    return named or not all(is_number(cell) for cell in cells[1:] or cells)


def find_columns(
    header: TableHeader, lists: Sequence[int] = (), class_names: Sequence[str] | None = None
) -> PredictionColumns:
    """Find the columns by their names.

    Args:
        header: The columns of the table.
        lists: Those that hold lists of numbers.
        class_names: The names of the classes in their order, where the labels are words.

    Raises:
        RawlsError: If a column is missing, appears twice or cannot be matched with a class.
    """
    if header.names is None:
        return _by_position(header)
    classes = _ClassNames(class_names)
    _refuse_repeats(header, classes)
    node = _id_column(header, classes)
    found = PredictionColumns(node)
    found.predicted = header.find(PREDICTED_COLUMNS, apart=[node, *lists])
    found.split = header.find(SPLIT_COLUMNS, apart=[node, *lists])
    known = PREDICTED_COLUMNS | LABEL_COLUMNS | SPLIT_COLUMNS | UNNAMED_COLUMNS
    prefixed = {hit[1] for name in header.names if (hit := classes.find(name)) and hit[0]}
    # A class may be called 'predicted'; where it has a column p_predicted, that is its score.
    names = {name for number, name in enumerate(class_names or ()) if number not in prefixed}
    others = [
        i
        for i, word in enumerate(header.words)
        if i != node and i not in lists and (word not in known or header.names[i] in names)
    ]
    for prefix, group in _match_scores(header, others, classes).items():
        _require_every_class(header, group, class_names)
        found.scores = [group[number] for number in sorted(group)]
        found.kind = _kind(prefix)
    if lists:
        _take_list(header, lists, found)
    if found.scores or found.score_list is not None or found.predicted is not None:
        return found
    if not others:  # in a file with nothing else, these are not the labels
        found.predicted = header.find({"class", "label"}, apart=[node])
    elif len(others) == 1:
        found.predicted = others[0]
    if found.predicted is None:
        raise RawlsError(_missing(header, others, class_names))
    return found


def _by_position(header: TableHeader) -> PredictionColumns:
    if header.width < 2:
        raise RawlsError(
            f"{header.path} has one column: give the node id first and the predicted class or "
            "a score of each class after it"
        )
    if header.width == 2:
        return PredictionColumns(0, predicted=1)
    return PredictionColumns(0, scores=list(range(1, header.width)))


def _refuse_repeats(header: TableHeader, classes: _ClassNames) -> None:
    # Classes may differ in upper and lower case only.
    found = [classes.find(name) for name in header.names or ()]
    for (word, _), count in Counter(zip(header.words, found, strict=True)).items():
        if count > 1 and word not in UNNAMED_COLUMNS:
            raise RawlsError(
                f"{header.path} has more than one column '{word}': keep one, or rename the others"
            )


class _ClassNames:
    """Finds the class of a score column in its name: by a number, or by a name of the labels."""

    def __init__(self, names: Sequence[str] | None) -> None:
        lower = Counter(name.lower() for name in names or ())
        clear = {n.lower(): i for i, n in enumerate(names or ()) if lower[n.lower()] == 1}
        self._numbers = {**clear, **{name: i for i, name in enumerate(names or ())}}

    def find(self, column: str) -> tuple[str, int] | None:
        """The prefix of a column, which must be a known one, and the number of its class."""
        text = column.strip()
        number = self._named(text)
        if number is not None:
            return "", number
        for pattern in _PREFIXED:
            prefixed = pattern.fullmatch(text)
            number = self._named(prefixed[2]) if prefixed and _known(prefixed[1]) else None
            if prefixed and number is not None:
                return prefixed[1].lower(), number
        numbered = _NUMBERED.fullmatch(text)
        if numbered and numbered[1] and _known(numbered[1]):
            return numbered[1].lower(), int(numbered[2])
        return None

    def _named(self, text: str) -> int | None:
        return self._numbers.get(text, self._numbers.get(text.lower()))


def _known(prefix: str) -> bool:
    return any(pattern.fullmatch(prefix.lower()) for pattern in _KINDS.values())


def _kind(prefix: str) -> str | None:
    return next((kind for kind, pattern in _KINDS.items() if pattern.fullmatch(prefix)), None)


def _id_column(header: TableHeader, classes: _ClassNames) -> int:
    found = header.find(ID_COLUMNS)
    if found is not None:
        return found
    assert header.names is not None
    if header.words[0] in PREDICTED_COLUMNS | LABEL_COLUMNS or classes.find(header.names[0]):
        raise RawlsError(
            f"{header.path} has no column of node ids, which says whose prediction each row is: "
            f"add one, called one of {listed(ID_COLUMNS)} (of rows in node order: 0, 1, 2, …)"
        )
    return 0


def _match_scores(
    header: TableHeader, others: Sequence[int], classes: _ClassNames
) -> dict[str, dict[int, int]]:
    """The column of each class, by the prefix of their names; other columns are ignored."""
    assert header.names is not None
    matched = [(*hit, i) for i in others if (hit := classes.find(header.names[i]))]
    if not matched and len(others) > 1:
        # Numbers alone, or behind any other word: 0, 1, 2 or net_0, net_1, net_2.
        numbered = [(_NUMBERED.fullmatch(header.words[i]), i) for i in others]
        matched = [("", int(hit[2]), i) for hit, i in numbered if hit]
    groups: dict[str, dict[int, int]] = {}
    for prefix, number, i in matched:
        group = groups.setdefault(prefix, {})
        if number in group:
            raise RawlsError(
                f"{header.path}: {header.column(group[number])} and {header.column(i)} are of "
                "the same class: keep one"
            )
        group[number] = i
    if len(groups) > 1:
        columns = ", ".join(header.column(next(iter(g.values()))) for g in groups.values())
        raise RawlsError(
            f"{header.path} has several scores of the same classes ({columns}): keep the columns "
            "of one of them"
        )
    return groups


def _require_every_class(
    header: TableHeader, group: dict[int, int], class_names: Sequence[str] | None
) -> None:
    numbers = sorted(group)
    lacks = [name for i, name in enumerate(class_names or ()) if i not in group]
    if lacks:
        raise RawlsError(
            f"{header.path} has no score of the class '{lacks[0]}': give one column for each "
            f"class, called p_{lacks[0]} or {lacks[0]}"
        )
    if numbers == list(range(1, len(numbers) + 1)):
        raise RawlsError(
            f"{header.path}: the columns are numbered from 1, but classes are numbered from 0: "
            f"rename {header.column(group[1])} and the others"
        )
    if numbers != list(range(len(numbers))):
        assert header.names is not None
        columns = ", ".join(header.names[i] for i in sorted(group.values())[:12])
        more = ", …" if len(group) > 12 else ""
        raise RawlsError(
            f"{header.path}: the columns {columns}{more} are not numbered 0 to "
            f"{len(numbers) - 1}, each once: give one column for each class"
        )


def _take_list(header: TableHeader, lists: Sequence[int], found: PredictionColumns) -> None:
    """Take the scores from one column of lists, which then is the only one of scores."""
    if found.scores or len(lists) > 1:
        columns = ", ".join(header.column(i) for i in sorted({*found.scores, *lists}))
        raise RawlsError(
            f"{header.path}: of {columns} only one can hold the scores: keep the node ids and one "
            "column of lists"
        )
    found.score_list = lists[0]
    found.kind = _kind(header.words[lists[0]])


def _missing(header: TableHeader, others: Sequence[int], class_names: Sequence[str] | None) -> str:
    examples = [f"p_{name}" for name in (class_names or ("0", "1"))[:2]]
    what = f"{header.path} has no predictions"
    if others:
        columns = ", ".join(header.column(i) for i in others[:3])
        what = f"{header.path}: the classes of {columns} are not known"
    return (
        f"{what}: call the score of each class {', '.join(examples)}, …, or give a column of "
        f"predicted classes, called one of {listed(PREDICTED_COLUMNS)}"
    )
