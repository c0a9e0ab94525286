"""`medexam data translate`: an exam in another language, by the engines of this framework."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from medexam.toolkit.commands import (
    FailuresOption,
    JsonOption,
    PathOption,
    RunsDirOption,
    Setting,
    TrackingOption,
    settings_as_flags,
)


@dataclass(frozen=True)
class TranslateSettings:
    """From which language into which, how, and where to."""

    source: Annotated[str, Setting("The language to translate from.", flag="--from", metavar="LANGUAGE")] = "es"
    target: Annotated[str, Setting("A code such as en, or a name such as Basque.", flag="--to", metavar="LANGUAGE")] = (
        "en"
    )
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


@settings_as_flags
def translate(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="A data set, as `medexam data list` names it.")],
    settings: TranslateSettings,
    as_json: JsonOption = False,
) -> None:
    """Translate a data set in several ways and keep one valid translation a question; continues where it stopped.

    Exit codes: 0 the data set is written, 2 no translation is valid, 3 replies are still pending.
    """
    from medexam.companions.translation.actions import translate_set

    translate_set(dataset, settings, as_json=as_json)
