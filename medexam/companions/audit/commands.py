"""`medexam audit`: a sample of answers for people to judge, and how far measures agree with them; asks no model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medexam.companions.audit.judge_command import judge_errors
from medexam.toolkit.commands import JsonOption, RunsDirOption

if TYPE_CHECKING:
    pass

app = typer.Typer(help="Have people or a model judge answers, and compare them.", no_args_is_help=True)
app.command("judge")(judge_errors)


@app.command()
def export(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run folders, folders of runs, or ids in the runs directory.")
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to make for the sheets and the key.")],
    per_group: Annotated[int, typer.Option(min=1, metavar="N", help="Answers of each run in each group.")] = 10,
    top: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Judge only the N best answers to each question; all by default."),
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="MEASURE", help="The measure that says which are best, with --top.")
    ] = None,
    raters: Annotated[int, typer.Option(min=1, metavar="N", help="How many sheets to write.")] = 2,
    seed: Annotated[int, typer.Option(help="Chooses the answers and the order of each sheet.")] = 0,
    runs_dir: RunsDirOption = None,
) -> None:
    """Write a sheet for each rater: a sample of answers, blinded, each sheet in an order of its own."""
    from medexam.companions.audit.actions import export_answers

    export_answers(runs, out, per_group, top, by, raters, seed, runs_dir)


@app.command("import")
def import_ratings(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR|FILE", help="The folder that `export` made, or the sheet that a page saved.")
    ],
    sheet: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A filled-in sheet; may be repeated. All CSV files of DIR by default."),
    ] = None,
    runs_dir: RunsDirOption = None,
    as_json: JsonOption = False,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the tables as Markdown.")] = None,
) -> None:
    """Read filled-in sheets: how far raters agree with each other and each automatic measure with them.

    Marks of answers that have changed since they were exported are left out and named.
    """
    from medexam.companions.audit.actions import read_sheets

    read_sheets(folder, sheet or (), runs_dir, markdown, as_json=as_json)
