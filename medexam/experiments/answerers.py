"""Which models answered what a folder holds, and whether the one at hand may go on.

`models.json` has one entry for each model, under the print that its predictions carry. The first answered first; a
further one is there only where the user accepted it, or where an answer said itself that it comes from another.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from medexam.errors import RunFolderError
from medexam.experiments.work_folder import WorkFolder
from medexam.model_identity import Answerer, ModelIdentity
from medexam.predictions import Prediction, Status

MODELS = "models.json"


class KnownModel(BaseModel):
    """One entry of `models.json`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    identity: ModelIdentity
    since: str
    """When it first answered, in UTC."""
    seen: tuple[dict[str, Any], ...] = ()
    """What changed no answer and was different at a later time: when, and the notes that changed."""


class AnswererCount(NamedTuple):
    """How many of a run's answers one model gave."""

    print: str | None
    """None in a folder that was written before answers carried a print."""
    name: str
    answers: int


def read_models(folder: WorkFolder) -> dict[str, KnownModel]:
    """The models by print, in the order in which they came; empty where none is noted.

    Raises `RunFolderError` for a damaged file.
    """
    if not (folder.path / MODELS).exists():
        return {}
    try:
        return {key: KnownModel.model_validate(value) for key, value in folder.read_json(MODELS).items()}
    except ValidationError as error:
        raise RunFolderError(
            f"{folder.path / MODELS} is damaged ({error.errors()[0]['msg']}), so nobody knows which model answered; "
            "restore it, or start another run with --fresh"
        ) from None


def admit(folder: WorkFolder, identity: ModelIdentity, *, answers: int, accept: bool = False) -> Answerer:
    """Let a model answer in a folder that already holds so many answers; which print its answers carry.

    The folder must be locked. Raises `RunFolderError` where another model gave those answers, unless `accept`: then the
    model is noted beside the first. What changes no answer is noted too.
    """
    known = read_models(folder) if answers else {}
    for key, entry in known.items():
        if not entry.identity.differences(identity):
            if changed := _latest(entry).changed_notes(identity):
                seen = (*entry.seen, {"at": _now(), **changed})
                _write(folder, {**known, key: entry.model_copy(update={"seen": seen})})
            return Answerer(key, identity.name, shorter=_is_shorter(entry.identity, identity))
    if answers and not accept:
        first = next((entry.identity for entry in known.values()), None)
        whose = f"of {_name(first)}" if first else f"of a model that no {MODELS} names"
        found = f" ({'; '.join(first.differences(identity))})" if first else ""
        raise RunFolderError(
            f"{folder.kind} {folder.name} cannot go on: its {answers:,} answers are {whose}, and now another model "
            f"answers{found}; bring the first one back, start anew with --fresh, or add --accept-model-change, which "
            "every table will show"
        )
    _write(folder, {**known, identity.print: KnownModel(identity=identity, since=_now())})
    return Answerer(identity.print, identity.name)


def count_answerers(predictions: Iterable[Prediction], known: Mapping[str, KnownModel]) -> tuple[AnswererCount, ...]:
    """Which models answered how often, the commonest first; by their names alone where answers carry no print.

    Questions that no model was asked, or that failed, count for none.
    """
    counts = Counter(
        (one.answered_by, one.model if one.answered_by not in known else None)
        for one in predictions
        if one.status is not Status.FAILED and (one.answered_by is not None or one.model is not None)
    )
    # An answer of before has no print, and no model where its prompt did not fit.
    return tuple(
        AnswererCount(key, known[key].identity.name if key in known else model or "an unknown model", answers)
        for (key, model), answers in counts.most_common()
    )


def describe_answerers(counts: Iterable[AnswererCount]) -> str:
    """Such as `200 answers of A (print 1a2b3c4d), 100 of B (print 5e6f7a8b)`."""
    parts = [f"{one.name}{f' (print {one.print})' if one.print else ''}" for one in counts]
    numbers = [one.answers for one in counts]
    return ", ".join(
        f"{number:,}{' answers' if place == 0 else ''} of {part}"
        for place, (number, part) in enumerate(zip(numbers, parts, strict=True))
    )


def _latest(entry: KnownModel) -> ModelIdentity:
    """The entry with the notes as they were last."""
    notes = dict(entry.identity.notes)
    for seen in entry.seen:
        notes |= {name: value for name, value in seen.items() if name != "at"}
    return entry.identity.model_copy(update={"notes": notes})


def _is_shorter(before: ModelIdentity, now: ModelIdentity) -> bool:
    limits = [one.notes.get("max_context") for one in (before, now)]
    return all(isinstance(limit, int) for limit in limits) and int(limits[1] or 0) < int(limits[0] or 0)


def _name(identity: ModelIdentity) -> str:
    return f"{identity.name} (print {identity.print})"


def _write(folder: WorkFolder, known: Mapping[str, KnownModel]) -> None:
    folder.write_json(MODELS, {key: entry.model_dump(mode="json") for key, entry in known.items()})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
