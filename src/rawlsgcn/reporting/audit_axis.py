"""Where a group of nodes stands on the axis of an audit's pictures, and the marks of that axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..evaluation.audit.trend import log_scale
from .wording import printable

if TYPE_CHECKING:
    from ..evaluation.audit.findings import GroupAudit, ModelAudit
    from ..experiments.audit_result import Audit

Floats = npt.NDArray[np.float64]


def log_kind(audit: Audit) -> str | None:
    """How the axis can be logarithmic: as the slope is, see :func:`.trend.log_scale`."""
    if not audit.ordered:
        return None
    return log_scale(np.array([point.value for point in audit.models[0].curve]))


def doubled(audit: Audit, scale: str) -> str:
    """What a slope is taken for each doubling of: ``1 + degree``."""
    return f"1 + {printable(audit.column)}" if scale == "one more" else printable(audit.column)


def stretched(value: float | Floats, kind: str | None) -> Floats:
    """The place on a logarithmic axis of this kind; on any other the value itself."""
    numbers = np.asarray(value, dtype=float)
    if kind is None:
        return numbers
    places: Floats = np.log(numbers + (kind == "one more"))
    return places


def unstretched(place: float | Floats, kind: str | None) -> Floats:
    numbers = np.asarray(place, dtype=float)
    return numbers if kind is None else np.exp(numbers) - (kind == "one more")


def centre(model: ModelAudit, group: GroupAudit, kind: str | None) -> float:
    """The mean place of the group's nodes: the middle of 43 to 997 says little about them."""
    inside = [point for point in model.curve if group.low <= point.value <= group.high]
    if not inside:
        middle = (stretched(group.low, kind) + stretched(group.high, kind)) / 2
        return float(unstretched(middle, kind))
    places = stretched(np.array([point.value for point in inside]), kind)
    mean = np.average(places, weights=[point.nodes for point in inside])
    return float(unstretched(mean, kind))


def log_marks(low: float, high: float, kind: str) -> list[float]:
    """1, 2, 5, 10, … between the ends (and 0 where it has a place), at most twelve of them."""
    decades = range(math.floor(math.log10(max(low, 1e-300))) if kind == "plain" else 0, 16)
    marks = [step * 10.0**decade for decade in decades for step in (1, 2, 5)]
    inside = [mark for mark in marks if low <= mark <= high]
    if kind == "one more" and low <= 0:
        inside.insert(0, 0.0)
    if len(inside) > 12:
        inside = [mark for mark in inside if mark == 0 or _is_power(mark)]
    return inside


def group_places(model: ModelAudit, ordered: bool, kind: str | None) -> Sequence[float]:
    """Every group's place: the mean of its nodes, or for text its turn."""
    if not ordered:
        return list(map(float, range(len(model.groups))))
    return [centre(model, group, kind) for group in model.groups]


def _is_power(mark: float) -> bool:
    return abs(math.log10(mark) - round(math.log10(mark))) < 1e-9
