"""`medexam export`: stored runs as the files of other harnesses and of the hub, without asking a model."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from medexam.toolkit.commands import JsonOption, RunsDirOption, print_json, read_current

RunsArgument = Annotated[
    list[Path], typer.Argument(metavar="RUN...", help="Run folders, folders of runs, or ids in the runs directory.")
]


def export(
    runs: RunsArgument,
    to: Annotated[
        Literal["lm-eval", "inspect", "every-eval-ever", "hub"],
        typer.Option(help="The format; hub is a data set for the Hugging Face hub with its card."),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write into.")] = Path("export"),
    runs_dir: RunsDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write runs as files of lm-evaluation-harness, Inspect or Every Eval Ever, or for the hub; sends nothing."""
    from medexam.companions.harnesses.exports.writing import export_runs
    from medexam.toolkit.commands import default_runs_dir, run_paths
    from medexam.toolkit.runs import find_runs

    stored_runs = read_current(find_runs(run_paths(runs, runs_dir or default_runs_dir())))
    paths = export_runs(stored_runs, to, out)
    if as_json:
        print_json([str(path) for path in paths])
    else:
        sys.stdout.writelines(f"{path}\n" for path in paths)
