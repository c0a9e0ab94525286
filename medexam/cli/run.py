"""`medexam run` and `medexam plan`: carry out an experiment, or say what carrying it out would do."""

from typing import Annotated

import typer

from medexam.cli.flags.run import SPEC_HELP, OptionalSpecs, PlanSettings, RunSettings
from medexam.cli.help.completion import complete_spec
from medexam.cli.options import JsonOption, data_read_once, settings_as_flags
from medexam.errors import SpecError


@settings_as_flags
@data_read_once()
def run(
    settings: RunSettings,
    specs: OptionalSpecs = None,
    as_json: JsonOption = False,
) -> None:
    """Run an experiment, or continue it where it stopped."""
    entries = []
    if specs and settings.resume is None:
        from medexam.cli.actions.entries import read_entries

        entries = read_entries(specs, settings)
    elif settings.resume is None:
        raise SpecError("nothing to run: give a SPEC, or a run to continue with --resume RUN")
    from medexam.cli.actions.run import run_entries

    run_entries(entries, specs or [], settings, as_json=as_json)


@settings_as_flags
def plan(
    specs: Annotated[list[str], typer.Argument(help=SPEC_HELP, metavar="SPEC...", autocompletion=complete_spec)],
    settings: PlanSettings,
    as_json: JsonOption = False,
) -> None:
    """Say what would run: cells, questions, calls and one rendered prompt each."""
    from medexam.cli.actions.entries import read_entries

    entries = read_entries(specs, settings, only_look=True)
    from medexam.cli.actions.run import show_plan

    show_plan(entries, settings, as_json=as_json)
