"""The command line: parse, call, print.

Commands print results on standard output and everything else on standard error. Exit codes: 0 complete, 1 a gate that
did not pass, 2 wrong spec or usage or nothing usable came out, 3 incomplete. A command's module is imported when it is
called.
"""

import io
import logging
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from types import MappingProxyType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from medexam.cli.hashing import ReadingLine
from medexam.cli.help.examples import add_examples
from medexam.cli.views.interrupts import interrupts_heard
from medexam.cli.views.system_faults import check_memory_limit, describe_system_fault
from medexam.cli.views.usage import usage_in_one_line
from medexam.errors import SpecError
from medexam.gc_pause import gc_seldom
from medexam.text import hide_secrets

USAGE = 2
COMMANDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "init": (
            "start:init",
            "Write a commented spec to start from, or one that asks a file of your own questions.",
        ),
        "demo": ("start:demo", "Show what a study of fifteen ways of asking found, in seconds and without a model."),
        "run": ("run:run", "Run an experiment, or continue it where it stopped."),
        "plan": ("run:plan", "Say what would run: cells, questions, calls and one rendered prompt each."),
        "report": ("report:report", "Show stored runs as tables and plots; scores them again, asks no model."),
        "list": ("stored.runs:list_runs", "List the stored runs, the newest experiment last."),
        "show": (
            "stored.show:show",
            "Show a stored run: its state, settings and files, or what it answered to one question.",
        ),
        "rm": ("stored.runs:remove", "Remove stored runs; their copies in MLflow stay."),
        "compare": (
            "compare:compare",
            "Compare stored runs with the first one on the questions that all have scored; asks no model.",
        ),
        "board": (
            "stored.board:board",
            "Show models over several benchmarks: scores, mean rank, and what is missing; asks no model.",
        ),
        "optimize": (
            "optimize:optimize",
            "Optimize a program's demonstrations and instructions, or continue an interrupted optimization.",
        ),
        "track": ("track:track", "Send stored runs and optimizations to MLflow; what is already there is updated."),
        "ui": ("ui:ui", "Serve the MLflow UI until Ctrl-C."),
        "serve": (
            "serve:serve",
            "Start vLLM, wait until it is healthy, and stop it on Ctrl-C. Words after `--` go to vLLM as they are.",
        ),
        "schema": (
            "start:schema",
            "Print the JSON Schema of a spec, for editors; or a program that ships as the YAML of its steps.",
        ),
        "doctor": (
            "doctor:doctor",
            "Check servers, hosted models or this machine: what they support, and what to change.",
        ),
        "data": ("data.commands:app", "List, check, show and fetch data sets."),
        "index": ("index:app", "Vector indexes for dense retrieval."),
    }
)
"""Name -> where it is in `medexam.cli`, and the first line of its help, which is all that `medexam --help` shows."""
GROUP = "medexam.commands"
"""The entry points by which an installed package adds commands; a name with a blank is a command of a group."""
_PANELS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Ask": ("demo", "init", "run", "plan", "optimize"),
        "Look": ("list", "show", "report", "ui", "track", "rm"),
        "Compare": ("compare", "board"),
        "Your own": ("data", "index", "schema"),
        "Serve": ("serve", "doctor"),
    }
)
"""Heading of `medexam --help` -> the commands below it."""
_ADDED = "Installed"
"""The heading of commands that packages add."""


