"""The app, how its commands are registered, and how they fail: in one sentence, not a traceback."""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn, TypeVar

import typer
from typer.core import TyperGroup

from .._core import __version__
from .._core.errors import RawlsError, out_of_memory
from ..reporting.progress import clear_status, show_status
from .startup import set_waiting_of_threads

set_waiting_of_threads()


def fail(message: str, status: int = 2) -> NoReturn:
    """Print what is wrong on one line of stderr and exit with ``status``.

    Of several processes that torchrun started, and of their restarts, only the first prints it.
    """
    if "TORCHELASTIC_RUN_ID" in os.environ:
        from .._core.distributed_context import already_reported

        if already_reported(message):
            raise typer.Exit(status)
    clear_status()
    typer.echo(f"rawlsgcn: {' '.join(message.split())}", err=True)
    raise typer.Exit(status)


def guarded(function: Callable[..., None]) -> Callable[..., None]:
    """A command whose user errors become one sentence and exit status 2.

    On a terminal a line says that it has begun, since importing torch takes some seconds.
    """

    @functools.wraps(function)
    def safe(*args: Any, **kwargs: Any) -> None:
        show_status(f"rawlsgcn {function.__name__}: loading …")
        try:
            _require_files(kwargs)
            function(*args, **kwargs)
        except RawlsError as error:
            fail(str(error))
        except KeyboardInterrupt:
            fail("interrupted: nothing unfinished was written", 130)
        except (MemoryError, RuntimeError, TypeError) as error:
            if not out_of_memory(error):
                raise
            fail("out of memory: try a smaller graph, fewer seeds or a narrower network")
        except BrokenPipeError:
            sys.stderr.close()  # the reader has gone; there is nobody to tell
            raise typer.Exit(1) from None
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            fail(f"{where}{error.strerror or error}")
        finally:
            clear_status()

    return safe


def _require_files(options: dict[str, Any]) -> None:
    """Raise an error for a file that is not there, before torch is imported, which takes long."""
    # Features and labels of a .json graph can be names of its attributes.
    attributes = str(options.get("graph") or "").lower().endswith(".json")
    names = ("graph",) if attributes else ("graph", "features", "labels")
    given = [options[name] for name in names if options.get(name)]
    for path in given + options.get("predictions", []):
        if not os.path.exists(os.path.expanduser(path)):
            raise RawlsError(f"{path} does not exist")


@contextmanager
def interruptible(said: str) -> Iterator[list[int]]:
    """Let SIGTERM interrupt the block as Ctrl-C does; the first of both is answered with a line.

    Yields the list of those that came.
    """
    came: list[int] = []

    def interrupt(number: int, frame: object) -> None:
        came.append(number)
        if len(came) == 1:
            print(f"rawlsgcn: {said}", file=sys.stderr, flush=True)
        raise KeyboardInterrupt

    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    before = {each: way for each, way in before.items() if way is not signal.SIG_IGN}
    for each in before:
        signal.signal(each, interrupt)
    try:
        yield came
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


class OneSentence(TyperGroup):
    """The commands; an error of the parser is printed on one line, like that of a command.

    Typer's parser is click, newer versions carry their own copy of it: its errors are known by
    what they can do (``format_message``) rather than by their class.
    """

    def main(self, *args: Any, **options: Any) -> Any:
        if not options.pop("standalone_mode", True):
            return super().main(*args, **options | {"standalone_mode": False})
        for stream in (sys.stdout, sys.stderr):
            # A terminal that knows no ± shows a question mark for it.
            getattr(stream, "reconfigure", lambda **_: None)(errors="replace")
        try:
            try:
                status = super().main(*args, **options | {"standalone_mode": False})
            except typer.Abort:
                fail("interrupted: nothing unfinished was written", 130)
            except Exception as error:
                if not hasattr(error, "format_message"):
                    raise
                if type(error).__name__ == "NoArgsIsHelpError":
                    error.show()  # type: ignore[attr-defined]
                    raise typer.Exit(2) from None
                fail(_sentence(error))
        except typer.Exit as leaving:
            status = leaving.exit_code
        sys.exit(status if isinstance(status, int) else 0)


def _sentence(error: Any) -> str:
    """An error of the parser with its cure."""
    message = error.format_message().rstrip(".").replace(". ", ": ")
    context, option = getattr(error, "ctx", None), getattr(error, "option_name", "")
    options = [name for each in context.command.params for name in each.opts] if context else []
    if option and "--set" in options and not getattr(error, "possibilities", None):
        setting = option.lstrip("-").replace("-", "_")
        message += f"; if it is a setting, give it as --set {setting}=VALUE"
    if context is not None and not message.endswith("?"):
        message += f"; see '{context.command_path} --help'"
    return f"{message[:1].lower()}{message[1:]}"


app = typer.Typer(
    name="rawlsgcn",
    cls=OneSentence,
    help="Degree-fair graph neural networks: train them, compare them, see who is worst off.",
    epilog="Begin with 'rawlsgcn demo'; 'rawlsgcn train -h' shows the options of a command, with "
    "examples.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

F = TypeVar("F", bound=Callable[..., None])


def command(*examples: str) -> Callable[[F], F]:
    """Register a command whose user errors become one sentence and exit status 2.

    Args:
        *examples: What a user types after ``rawlsgcn`` and the command's name, for its --help.
    """

    def register(function: F) -> F:
        lines = [f"rawlsgcn {function.__name__} {words}".rstrip() for words in examples]
        word = "Example" if len(lines) == 1 else "Examples"
        # Typer shows text between empty lines as a line of its own.
        app.command(function.__name__, epilog="\n\n".join([f"{word}:", *lines]))(guarded(function))
        return function

    return register


def require_one_process(command: str, cure: str | None = None) -> None:
    """Raise an error if torchrun started several processes that would all do the same work."""
    if os.environ.get("WORLD_SIZE", "1") != "1":
        said = f"several processes cannot share '{command}'"
        cured = ": start it without torchrun" if cure is None else f" without {cure}: add it"
        raise RawlsError(f"{said}{cured}")


def show_in_order(names: str) -> None:
    """Show the commands in --help in this order of their names, separated by spaces."""
    app.registered_commands.sort(key=lambda each: names.split().index(each.name or ""))


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"rawlsgcn {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options before a command."""
