"""`medexam watch`: the page of runs while they are asked, on this machine alone."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from medexam.cli.help.completion import complete_run
from medexam.cli.options import RunsDirOption, TrustOption


def watch(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RUN...]", autocompletion=complete_run, help="Runs as in `report`; all in --runs-dir by default."
        ),
    ] = None,
    runs_dir: RunsDirOption = None,
    trust: TrustOption = False,  # noqa: ARG001 - its callback has done it
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 5050,
    every: Annotated[float, typer.Option(min=1, metavar="SECONDS", help="Seconds between two looks.")] = 15,
) -> None:
    """Serve the page of runs on 127.0.0.1 while they are asked, until Ctrl-C.

    The page loads itself again while a question is pending.
    """
    from medexam.experiments.entry.live_page import HOST, LivePage, serve_page
    from medexam.experiments.store.paths import default_runs_dir
    from medexam.experiments.track.ui import check_port

    root = runs_dir or default_runs_dir()
    check_port(HOST, port)
    page = LivePage(tuple(runs or [root]), root, every)
    sys.stderr.write(f"The page is at http://{HOST}:{port}; Ctrl-C ends it\n")
    serve_page(page, port)
