"""`medexam export`: stored runs as the files of other harnesses and of the hub, without asking a model."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from medexam.toolkit.commands import JsonOption, RunsDirOption

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
    from medexam.companions.harnesses.actions import export_stored

    export_stored(runs, to, out, runs_dir, as_json=as_json)
