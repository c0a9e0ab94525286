"""`medexam audit`: a sample of answers for people to judge, and how far measures agree with them; asks no model."""

from pathlib import Path
from typing import Annotated

import typer

from medexam.cli import JsonOption, RunsDirOption

app = typer.Typer(help="Have people or a model judge answers, and compare their marks.", no_args_is_help=True)


@app.command("judge")
def judge_errors(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run folders, folders of runs, or ids in the runs directory.")
    ],
    model: Annotated[str, typer.Option(metavar="MODEL", help="The judge, such as openai/gpt-4o-mini or embedded.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder for the wrong answers and the judge's run.")],
    per_group: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many wrong answers of each run in each group.")
    ] = 10,
    below: Annotated[
        float, typer.Option(metavar="SCORE", help="An answer is wrong if its first measure is below this, 0 to 1.")
    ] = 0.5,
    instructions: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The judge's instructions, with a line `- kind: what it is` for each kind."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Chooses the answers.")] = 0,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the judge's spec, such as model.seed=1."),
    ] = None,
    runs_dir: RunsDirOption = None,
    as_json: JsonOption = False,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the tables as Markdown.")] = None,
) -> None:
    """Have a model say what kind of error each wrong answer is, and compare it with people who did so.

    The same command again asks only what is pending, and reads the sheets that were filled in meanwhile.

    For example:
        medexam audit judge 3c2aae --model openai/gpt-4o-mini --out judged
    """
    from medexam_companions.audit.actions import judge_answers

    judge_answers(
        runs, model, out, per_group, below, instructions, seed, overrides or (), runs_dir, markdown, as_json=as_json
    )


@app.command()
def export(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run folders, folders of runs, or ids in the runs directory.")
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to make for the sheets and the key.")],
    per_group: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many answers of each run in each group.")
    ] = 10,
    top: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Judge only the N best answers to each question; all by default."),
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="MEASURE", help="The measure that says which are best, with --top.")
    ] = None,
    raters: Annotated[int, typer.Option(min=1, metavar="N", help="How many sheets to write.")] = 2,
    seed: Annotated[int, typer.Option(help="The seed that chooses the answers and the order of each sheet.")] = 0,
    runs_dir: RunsDirOption = None,
) -> None:
    """Write a sheet for each rater: a sample of answers, blinded, each sheet in an order of its own.

    For example:
        medexam audit export 3c2aae --out audit --per-group 10 --raters 2
    """
    from medexam_companions.audit.actions import export_answers

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

    For example:
        medexam audit import audit --markdown audit.md
    """
    from medexam_companions.audit.actions import read_sheets

    read_sheets(folder, sheet or (), runs_dir, markdown, as_json=as_json)
