"""The number of threads: torch's own, but for a small matrix and on a busy machine."""

from __future__ import annotations

import pytest
import torch

from rawlsgcn import threads
from rawlsgcn.threads import threads_for


@pytest.mark.parametrize(
    ("entries", "busy", "one"),
    [(100, 0, True), (10**6, 0, False), (10**6, 10**4, True), (10**8, 0, False)],
)
def test_a_second_thread_is_used_only_where_it_pays(monkeypatch, entries, busy, one):
    monkeypatch.setattr(threads, "_is_busy", lambda: busy > 2)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with threads_for(entries):
            assert torch.get_num_threads() == (1 if one else 2)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_we_are_among_those_who_run():
    assert threads._runnable() >= 1
