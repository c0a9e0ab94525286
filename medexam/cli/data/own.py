"""`medexam data init`: look at a file of your own questions and write a spec."""

from pathlib import Path
from typing import Annotated

import typer

KindOption = Annotated[
    str | None, typer.Option("--kind", help="With --path, your own questions: choice, short_answer or spans.")
]


def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Questions as JSONL, JSON, CSV, TSV, Parquet or XLSX.")],
    out: Annotated[Path | None, typer.Option(help="The spec to write; FILE's name with .yaml by default.")] = None,
    kind: Annotated[
        str | None, typer.Option(help="choice, short_answer or spans; recognised from FILE by default.")
    ] = None,
    answers: Annotated[
        Path | None, typer.Option(metavar="KEY", help="The right answers, if they are in another file.")
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(help=("The column that FILE and KEY share; by default both have the same order of rows.")),
    ] = None,
) -> None:
    """Look at a file of your own questions and write a spec that asks them; exit code 3 if something is to decide."""
    from medexam.cli.data.actions.own import write_spec

    write_spec(file, out, kind, answers, on)
