"""Which columns of a table of predictions are the node ids, the predicted class and the scores.

Columns are found by name, and score columns are matched with the classes by name or number, never
by position; only a file without a header has its columns in a fixed order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
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

_KINDS: dict[str, str | None] = {
    **dict.fromkeys(("p", "pr", "prob", "probs", "proba", "softmax"), "probabilities"),
    **dict.fromkeys(("probability", "probabilities"), "probabilities"),
    **dict.fromkeys(("logit", "logits", "z"), "logits"),
    **dict.fromkeys(("score", "scores", "class")),
}
"""The prefixes of score columns, and what kind of scores each one says they are."""
_NUMBERED = re.compile(r"(.*?)[ _.\-:]?(\d{1,9})")
_PREFIXED = tuple(re.compile(rf"([A-Za-z]+)[ _.\-:]{count}(.+)", re.DOTALL) for count in ("", "+"))
"""A prefix and a name, which may itself begin with a separator."""
_Hit = tuple[str, int]
"""The prefix of a score column and the number of its class."""


@dataclass
class PredictionColumns:
    """The columns of a table by their roles.

    ``scores`` are in the order of the classes; a ``score_list`` is one column with a list of them
    for each node. Where there are scores, the predicted class is not used.
    """

    node: int | None  #: the node ids; None for rows that are in the order of the graph
    predicted: int | None = None
    scores: list[int] = field(default_factory=list)
    score_list: int | None = None
    kind: str | None = None  #: "probabilities" or "logits" where the names say so
    split: int | None = None  #: which nodes train, validate and test, if a column says so


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
    names, words, classes = header.names, header.words, class_names or ()
    if names is None:
        if header.width < 2:
            raise RawlsError(
                f"{header.path} has one column: give the node id first and the predicted class or "
                "a score of each class after it"
            )
        scores = list(range(1, header.width))
        return PredictionColumns(0, 1) if scores == [1] else PredictionColumns(0, scores=scores)
    hits = list(map(_class_finder(classes), names))
    # Classes may differ in upper and lower case only.
    for (word, _), count in Counter(zip(words, hits, strict=True)).items():
        if count > 1 and word not in UNNAMED_COLUMNS:
            raise RawlsError(
                f"{header.path} has more than one column '{word}': keep one, or rename the others"
            )
    node = header.find(ID_COLUMNS)
    if node is None and (words[0] in PREDICTED_COLUMNS | LABEL_COLUMNS or hits[0]):
        raise RawlsError(
            f"{header.path} has no column of node ids, which says whose prediction each row is: "
            f"add one, called one of {listed(ID_COLUMNS)} (of rows in node order: 0, 1, 2, …)"
        )
    apart = [node or 0, *lists]
    found = PredictionColumns(apart[0], header.find(PREDICTED_COLUMNS, apart))
    found.split = header.find(SPLIT_COLUMNS, apart)
    known = PREDICTED_COLUMNS | LABEL_COLUMNS | SPLIT_COLUMNS | UNNAMED_COLUMNS
    # A class may be called 'predicted'; where it has a column p_predicted, that is its score.
    prefixed = {hit[1] for hit in hits if hit and hit[0]}
    called = {name for number, name in enumerate(classes) if number not in prefixed}
    others = [
        place
        for place, word in enumerate(words)
        if place not in apart and (word not in known or names[place] in called)
    ]
    matched = {place: hit for place in others if (hit := hits[place])}
    if not matched and len(others) > 1:
        # Numbers alone, or behind any other word: 0, 1, 2 or net_0, net_1, net_2.
        numbered = {place: _NUMBERED.fullmatch(words[place]) for place in others}
        matched = {place: ("", int(hit[2])) for place, hit in numbered.items() if hit}
    if matched:
        found.scores = _by_class(header, matched, classes)
        found.kind = _KINDS.get(matched[found.scores[0]][0])
    if lists:
        if found.scores or len(lists) > 1:
            columns = ", ".join(header.column(i) for i in sorted({*found.scores, *lists}))
            raise RawlsError(
                f"{header.path}: of {columns} only one can hold the scores: keep the node ids and "
                "one column of lists"
            )
        found.score_list, found.kind = lists[0], _KINDS.get(words[lists[0]])
    if found.scores or lists or found.predicted is not None:
        return found
    if not others:  # in a file with nothing else, these are not the labels
        found.predicted = header.find({"class", "label"}, apart)
    elif len(others) == 1:
        found.predicted = others[0]
    if found.predicted is None:
        unknown = ", ".join(header.column(place) for place in others[:3])
        what = f": the classes of {unknown} are not known" if others else " has no predictions"
        examples = ", ".join(f"p_{name}" for name in (classes or ("0", "1"))[:2])
        raise RawlsError(
            f"{header.path}{what}: call the score of each class {examples}, …, or give a column of "
            f"predicted classes, called one of {listed(PREDICTED_COLUMNS)}"
        )
    return found


def _class_finder(class_names: Sequence[str]) -> Callable[[str], _Hit | None]:
    """Finds the class of a score column in its name: by a number, or by a name of the labels."""
    lower = Counter(name.lower() for name in class_names)
    numbers = {name.lower(): i for i, name in enumerate(class_names) if lower[name.lower()] == 1}
    numbers |= {name: number for number, name in enumerate(class_names)}

    def find(column: str) -> _Hit | None:
        text = column.strip()
        number = numbers.get(text, numbers.get(text.lower()))
        if number is not None:
            return "", number
        for hit in filter(None, (pattern.fullmatch(text) for pattern in _PREFIXED)):
            number = numbers.get(hit[2], numbers.get(hit[2].lower()))
            if hit[1].lower() in _KINDS and number is not None:
                return hit[1].lower(), number
        numbered = _NUMBERED.fullmatch(text)
        if numbered and numbered[1].lower() in _KINDS:
            return numbered[1].lower(), int(numbered[2])
        return None

    return find


def _by_class(
    header: TableHeader, matched: dict[int, _Hit], class_names: Sequence[str]
) -> list[int]:
    """The score columns in the order of their classes, of which each must have one."""
    firsts = {prefix: place for place, (prefix, _) in reversed(matched.items())}
    if len(firsts) > 1:
        columns = ", ".join(map(header.column, sorted(firsts.values())))
        raise RawlsError(
            f"{header.path} has several scores of the same classes ({columns}): keep the columns "
            "of one of them"
        )
    place_of: dict[int, int] = {}
    for place, (_, number) in matched.items():
        if place_of.setdefault(number, place) != place:
            raise RawlsError(
                f"{header.path}: {header.column(place_of[number])} and {header.column(place)} are "
                "of the same class: keep one"
            )
    lacks = [name for number, name in enumerate(class_names) if number not in place_of]
    if lacks:
        raise RawlsError(
            f"{header.path} has no score of the class '{lacks[0]}': give one column for each "
            f"class, called p_{lacks[0]} or {lacks[0]}"
        )
    numbers = sorted(place_of)
    if numbers == list(range(1, len(numbers) + 1)):
        raise RawlsError(
            f"{header.path}: the columns are numbered from 1, but classes are numbered from 0: "
            f"rename {header.column(place_of[1])} and the others"
        )
    if numbers != list(range(len(numbers))):
        columns = ", ".join((header.names or [])[place] for place in sorted(matched)[:12])
        more = ", …" if len(matched) > 12 else ""
        raise RawlsError(
            f"{header.path}: the columns {columns}{more} are not numbered 0 to "
            f"{len(numbers) - 1}, each once: give one column for each class"
        )
    return [place_of[number] for number in numbers]
