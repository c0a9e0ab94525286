"""`medexam show`: one stored run with its settings, or what it answered to one question."""

from typing import Annotated

import typer

from medexam.cli.help.completion import complete_run
from medexam.cli.options import JsonOption, RunsDirOption


def show(
    run: Annotated[
        str,
        typer.Argument(metavar="RUN", autocompletion=complete_run, help="A run's id, its beginning, or its folder."),
    ],
    question: Annotated[
        str | None, typer.Argument(metavar="QUESTION", help="The key of a question, or its end; `17` may be enough.")
    ] = None,
    runs_dir: RunsDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a stored run: its state, settings and files, or what it answered to one question."""
    from medexam.cli.stored.actions.show import show_run

    show_run(run, question, runs_dir, as_json=as_json)
