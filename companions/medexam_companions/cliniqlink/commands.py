"""Score, rank and run submissions to ClinIQLink."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from medexam.cli import INCOMPLETE, RUNS, JsonOption, RunsDirOption, print_json, settings_as_flags, write_file
from medexam.errors import SpecError
from medexam.experiments import Terminal, print_blocks
from medexam.text import print_notice
from medexam_companions.cliniqlink.meaning import Profile
from medexam_companions.cliniqlink.submissions import Missing

Engine = Literal["docker", "podman", "apptainer"]
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
    runs_dir: RunsDirOption = RUNS,
    as_json: JsonOption = False,
) -> None:
    """Score a participant's outputs by the released code's rules and by the paper's; the run is kept.

    For example:
        medexam cliniqlink score teams/one
    """
    from medexam_companions.cliniqlink.submissions import format_table, read_submissions

    entries = read_submissions([submission], data, runs_dir, missing)
    for entry in entries:
        print_notice(f"{entry.run.folder.path}")
    if as_json:
        documents = [
            {
                "submission": entry.name,
                **entry.run.document(),
                "metrics": entry.metrics.model_dump(mode="json"),
                "absent": list(entry.absent),
                "missing": missing,
            }
            for entry in entries
        ]
        print_json(documents)
        return
    print_blocks(Terminal(), list(map(format_table, entries)))


@app.command("board")
def print_board(
    submissions: Annotated[
        list[Path],
        typer.Argument(
            metavar="SUBMISSION", help="Submissions, folders of them, and runs of cliniqlink or folders of runs."
        ),
    ],
    by: Annotated[Profile, typer.Option(help="The profile that ranks.")] = "published",
    data: DataOption = None,
    missing: MissingOption = "leave-out",
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the tables as Markdown.")] = None,
    runs_dir: RunsDirOption = RUNS,
    as_json: JsonOption = False,
) -> None:
    """Rank submissions, and show list F1 against multi-hop inverse, and semantic minus BLEU by model size.

    For example:
        medexam cliniqlink board teams --by paper
    """
    from medexam.experiments import render_markdown
    from medexam_companions.cliniqlink.ranking import rank_submissions, ranking_tables
    from medexam_companions.cliniqlink.submissions import read_submissions

    board = rank_submissions(read_submissions(submissions, data, runs_dir, missing), by)
    tables = ranking_tables(board, by)
    if markdown is not None:
        write_file(render_markdown("ClinIQLink", tables), markdown)
    if as_json:
        print_json(board)
    else:
        print_blocks(Terminal(), tables)


@dataclass(frozen=True)
class ContainerSettings:
    """What is started, and with what."""

    image: Annotated[
        str, typer.Argument(metavar="IMAGE", help="An image's name, or the path of a .sif file for Apptainer.")
    ]
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- COMMAND...]", show_default=False, help="Command to run inside, instead of the image's own."
        ),
    ] = None
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to make for the outputs and the log.")] = Path(
        "submission"
    )
    engine: Annotated[
        Engine | None, typer.Option(show_default=False, help="The engine; the first that is installed by default.")
    ] = None
    data: DataOption = None
    model: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A folder with weights, read-only in /models inside.")
    ] = None
    minutes: Annotated[float, typer.Option(min=0.01, help="Minutes after which the container is killed.")] = 60.0
    memory: Annotated[str | None, typer.Option(metavar="SIZE", help="Memory inside, such as 64g.")] = None
    gpus: Annotated[str | None, typer.Option(metavar="GPUS", help="all, or numbers such as 0,1.")] = None
    env: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="A variable of the environment.")] = None


@app.command("run")
@settings_as_flags
def run_image(settings: ContainerSettings) -> None:
    """Start a participant's container without network: questions in, outputs out; nothing is scored.

    Questions lie in /data without their answers, and outputs belong in /results.

    For example:
        medexam cliniqlink run team.sif --out teams/one --minutes 240 --gpus 0
    """
    from medexam_companions.cliniqlink.container import run_submission

    if wrong := next((variable for variable in settings.env or () if variable.find("=") < 1), None):
        raise SpecError(f"--env {wrong}: write NAME=VALUE")
    if not run_submission(settings):
        raise typer.Exit(INCOMPLETE)