class Commands(TyperGroup):
    """Replaces the command that is called, and no other, with the one in its module."""

    def list_commands(self, ctx: Any) -> list[str]:
        """List the commands of the core, then those that installed packages add."""
        return [*super().list_commands(ctx), *_added_commands()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return what stands for a command; None if there is none of that name."""
        command = super().get_command(ctx, cmd_name)
        return _stand_in(cmd_name) if command is None and cmd_name in _added_commands() else command

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Parse as usual; wrong usage is one line, and so is Ctrl-C."""
        with interrupts_heard(), usage_in_one_line():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        """Invoke as usual; wrong usage is one line, and so is Ctrl-C that the command does not hear."""
        # A help needs no hashes, and what makes them takes a tenth of its time to import.
        from medexam.fingerprints import watch_hashing

        with watch_hashing(ReadingLine()), interrupts_heard(), usage_in_one_line():
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return name, command and the words behind it; fail as usual for a name that there is not."""
        name, _, words = super().resolve_command(ctx, args)
        check_memory_limit(name or "")
        return name, None if name is None else load_command(name), words


app = typer.Typer(
    name="medexam",
    cls=Commands,
    help="Declarative LLM programs for medical exams.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


class _Group(TyperGroup):
    """A group of commands; one that a package adds is loaded when it is called, so that it takes no other down."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return name, command and the words behind it; fail as usual for a name that there is not."""
        name, command, words = super().resolve_command(ctx, args)
        return name, load_command(f"{self.name} {name}") if _is_stand_in(command) else command, words


def load_command(name: str) -> Any:
    """Load the command or group of commands called `name`, from its module.

    Raises `SpecError` if a package adds it, and importing it fails or gives neither a function nor a `typer.Typer`.
    """
    if name in COMMANDS:
        module, _, attribute = COMMANDS[name][0].partition(":")
        command = _make_command(name, getattr(import_module(f"medexam.cli.{module}"), attribute))
    else:
        from medexam.plugins import load_object

        command = _make_command(name, load_object(name, GROUP))
    if hasattr(command, "commands"):
        for path in _added_commands(name):
            command.commands.setdefault(path.rpartition(" ")[2], _stand_in(path))
    return add_examples(command, name)


def _make_command(name: str, target: Any) -> Any:
    """Make a command or a group of a function or a `typer.Typer`."""
    alone, word = typer.Typer(), name.rpartition(" ")[2]
    if isinstance(target, typer.Typer):
        alone.add_typer(target, name=word, cls=_Group)
    elif callable(target):
        alone.command(word)(target)
    else:
        raise SpecError(f"medexam {name}: {target!r} is neither a function nor a typer.Typer")
    return get_group(alone).commands[word]


def _added_commands(group: str = "") -> list[str]:
    """List the commands that installed packages add to a group, or to none; a name of the core's is not theirs.

    All names have the group before them.
    """
    from medexam.plugins import added_names

    names = added_names(GROUP).keys() - COMMANDS.keys()
    return sorted(name for name in names if name.rpartition(" ")[0] == group)


def _stand_in(name: str) -> Any:
    """Make what the help lists for a package's command, unless its module is not there; no code is imported."""
    from medexam.plugins import read_first_line

    alone, line = typer.Typer(), read_first_line(name, GROUP)
    options: dict[str, Any] = {"help": line, "hidden": line is None, "rich_help_panel": _ADDED}
    alone.command(name.rpartition(" ")[2], **options)(_stands_for)
    return get_command(alone)


def _is_stand_in(command: Any) -> bool:
    return getattr(command, "rich_help_panel", None) == _ADDED


def _version(flag: bool) -> None:
    if flag:
        from medexam.plugins import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def _stands_for() -> None:
    """Stand for a command until it is called."""


for _panel, _names in _PANELS.items():
    for _name in _names:
        app.command(_name, help=COMMANDS[_name][1], rich_help_panel=_panel)(_stands_for)


def walk_commands() -> Iterator[tuple[str, Any]]:
    """Load every command that a help lists, those of groups and packages among them: its name and itself."""
    for name in (*COMMANDS, *_added_commands()):
        if name in COMMANDS or not _stand_in(name).hidden:
            command = load_command(name)
            inside = getattr(command, "commands", {})
            for word, inner in inside.items():
                if not inner.hidden:
                    path = f"{name} {word}"
                    yield path, load_command(path) if _is_stand_in(inner) else inner
            if not inside:
                yield name, command


def run_command() -> None:
    """Run the command line; a `MedExamError` becomes one line on standard error and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        # What a terminal's encoding cannot hold is shown as an escape: it must not end the command.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    logging.setLogRecordFactory(_Record)
    try:
        with gc_seldom():
            app(prog_name="medexam")
    except Exception as error:
        fault = describe_system_fault(error)
        if fault is None:
            _print_defect()
        # What cannot be told must not end as a defect.
        with suppress(OSError):
            sys.stderr.write(f"medexam: {fault}\n")
        sys.exit(USAGE)


def _print_defect() -> NoReturn:
    """End with the traceback of a defect, which quotes libraries, which quote addresses and keys."""
    sys.stderr.write(hide_secrets(traceback.format_exc()))
    sys.exit(1)


class _Record(logging.LogRecord):
    """A line of a log, ours or a library's, without keys and passwords."""

    def getMessage(self) -> str:  # noqa: N802 - overridden
        return hide_secrets(super().getMessage())
