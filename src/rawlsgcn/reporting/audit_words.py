"""What an audit says, in plain words: one function, for the terminal and for the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .verdict import Verdict

if TYPE_CHECKING:
    from ..audit_result import Audit


def verdict(audit: Audit) -> Verdict:
    """A headline, and sentences on every model and every pair of them."""
    return Verdict("to come", [])
