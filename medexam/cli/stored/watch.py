"""`medexam watch`: the page of runs while they are asked, on this machine alone."""

from pathlib import Path
from typing import Annotated

import typer

from medexam.cli.help.completion import complete_run
from medexam.cli.options import RunsDirOption


def watch(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RUN...]", autocompletion=complete_run, help="Runs as in `report`; all in --runs-dir by default."
        ),
    ] = None,
    runs_dir: RunsDirOption = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 5050,
    every: Annotated[float, typer.Option(min=1, metavar="SECONDS", help="Seconds between two looks.")] = 15,
) -> None:
    """Serve the page of runs on 127.0.0.1 while they are asked, until Ctrl-C.

    The page loads itself again while a question is pending. Another one, /runs, lists all runs of --runs-dir: filter
    them, open one, or open several together.
    """
    from medexam.cli.stored.actions.watch import serve_runs

    serve_runs(runs, runs_dir, port, every)
