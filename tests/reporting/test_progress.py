"""The progress bar is for people, and costs a training loop nothing."""

from __future__ import annotations

import io
import sys
import time

import pytest

from rawlsgcn.reporting.progress import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def watch(monkeypatch):
    """Put a person before stderr; called in the test, since pytest sets stderr after fixtures."""

    def begin(term="xterm"):
        stream = Terminal()
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setenv("TERM", term)
        return stream

    return begin


def test_silent_where_nobody_watches(capsys):
    with progress("training") as tell:
        for done in range(100):
            tell(done, 100, "GCN")
    assert capsys.readouterr() == ("", "")


def test_plain_lines_now_and_then_where_there_is_no_terminal(monkeypatch, capsys):
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    with progress("smoothing") as tell:
        for step in range(0, 101, 5):
            clock[0] = float(step)
            tell(step, 100, "block 1 of 2")
    assert capsys.readouterr().err.splitlines() == [
        "smoothing: block 1 of 2, 10% (after 10 s)",
        "smoothing: block 1 of 2, 40% (after 40 s)",
        "smoothing: block 1 of 2, 70% (after 70 s)",
        "smoothing: block 1 of 2, 100% (after 100 s)",
        "smoothing: done in 100 s",
    ]
    monkeypatch.setenv("RANK", "1")
    with progress("smoothing") as tell:
        clock[0] = 1000
        tell(1, 2)
    assert capsys.readouterr().err == ""


def test_silent_on_a_terminal_that_cannot_redraw(watch):
    terminal = watch("dumb")
    with progress("training") as tell:
        tell(1, 2)
    assert terminal.getvalue() == ""


def test_shows_what_is_done_on_stderr_only(watch, capsys):
    terminal = watch()
    with progress("training") as tell:
        tell(1, 200, "GCN, seed 0")
        tell(200, 200, "GCN, seed [1]\x1b[2J")
    shown = terminal.getvalue()
    assert "200/200" in shown
    assert "GCN, seed [1]" in shown
    assert "\x1b[2J" not in shown
    assert capsys.readouterr().out == ""


def test_many_calls_cost_little(watch):
    terminal = watch()
    with progress("training") as tell:
        began = time.perf_counter()
        for done in range(100_000):
            tell(done, 100_000, "GCN")
        assert time.perf_counter() - began < 1.5
    assert terminal.getvalue()


def test_the_cursor_comes_back_after_ctrl_c(watch):
    terminal = watch()

    def interrupted():
        with progress("training") as tell:
            tell(1, 2)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert terminal.getvalue().rindex("\x1b[?25h") > terminal.getvalue().rindex("\x1b[?25l")


@pytest.mark.parametrize(
    ("calls", "text"),
    [
        ([(0, 0), (5, 75)], "about 1:10 left"),
        ([(0, 0), (5, 75), (6, 4000)], "about 1:06 hours left"),
    ],
)
def test_seconds_may_change_their_total(watch, calls, text):
    terminal = watch()
    with progress("training", seconds=True, interval=0) as tell:
        for done, total in calls:
            tell(done, total, "GCN")
    assert text in terminal.getvalue()
    assert "0/0" not in terminal.getvalue()
