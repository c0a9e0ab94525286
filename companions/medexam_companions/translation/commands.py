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
    Setting,
    TrackingOption,
    refuse,
    settings_as_flags,
)
from medexam.errors import SpecError


@dataclass(frozen=True)
class TranslateSettings:
    """From which language into which, how, and where to."""

    source: Annotated[str, Setting("The language to translate from.", flag="--from", metavar="LANGUAGE")] = "es"
    target: Annotated[str, Setting("The language to translate to.", flag="--to", metavar="LANGUAGE")] = "en"
    setups: Annotated[str, Setting("Set-ups to choose among.", metavar="A,B")] = "zero_shot,one_shot,expert"
    overrides: Annotated[
        tuple[str, ...],
        Setting("A key of model, base or dataset, such as model.engine=vllm.", flag="--set", metavar="KEY=VALUE"),
    ] = ()
    limit: Annotated[int | None, Setting("Translate at most N questions, spread evenly over the exams.", min=1)] = None
    path: PathOption = None
    words: Annotated[Path | None, Setting("A YAML file with prompts of your own.", metavar="FILE")] = None
    out: Annotated[
        Path | None, Setting("The folder to write; one of the runs directory by default.", metavar="DIR")
    ] = None
    runs_dir: RunsDirOption = None
    max_failures: FailuresOption = None
    tracking_uri: TrackingOption = None


@dataclass(frozen=True)
class QualitySettings:
    """What is measured of translations."""

    back: Annotated[
        bool, Setting("Translate back with the same model, for the round trip.", flag="--back/--no-back")
    ] = True
    reference: Annotated[bool, Setting("Compare with the data set's own translation, if it has one.")] = False
    bert: Annotated[bool, Setting("Compute BERTScore beside BLEU.", flag="--bert/--no-bert")] = True
    bert_model: Annotated[str | None, Setting("A folder or a hub id.", metavar="MODEL")] = None
    bert_layer: Annotated[int | None, Setting("The layer; for known hub ids that of bert-score by default.", min=1)] = (
        None
    )
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
