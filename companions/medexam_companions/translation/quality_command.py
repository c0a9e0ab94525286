"""`medexam data quality`: how good translations are, by machine and by people."""

from pathlib import Path
from typing import Annotated

import typer

from medexam.cli import JsonOption, refuse, refuse_others, settings_as_flags
from medexam.errors import SpecError
from medexam_companions.translation.settings import QualitySettings


@settings_as_flags
def quality(
    context: typer.Context,
    settings: QualitySettings,
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FOLDER...", help="Folders that `medexam data translate` made.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure round trip, reference scores and lost terms of translations, or write a sheet or read filled-in ones.

    For example:
        medexam data quality runs/translation --reference
    """
    _check(context, settings, folders)
    from medexam_companions.translation.quality_actions import measure_quality

    measure_quality(settings, folders, as_json=as_json)


def _check(context: typer.Context, settings: QualitySettings, folders: list[Path] | None) -> None:
    """Raise `SpecError` for an option that would be ignored, and without a folder to look at."""
    if settings.reviews:
        refuse_others(context, {"reviews", "as_json"}, "--reviews reads filled-in sheets alone: leave it out")
        return
    if not folders:
        raise SpecError("name a FOLDER that `medexam data translate` made, or sheets to read with --reviews FILE")
    if settings.sheet is not None:
        options = {"folders", "sheet", "seed", "runs_dir"}
        refuse_others(context, options, "--sheet writes a sheet for reviewers and stops: leave it out")
        return
    refuse(context, {"seed"}, "it chooses the questions of a sheet: name the sheet with --sheet FILE")
    if not settings.back:
        asking = {"back_setup", "only_selected", "max_failures"}
        refuse(context, asking, "it is for translating back, and --no-back turns that off: leave one of them out")
    if not settings.bert:
        refuse(
            context,
            {"bert_model", "bert_layer"},
            "it is for BERTScore, and --no-bert turns that off: leave one of them out",
        )
    if not settings.scored:
        scoring = {"bert_model", "bert_layer"} | ({"bert"} if settings.bert else set())
        refuse(context, scoring, "nothing is scored with --no-back: leave it out, or add --reference")
