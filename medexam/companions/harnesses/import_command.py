"""`medexam import`: results of other harnesses as runs, without asking a model."""

from pathlib import Path
from typing import Annotated

import typer

from medexam.toolkit.commands import ImportSettings, JsonOption, RunsDirOption, settings_as_flags


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
    """Make runs of the results of other harnesses; asks no model."""
    from medexam.companions.harnesses.actions import import_files

    import_files(files, settings, runs_dir, as_json=as_json)
