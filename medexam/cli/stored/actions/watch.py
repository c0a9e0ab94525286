"""What `medexam watch` does: serve the page of runs."""

import sys
from pathlib import Path

from medexam.cli.views.listening import check_port
from medexam.experiments.entry.live_page import HOST, INDEX, LivePage, serve_page
from medexam.experiments.store.paths import default_runs_dir, run_paths
from medexam.experiments.store.run_folder import find_runs


def serve_runs(runs: list[Path] | None, runs_dir: Path | None, port: int, every: float) -> None:
    """Serve the page of runs on 127.0.0.1 while they are asked, until Ctrl-C."""
    root = runs_dir or default_runs_dir()
    check_port(HOST, port)
    if runs:
        find_runs(run_paths(runs, root))
    page = LivePage(tuple(runs or [root]), root, every)
    sys.stderr.write(f"The page is at http://{HOST}:{port}; Ctrl-C ends it\n")
    sys.stderr.write(f"All runs of {root}: http://{HOST}:{port}{INDEX}\n")
    serve_page(page, port)
