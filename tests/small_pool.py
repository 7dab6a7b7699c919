"""The pool of ``auto`` with few settings and epochs, so that a search takes a second."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from rawlsgcn.experiments.model_search import pool, search, tuned_gcn

EPOCHS = 30


@contextmanager
def small_pool() -> Iterator[None]:
    """Search with two settings of each member, and tune the GCN with two."""
    with pytest.MonkeyPatch.context() as patch:
        quick = [
            replace(each, changes=each.changes | {"epochs": EPOCHS, "hidden_channels": 16})
            for each in pool.POOL
        ]
        patch.setattr(search, "POOL", tuple(quick))
        patch.setattr(pool, "RATES", (0.05,))
        patch.setattr(tuned_gcn, "RATES", (0.05,))
        patch.setattr(pool, "DECAYS", (5e-4, 0.0))
        patch.setattr(tuned_gcn, "DECAYS", (5e-4,))
        patch.setattr(tuned_gcn, "WIDTHS", (16,))
        yield
