"""`medexam list` and `medexam rm`: the runs that are kept."""

from typing import Annotated

import typer

from medexam.cli.help.completion import complete_run
from medexam.cli.options import JsonOption, RunsDirOption


def list_runs(runs_dir: RunsDirOption = None, as_json: JsonOption = False) -> None:
    """List the stored runs, the newest experiment last."""
    from medexam.cli.stored.actions.runs import list_kept

    list_kept(runs_dir, as_json=as_json)


def remove(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...", autocompletion=complete_run, help="Ids in the runs directory, or run folders."
        ),
    ],
    runs_dir: RunsDirOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
) -> None:
    """Remove stored runs; their copies in MLflow stay."""
    from medexam.cli.stored.actions.runs import remove_kept

    remove_kept(runs, runs_dir, yes=yes)
