"""The command line: parse, call, print.

Commands print results on standard output and everything else on standard error. Exit codes: 0 complete, 1 a gate that
did not pass, 2 wrong spec or usage or nothing usable came out, 3 incomplete. A command's module is imported when it is
called, be it the core's or a package's.
"""

import io
import logging
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from medexam.cli.faults import describe_system_fault, interrupts_heard, usage_in_one_line
from medexam.errors import SpecError
from medexam.plugins import __version__, added_names, load_object, read_first_line
from medexam.process import gc_seldom
from medexam.text import hide_secrets

USAGE = 2
_NAME = "medexam"
GROUP = "medexam.commands"
"""The entry points by which an installed package adds commands; a name with a blank is a command of a group."""
_HEADINGS: Mapping[str, Mapping[str, str]] = {
    "Ask": {
        "demo": "start:demo",
        "init": "start:init",
        "run": "run:run",
        "plan": "run:plan",
        "optimize": "optimize:optimize",
    },
    "Look": {
        "list": "stored:list_runs",
        "show": "stored:show",
        "report": "report:report",
        "ui": "track:ui",
        "track": "track:track",
        "rm": "stored:remove",
    },
    "Compare": {"compare": "compare:compare", "board": "stored:board"},
    "Your own": {"data": "data:app", "index": "index:app", "schema": "start:schema"},
    "Serve": {"serve": "serve:serve", "doctor": "doctor:doctor"},
}
"""Heading of `medexam --help` -> name of a command -> where it is in `medexam.cli`."""
_ADDED = "Installed"
"""The heading of commands that packages add."""
COMMANDS = {name: f"medexam.cli.{place}" for commands in _HEADINGS.values() for name, place in commands.items()}
"""Name of a command of the core -> its code."""


class Commands(TyperGroup):
    """A group of commands; the core's and those that packages add are loaded when they are called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        headings = {name: heading for heading, names in _HEADINGS.items() for name in names}
        self._headings: dict[str, str] = {}
        for path in (*headings, *sorted(added_names(GROUP))):
            group, _, word = path.rpartition(" ")
            # A name of the core's is not a package's.
            if group == self._path("") and word not in self.commands:
                self._headings[path] = headings.get(path, _ADDED)
                self.commands.setdefault(word, cast("Any", None))

    def _path(self, word: str) -> str:
        return f"{'' if self.name == _NAME else self.name} {word}".strip()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, or what the help lists for one that is not loaded; None if there is none of that name."""
        heading = self._headings.get(path := self._path(cmd_name))
        if heading is None:
            return super().get_command(ctx, cmd_name)
        line = read_first_line(COMMANDS.get(path, path), GROUP)
        return TyperCommand(cmd_name, help=line, hidden=line is None, rich_help_panel=heading)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return name, command and the words behind it; fail as usual for a name that there is not."""
        name, command, words = super().resolve_command(ctx, args)
        if name is not None and (path := self._path(name)) in self._headings:
            command = load_command(path)
        return name, command, words

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Parse as usual; wrong usage is one line, and so is Ctrl-C."""
        with interrupts_heard(), usage_in_one_line():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        """Invoke as usual; wrong usage is one line, and so is Ctrl-C that the command does not hear."""
        with interrupts_heard(), usage_in_one_line():
            return super().invoke(ctx)


app = typer.Typer(
    name=_NAME,
    cls=Commands,
    help="Declarative LLM programs for medical exams.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _version(flag: bool) -> None:
    if flag:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def load_command(path: str) -> Any:
    """Load the command or group of commands of this name, its group before it, from its module.

    Raises `SpecError` if importing it fails, or gives neither a function nor a `typer.Typer`.
    """
    target, alone, name = load_object(COMMANDS.get(path, path), GROUP), typer.Typer(), path.rpartition(" ")[2]
    if isinstance(target, typer.Typer):
        alone.add_typer(target, name=name, cls=Commands)
    elif callable(target):
        alone.command(name)(target)
    else:
        raise SpecError(f"medexam {path}: {target!r} is neither a function nor a typer.Typer")
    return _with_examples(get_group(alone).commands[name])


def _with_examples(command: Any) -> Any:
    """Move the lines after `For example:` of its help, and of those inside it, below its options."""
    for inner in filter(None, getattr(command, "commands", {}).values()):
        _with_examples(inner)
    command.help, _, lines = (command.help or "").partition("\n\nFor example:\n")
    if lines:
        command.epilog = "\n".join(("Examples:", *(f"  {line.strip()}" for line in lines.splitlines() if line.strip())))
    return command


def walk_commands() -> Iterator[tuple[str, Any]]:
    """Load every command that a help lists, those of groups and packages among them: its name and itself."""
    root: Any = get_group(app)
    for name in root.list_commands(None):
        if root.get_command(None, name).hidden:
            continue
        command = load_command(name)
        if not isinstance(command, Commands):
            yield name, command
            continue
        group: Any = command
        for word in group.list_commands(None):
            if not group.get_command(None, word).hidden:
                yield f"{name} {word}", group.commands[word] or load_command(f"{name} {word}")


def run_command() -> None:
    """Run the command line; a `MedExamError` becomes one line on standard error and exit code 2."""
    # A stream that the shell has closed is none: what it would say goes to the other one, or nowhere.
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - open to the end
    sys.stderr = sys.stderr or sys.stdout
    if sys.stdout is sys.__stdout__ and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout = _Output(sys.stdout.buffer, sys.stdout.encoding, line_buffering=sys.stdout.line_buffering)
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
            # A traceback quotes libraries, which quote addresses and keys.
            sys.stderr.write(hide_secrets(traceback.format_exc()))
            sys.exit(1)
        # What cannot be told must not end as a defect.
        with suppress(OSError):
            sys.stderr.write(f"medexam: {fault}\n")
        sys.exit(USAGE)


class _Output(io.TextIOWrapper):
    """Standard output; once its reader has gone, as `head` does, the rest goes nowhere."""

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except BrokenPipeError:
            self._give_up()
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except BrokenPipeError:
            self._give_up()

    def _give_up(self) -> None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())


class _Record(logging.LogRecord):
    """A line of a log, ours or a library's, without keys and passwords."""

    def getMessage(self) -> str:  # noqa: N802 - overridden
        return hide_secrets(super().getMessage())
