"""What a command shows before its work, and what it does not show."""

from __future__ import annotations

import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import typer.main
from typer.testing import CliRunner

from rawlsgcn import __main__ as entry
from rawlsgcn.cli import app

WITHOUT_TORCH = (
    "import sys\nsys.modules['torch'] = None\n"
    "from rawlsgcn.cli import app\napp(['balance', '--dataset', 'synthetic', '--out', 'b.npz'])"
)


def on_a_terminal(code: str) -> str:
    """What the program writes to stderr if that is a terminal."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={name: value for name, value in environment.items() if name != "RANK"},
    ) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            seen += part
        process.wait()
    os.close(ours)
    return seen.decode()


def test_a_terminal_shows_something_before_torch_is_imported() -> None:
    shown = on_a_terminal(WITHOUT_TORCH)
    assert "torch" in shown.split("loading …")[1]  # the import that fails comes after
    assert "rawlsgcn balance: loading …" in shown.split("Traceback")[0]
    assert shown.split("loading …")[1].startswith("\r\x1b[2K")  # and the line is removed


def test_a_pipe_shows_no_such_line() -> None:
    result = CliRunner().invoke(app, ["train", "--dataset", "nope"])
    assert "loading" not in result.stderr


def test_warnings_of_other_packages_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def warn() -> None:
        warnings.warn("torch.jit.script is deprecated", FutureWarning, stacklevel=1)

    monkeypatch.setattr("rawlsgcn.cli.app", warn)
    monkeypatch.setenv("PYTHONWARNINGS", "")
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    for options, count in (([], 0), (["default"], 1)):  # -W default asks for them
        monkeypatch.setattr(sys, "warnoptions", options)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            entry.main()
        assert len(seen) == count


def test_ctrl_c_in_code_that_cannot_raise_it_comes_again() -> None:
    code = (
        "import sys, time, rawlsgcn.cli as cli\n"
        "from rawlsgcn.__main__ import main\n"
        "class Deaf:\n    def __del__(self):\n        raise KeyboardInterrupt\n"
        "def app():\n    Deaf()\n    for _ in range(99):\n        time.sleep(0.1)\n"
        "cli.app = app\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        # Where the tests run in the background the signal is ignored, and that is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


@pytest.mark.parametrize("name", [None, *sorted(typer.main.get_command(app).commands)])
def test_every_help_has_an_example_and_answers_to_the_short_option(name: str | None) -> None:
    words = [] if name is None else [name]
    short, long = (CliRunner().invoke(app, [*words, option]) for option in ("-h", "--help"))
    assert short.exit_code == 0
    assert short.output == long.output
    end = short.output.split("Example")[-1] if name else short.output
    assert f"rawlsgcn {name or 'demo'}" in end


@pytest.mark.parametrize("name", sorted(typer.main.get_command(app).commands))
def test_the_examples_of_a_help_are_what_its_parser_takes(name: str) -> None:
    command = typer.main.get_command(app).commands[name]
    lines = [line for line in command.epilog.split("\n\n") if line.startswith("rawlsgcn ")]
    assert lines
    for line in lines:
        words = shlex.split(line)
        assert words[1] == name
        command.make_context(name, words[2:])  # raises an error for an option that is not there


def test_the_page_on_the_command_line_names_options_that_there_are() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "command-line.md"
    commands = typer.main.get_command(app).commands
    lines = re.findall(r"^rawlsgcn (\w+) +(--.*)$", page.read_text(encoding="utf-8"), re.M)
    assert {"tune", "compare", "doctor"} <= {name for name, _ in lines}
    for name, rest in lines:
        known = {option for each in commands[name].params for option in each.opts}
        assert set(re.findall(r"--[\w-]+", rest)) <= known


def test_completion_offers_commands_methods_and_datasets() -> None:
    for words, offered in (
        ("rawlsgcn ba", ["balance"]),
        ("rawlsgcn train --method rawlsgcn-gr", ["rawlsgcn-grad", "rawlsgcn-graph"]),
        ("rawlsgcn audit --dataset co", ["cora-ml", "coauthor-cs", "coauthor-physics"]),
    ):
        place = str(words.count(" "))
        asked = {"COMP_WORDS": words, "COMP_CWORD": place, "_RAWLSGCN_COMPLETE": "complete_bash"}
        result = CliRunner().invoke(app, [], env=asked, prog_name="rawlsgcn")
        assert result.output.split() == offered
