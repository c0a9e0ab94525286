"""`medexam cliniqlink`: score submissions, rank them, and run participants' containers; asks no model itself."""

from pathlib import Path
from typing import Annotated

import typer

from medexam.cli import INCOMPLETE, JsonOption, RunsDirOption, print_notice
from medexam_companions.cliniqlink.container import Engine
from medexam_companions.cliniqlink.ranking import Profile
from medexam_companions.cliniqlink.submissions import Missing

app = typer.Typer(help="Score, rank and run submissions to ClinIQLink.", no_args_is_help=True)
DataOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="The folder of the questions with their answers; the data set's by default."),
]
MissingOption = Annotated[
    Missing, typer.Option(help="Questions that a submission lacks: left out of its scores, or unanswered.")
]


@app.command("score")
def score_submission(
    submission: Annotated[
        Path, typer.Argument(metavar="SUBMISSION", help="The folder with true_false.json and the other six outputs.")
    ],
    data: DataOption = None,
    missing: MissingOption = "leave-out",
    feedback: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write feedback for the team, Markdown.")
    ] = None,
    show_expected: Annotated[bool, typer.Option(help="Show the expected answers in the feedback.")] = False,
    runs_dir: RunsDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score a participant's outputs by the released code's rules and by the paper's; the run is kept.

    For example:
        medexam cliniqlink score teams/one --feedback feedback.md
    """
    from medexam_companions.cliniqlink.actions import score_outputs

    score_outputs(submission, data, missing, feedback, runs_dir, show_expected=show_expected, as_json=as_json)


@app.command("board")
def print_board(
    submissions: Annotated[
        list[Path],
        typer.Argument(
            metavar="SUBMISSION...", help="Submissions, folders of them, and runs of cliniqlink or folders of runs."
        ),
    ],
    by: Annotated[Profile, typer.Option(help="The profile that ranks.")] = "published",
    data: DataOption = None,
    missing: MissingOption = "leave-out",
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the tables as Markdown.")] = None,
    latex: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the tables as LaTeX.")] = None,
    runs_dir: RunsDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rank submissions, and show list F1 against multi-hop inverse, and semantic minus BLEU by model size.

    For example:
        medexam cliniqlink board teams --by paper
    """
    from medexam_companions.cliniqlink.actions import rank_outputs

    rank_outputs(submissions, by, data, missing, markdown, latex, runs_dir, as_json=as_json)


@app.command("run")
def run_image(
    image: Annotated[
        str, typer.Argument(metavar="IMAGE", help="An image's name, or the path of a .sif file for Apptainer.")
    ],
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- COMMAND...]", show_default=False, help="Command to run inside, instead of the image's own."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to make for the outputs and the log.")] = Path(
        "submission"
    ),
    engine: Annotated[
        Engine | None, typer.Option(show_default=False, help="The engine; the first that is installed by default.")
    ] = None,
    data: DataOption = None,
    model: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A folder with weights, read-only in /models inside.")
    ] = None,
    minutes: Annotated[float, typer.Option(min=0.01, help="Minutes after which the container is killed.")] = 60.0,
    memory: Annotated[str | None, typer.Option(metavar="SIZE", help="Memory inside, such as 64g.")] = None,
    gpus: Annotated[str | None, typer.Option(metavar="GPUS", help="all, or numbers such as 0,1.")] = None,
    env: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="A variable of the environment.")] = None,
) -> None:
    """Start a participant's container without network: questions in, outputs out; nothing is scored.

    Questions lie in /data without their answers, and outputs belong in /results.

    For example:
        medexam cliniqlink run team.sif --out teams/one --minutes 240 --gpus 0
    """
    from medexam_companions.cliniqlink.sessions import ContainerSettings, run_submission

    settings = ContainerSettings(
        engine=engine, model=model, minutes=minutes, memory=memory, gpus=gpus, env=tuple(env or ())
    )
    complete = run_submission(image, tuple(command or ()), out, data, settings, say=print_notice)
    if not complete:
        raise typer.Exit(INCOMPLETE)
