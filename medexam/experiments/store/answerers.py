"""Which models answered what a folder holds, and whether the one at hand may continue.

`models.json` has one entry for each model, under the print that its predictions carry. The first answered first; a
further one is there only where the user accepted it, or where an answer said itself that it comes from another.
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pydantic import ValidationError

from medexam.errors import RunFolderError
from medexam.experiments.store.run_folder import WorkFolder
from medexam.frozen_model import FrozenModel
from medexam.model_identity import Answerer, ModelIdentity
from medexam.predictions import Prediction, Status
from medexam.specs.base import describe_faults

MODELS = "models.json"
RUN_WAYS_OUT = "start over with --fresh, or add --accept-model-change, which every table will show"


class KnownModel(FrozenModel):
    """One entry of `models.json`."""

    identity: ModelIdentity
    since: str
    """When it first answered, in UTC."""
    doubts: tuple[dict[str, Any], ...] = ()
    """When another model was seen to answer behind it: `answers` given since it was last seen, each by either of the
    two, and their `differences`."""


class AnswererCount(NamedTuple):
    """How many of a run's answers one model gave."""

    print: str | None
    """None where answers carry none."""
    name: str
    answers: int
    doubtful: int = 0
    """How many of them another model may have given, which answered when the questions were asked."""


def are_mixed(counts: Sequence[AnswererCount]) -> bool:
    """Return whether the answers are, or may be, of more than one model."""
    return len(counts) > 1 or any(count.doubtful for count in counts)


def read_models(folder: WorkFolder, file: str = MODELS) -> dict[str, KnownModel]:
    """Read the models by print, in the order in which they came; empty where none is noted.

    Raises `RunFolderError` for a damaged file.
    """
    if not (folder.path / file).exists():
        return {}
    try:
        return {key: KnownModel.model_validate(value) for key, value in folder.read_json(file).items()}
    except ValidationError as error:
        raise RunFolderError(
            f"{folder.path / file} is damaged ({describe_faults(error)}): which model answered is unknown; "
            "restore it, or start another run with --fresh"
        ) from None


def note_doubt(folder: WorkFolder, answerer: Answerer, answers: int, differences: Sequence[str]) -> None:
    """Note that `answers` of this model may be another's, which differs so; the folder must be locked."""
    models = folder.read_json(MODELS)
    doubt = {"at": _now(), "answers": answers, "differences": list(differences)}
    models[answerer.print]["doubts"].append(doubt)
    folder.write_json(MODELS, models)


def admit(
    folder: WorkFolder,
    identity: ModelIdentity,
    *,
    answers: int,
    accept: bool = False,
    file: str = MODELS,
    ways_out: str = RUN_WAYS_OUT,
) -> Answerer:
    """Let a model answer in a folder that already holds `answers` of them, and return which print its answers carry.

    The folder must be locked, and `file` keeps its models. Raises `RunFolderError` where another model gave those
    answers, unless `accept`: then the model is noted beside the first. `ways_out` ends the message.
    """
    models, reason = read_models(folder, file) if answers else {}, ""
    for key, entry in models.items():
        differences = entry.identity.differences(identity)
        if not differences:
            return Answerer(key, identity.name)
        reason = reason or f" ({'; '.join(differences)})"
    if answers and not accept:
        first = next((entry.identity for entry in models.values()), None)
        owner = f"of {first.name} (print {first.print})" if first else f"of a model that no {file} names"
        raise RunFolderError(
            f"{folder.kind} {folder.name} cannot continue: its {answers:,} answers are {owner}, and now another model "
            f"answers{reason}; restore the first model, {ways_out}"
        )
    models[identity.print] = KnownModel(identity=identity, since=_now())
    folder.write_json(file, {key: entry.model_dump(mode="json") for key, entry in models.items()})
    return Answerer(identity.print, identity.name)


def count_answerers(
    predictions: Iterable[Prediction], questions: Container[str], models: Mapping[str, KnownModel]
) -> tuple[AnswererCount, ...]:
    """Count how many of these questions each model answered, the commonest model first.

    Of several predictions of a question the last counts. Those that failed and those that no model was asked for count
    for none. Models are told apart by the prints of their answers; by their names where answers carry no print.
    """
    by_question: dict[str, tuple[str | None, str | None]] = {}
    for prediction in predictions:
        key, has_answer = prediction.answered_by, prediction.status is not Status.FAILED
        if has_answer and (key or prediction.model) and prediction.question in questions:
            by_question[prediction.question] = key, None if key in models else prediction.model
    counts = Counter(by_question.values()).most_common()
    # Replies that name their model otherwise carry a print that is derived from the admitted one: doubts are of all.
    doubts = sum(doubt["answers"] for entry in models.values() for doubt in entry.doubts)
    names = {key: entry.identity.name for key, entry in models.items()}
    return tuple(
        AnswererCount(key, name or names.get(key or "", "an unknown model"), answers, min(answers, doubts))
        for (key, name), answers in counts
    )


def describe_answerers(counts: Sequence[AnswererCount]) -> str:
    """Describe who answered, by their prints if they have some, such as `A 1a2b3c4d (200) + B 5e6f7a8b (100)`."""
    return " + ".join(
        f"{count.name.rsplit('/', 1)[-1]}{f' {count.print}' if count.print else ''} ({count.answers:,}"
        f"{f', {count.doubtful:,} in doubt' if count.doubtful else ''})"
        for count in counts
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
