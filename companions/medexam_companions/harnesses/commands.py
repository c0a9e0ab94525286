"""`medexam import` and `medexam export`: results of other harnesses as runs, and runs as their files; asks no model."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from medexam.cli import ImportSettings, JsonOption, RunsDirOption, settings_as_flags


@settings_as_flags
def import_results(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="samples_*.jsonl of lm-evaluation-harness or Every Eval Ever, a log of Inspect, scenario_state.json "
            "of HELM, predictions of OpenCompass, reviews of EvalScope, details of lighteval, *_allresults.json of "
            "simple-evals, or a table of question and answer.",
        ),
    ],
    settings: ImportSettings,
    runs_dir: RunsDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make runs of the results of other harnesses; asks no model.

    For example:
        medexam import samples_headqa_en.jsonl --dataset headqa_v1
    """
    from medexam_companions.harnesses.actions import import_files

    import_files(files, settings, runs_dir, as_json=as_json)


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
    """Write runs as files of lm-evaluation-harness, Inspect or Every Eval Ever, or for the hub; sends nothing.

    For example:
        medexam export 3c2aae --to lm-eval --out export
    """
    from medexam_companions.harnesses.actions import export_stored

    export_stored(runs, to, out, runs_dir, as_json=as_json)
