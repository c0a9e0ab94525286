"""`medexam audit judge`: a model of one's choice says what kind of error each wrong answer is."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medexam.toolkit.commands import JsonOption, RunsDirOption

if TYPE_CHECKING:
    pass


def judge_errors(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run folders, folders of runs, or ids in the runs directory.")
    ],
    model: Annotated[str, typer.Option(metavar="MODEL", help="The judge, such as openai/gpt-4o-mini or embedded.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder for the wrong answers and the judge's run.")],
    per_group: Annotated[int, typer.Option(min=1, metavar="N", help="Wrong answers of each run in each group.")] = 10,
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
    """
    from medexam.companions.audit.actions import judge_answers

    judge_answers(
        runs, model, out, per_group, below, instructions, seed, overrides or (), runs_dir, markdown, as_json=as_json
    )
