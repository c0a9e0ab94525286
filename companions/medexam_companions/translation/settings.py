"""The flags of `medexam data translate` and `medexam data quality`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from medexam.cli import FailuresOption, PathOption, RunsDirOption, Setting, TrackingOption


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


@dataclass(frozen=True)
class QualitySettings:
    """What is measured of translations, or which sheet is written or read."""

    back: Annotated[
        bool, Setting("Translate back with the same model, for the round trip.", flag="--back/--no-back")
    ] = True
    back_setup: Annotated[str, Setting("The setup with the prompt for translating back.", metavar="SETUP")] = "expert"
    only_selected: Annotated[bool, Setting("Translate back only the chosen translations.")] = False
    reference: Annotated[bool, Setting("Compare with the data set's own translation, if it has one.")] = False
    bert: Annotated[bool, Setting("Compute BERTScore beside BLEU.", flag="--bert/--no-bert")] = True
    bert_model: Annotated[str | None, Setting("A folder or a hub id.", metavar="MODEL")] = None
    bert_layer: Annotated[int | None, Setting("The layer; for known hub ids that of bert-score by default.", min=1)] = (
        None
    )
    sheet: Annotated[
        Path | None, Setting("Write a CSV sheet of 60 questions for reviewers and stop.", metavar="FILE")
    ] = None
    seed: Annotated[int, Setting("Chooses the questions of --sheet.")] = 0
    reviews: Annotated[
        tuple[Path, ...], Setting("A filled-in sheet; may be repeated. Reads them and stops.", metavar="FILE")
    ] = ()
    runs_dir: RunsDirOption = None
    max_failures: FailuresOption = None
    tracking_uri: TrackingOption = None

    @property
    def scored(self) -> bool:
        """Whether there are texts to compare."""
        return self.back or self.reference
