"""The command line: parse, call, print.

Commands print results on standard output and everything else on standard error. Exit codes: 0 complete, 1 a gate that
did not pass, 2 wrong spec or usage or nothing usable came out, 3 incomplete. A command's module is imported when it is
called.
"""

import io
import logging
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from types import MappingProxyType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_group

from medexam.cli.help.examples import add_examples
from medexam.cli.progress.hashing import ReadingLine
from medexam.cli.views.interrupts import interrupts_heard
from medexam.cli.views.system_faults import check_memory_limit, describe_system_fault
from medexam.cli.views.usage import usage_in_one_line
from medexam.fingerprints import watch_hashing
from medexam.gc_pause import gc_seldom
from medexam.text import hide_secrets

USAGE = 2
COMMANDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "init": (
            "start:init",
            "Write a commented spec to start from: sample questions and the embedded model unless told otherwise.",
        ),
        "run": ("run:run", "Run an experiment, or continue it where it stopped."),
        "plan": ("run:plan", "Say what would run: cells, questions, calls and one rendered prompt each."),
        "report": ("report:report", "Show stored runs as tables and plots; scores them again, asks no model."),
        "list": ("stored.runs:list_runs", "List the runs that are kept, the newest experiment last."),
        "show": (
            "stored.show:show",
            "Show a stored run: its state, settings and files, or what it answered to one question.",
        ),
        "watch": ("stored.watch:watch", "Serve the page of runs on 127.0.0.1 while they are asked, until Ctrl-C."),
        "rm": ("stored.runs:remove", "Remove runs that are kept. Their copies in MLflow stay."),
        "compare": (
            "compare:compare",
            "Compare stored runs with the first one on the questions that all have scored; asks no model.",
        ),
        "trend": (
            "trend:trend",
            "Show a score over dated runs, a line for each strategy, model and data set; asks no model.",
        ),
        "import": ("imports:import_results", "Make runs of the results of other harnesses; asks no model."),
        "export": (
            "exports:export",
            "Write runs as files of lm-evaluation-harness, Inspect or Every Eval Ever, or for the hub; sends nothing.",
        ),
        "board": ("stored.board:board", "Show models over several benchmarks: scores, mean rank, and what is missing."),
        "reproduce": (
            "reproduce:reproduce",
            "Make a table or figure of a paper anew, beside the one that is printed.",
        ),
        "optimize": (
            "optimize:optimize",
            "Optimize a program's demonstrations and instructions, or continue where that stopped.",
        ),
        "finetune": (
            "training.finetune:finetune",
            "Fine-tune an encoder on spans, into a folder that `span_reader` reads with.",
        ),
        "finetune-grid": (
            "training.grid:finetune_grid",
            "Fine-tune encoders in every training and variant of a grid, or continue where that stopped.",
        ),
        "track": ("track:track", "Send stored runs and optimizations to MLflow; what is already there is updated."),
        "ui": ("ui:ui", "Serve the MLflow UI until Ctrl-C."),
        "schema": ("start:schema", "Print the JSON Schema of a spec, for editors that complete and check YAML."),
        "serve": (
            "serve:serve",
            "Start vLLM, wait until it is healthy, and stop it on Ctrl-C. Words after `--` go to vLLM as they are.",
        ),
        "doctor": (
            "doctor:doctor",
            "Ask servers and hosted models what they are and what they honour, and say what to change.",
        ),
        "data": ("data.commands:app", "Data sets: what is here, is it sound, what does it ask."),
        "index": ("index:app", "Vector indexes for dense retrieval."),
        "audit": ("audit:app", "Have people judge answers, and compare measures with them."),
    }
)
"""Name -> where it is in `medexam.cli`, and the first line of its help, which is all that `medexam --help` shows."""
_TAKES_FLAGS_OF_VLLM = {"allow_extra_args": True, "ignore_unknown_options": True}


class Commands(TyperGroup):
    """Replaces the command that is called, and no other, with the one in its module."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Parse as usual; wrong usage is one line, and so is Ctrl-C."""
        with interrupts_heard(), usage_in_one_line():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        """Invoke as usual; wrong usage is one line, and so is Ctrl-C that the command does not hear."""
        with interrupts_heard(), usage_in_one_line():
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


def load_command(name: str) -> Any:
    """Load the command or group of commands called `name`, from its module."""
    module, _, attribute = COMMANDS[name][0].partition(":")
    target = getattr(import_module(f"medexam.cli.{module}"), attribute)
    alone = typer.Typer()
    if isinstance(target, typer.Typer):
        alone.add_typer(target, name=name)
    else:
        alone.command(name, context_settings=_TAKES_FLAGS_OF_VLLM if name == "serve" else None)(target)
    return add_examples(get_group(alone).commands[name], name)


def _version(flag: bool) -> None:
    if flag:
        from medexam.version import __version__

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


for _name, (_, _line) in COMMANDS.items():
    app.command(_name, help=_line)(_stands_for)


def main() -> None:
    """Run the command line; a `MedExamError` becomes one line on standard error and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        # What a terminal's encoding cannot hold is shown as an escape: it must not end the command.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    logging.setLogRecordFactory(_Record)
    try:
        with gc_seldom(), watch_hashing(ReadingLine()):
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
