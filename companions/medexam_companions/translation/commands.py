"""`medexam data translate` and `medexam data quality`: an exam in another language, and how good it is."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from medexam.cli import (
    FailuresOption,
    JsonOption,
    PathOption,
    RunsDirOption,
    TrackingOption,
    refuse,
    settings_as_flags,
)
from medexam.errors import SpecError


@dataclass(frozen=True)
class TranslateSettings:
    """From which language into which, how, and where to."""

    source: Annotated[str, typer.Option("--from", metavar="LANGUAGE", help="The language to translate from.")] = "es"
    target: Annotated[str, typer.Option("--to", metavar="LANGUAGE", help="The language to translate to.")] = "en"
    setups: Annotated[str, typer.Option(metavar="A,B", help="Set-ups to choose among.")] = "zero_shot,one_shot,expert"
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A key of model, base or dataset, such as model.engine=vllm."),
    ] = None
    limit: Annotated[
        int | None, typer.Option(min=1, help="Translate at most N questions, spread evenly over the exams.")
    ] = None
    path: PathOption = None
    words: Annotated[Path | None, typer.Option(metavar="FILE", help="A YAML file with prompts of your own.")] = None
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder to write; one of the runs directory by default.")
    ] = None
    runs_dir: RunsDirOption = None
    max_failures: FailuresOption = None
    tracking_uri: TrackingOption = None


@dataclass(frozen=True)
class QualitySettings:
    """What is measured of translations."""

    back: Annotated[
        bool, typer.Option("--back/--no-back", help="Translate back with the same model, for the round trip.")
    ] = True
    reference: Annotated[
        bool, typer.Option("--reference", help="Compare with the data set's own translation, if it has one.")
    ] = False
    bert: Annotated[bool, typer.Option("--bert/--no-bert", help="Compute BERTScore beside BLEU.")] = True
    bert_model: Annotated[str | None, typer.Option(metavar="MODEL", help="A folder or a hub id.")] = None
    bert_layer: Annotated[
        int | None, typer.Option(min=1, help="The layer; for known hub ids that of bert-score by default.")
    ] = None
    runs_dir: RunsDirOption = None
    max_failures: FailuresOption = None
    tracking_uri: TrackingOption = None


@settings_as_flags
def translate(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="A data set, as `medexam data list` names it.")],
    settings: TranslateSettings,
    as_json: JsonOption = False,
) -> None:
    """Translate a data set in several ways and keep one valid translation a question; continues where it stopped.

    Exit codes: 0 the data set is written, 2 no translation is valid, 3 replies are still pending.

    For example:
        medexam data translate headqa_v1 --from es --to en --limit 30
    """
    from medexam_companions.translation.actions import translate_set

    translate_set(dataset, settings, as_json=as_json)


@settings_as_flags
def quality(
    context: typer.Context,
    settings: QualitySettings,
    folders: Annotated[
        list[Path], typer.Argument(metavar="FOLDER...", help="Folders that `medexam data translate` made.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Measure translations by BLEU and BERTScore: translated back, or against the data set's own translation.

    For example:
        medexam data quality runs/translation --reference
    """
    if not settings.back:
        refuse(context, {"max_failures"}, "it is for translating back: leave it out, or --no-back")
        if not settings.reference:
            raise SpecError("--no-back leaves nothing to measure: add --reference")
    if not settings.bert:
        refuse(context, {"bert_model", "bert_layer"}, "it is for BERTScore: leave it out, or --no-bert")
    from medexam_companions.translation.actions import measure_quality

    measure_quality(settings, folders, as_json=as_json)
