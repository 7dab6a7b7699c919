"""``auto``: train a pool of models, judge them on the validation nodes, and keep the best."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._core import lazy_names

if TYPE_CHECKING:
    from .auto_search import auto as auto
    from .result import AutoResult as AutoResult

_HOMES = {"AutoResult": "result", "auto": "auto_search"}
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
