"""Which models answered what a folder holds, and whether the one at hand may continue.

`models.json` has one entry for each model, under the print that its predictions carry. The first answered first; a
further one is there only where the user accepted it, or where an answer said itself that it comes from another.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pydantic import ValidationError

from medexam.errors import RunFolderError
from medexam.experiments.store.work_folder import WorkFolder, describe_fault
from medexam.frozen_model import FrozenModel
from medexam.model_identity import Answerer, ModelIdentity
from medexam.predictions import Prediction, Status

MODELS = "models.json"
RUN_WAYS_OUT = "start anew with --fresh, or add --accept-model-change, which every table will show"


class KnownModel(FrozenModel):
    """One entry of `models.json`."""

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


def read_models(folder: WorkFolder, file: str = MODELS) -> dict[str, KnownModel]:
    """The models by print, in the order in which they came; empty where none is noted.

    Raises `RunFolderError` for a damaged file.
    """
    if not (folder.path / file).exists():
        return {}
    try:
        return {key: KnownModel.model_validate(value) for key, value in folder.read_json(file).items()}
    except ValidationError as error:
        raise RunFolderError(
            f"{folder.path / file} is damaged ({describe_fault(error)}), so nobody knows which model answered; "
            "restore it, or start another run with --fresh"
        ) from None


def admit(
    folder: WorkFolder,
    identity: ModelIdentity,
    *,
    answers: int,
    count_cut: Callable[[], int] = lambda: 0,
    accept: bool = False,
    file: str = MODELS,
    ways_out: str = RUN_WAYS_OUT,
) -> Answerer:
    """Let a model answer in a folder that already holds `answers` of them; which print its answers carry.

    `count_cut` counts the prompts that did not fit the model's context, which matters where the context has changed.
    The folder must be locked, and `file` keeps its models. Raises `RunFolderError` where another model gave those
    answers, unless `accept`: then the model is noted beside the first. `ways_out` ends the message. What changes no
    answer is noted too.
    """
    known = read_models(folder, file) if answers else {}
    found: list[str] = []
    for key, entry in known.items():
        now_found = _differences(entry.identity, identity, count_cut)
        if not now_found:
            if changed := _latest(entry).changed_notes(identity):
                seen = (*entry.seen, {"at": _now(), **changed})
                _write(folder, file, {**known, key: entry.model_copy(update={"seen": seen})})
            return Answerer(key, identity.name, shorter=_context(identity) < _context(entry.identity))
        found = found or now_found
    if answers and not accept:
        first = next((entry.identity for entry in known.values()), None)
        whose = f"of {first.name} (print {first.print})" if first else f"of a model that no {file} names"
        told = f" ({'; '.join(found)})" if found else ""
        raise RunFolderError(
            f"{folder.kind} {folder.name} cannot continue: its {answers:,} answers are {whose}, and now another model "
            f"answers{told}; bring the first one back, {ways_out}"
        )
    _write(folder, file, {**known, identity.print: KnownModel(identity=identity, since=_now())})
    return Answerer(identity.print, identity.name)


def count_answerers(
    predictions: Iterable[Prediction], questions: Container[str], known: Mapping[str, KnownModel]
) -> tuple[AnswererCount, ...]:
    """Which models answered how many of these questions, the commonest first.

    Of several predictions of a question the last counts. Those that failed and those that no model was asked for count
    for none. Models are told apart by the prints of their answers; by their names where answers carry no print.
    """
    by_question: dict[str, tuple[str | None, str | None]] = {}
    alike: dict[tuple[str | None, str | None], tuple[str | None, str | None]] = {}
    for one in predictions:
        answered = one.status is not Status.FAILED and (one.answered_by or one.model)
        if answered and one.question in questions:
            who = (one.answered_by, None if one.answered_by in known else one.model)
            by_question[one.question] = alike.setdefault(who, who)
    names = {key: entry.identity.name for key, entry in known.items()}
    return tuple(
        AnswererCount(key, name or names.get(key or "", "an unknown model"), answers)
        for (key, name), answers in Counter(by_question.values()).most_common()
    )


def describe_answerers(counts: Sequence[AnswererCount]) -> str:
    """Such as `200 answers of A (print 1a2b3c4d), 100 of B (print 5e6f7a8b)`; empty where no model answered."""
    whose = [f"of {one.name}{f' (print {one.print})' if one.print else ''}" for one in counts]
    words = [f"{one.answers:,} {part}" for one, part in zip(counts, whose, strict=True)]
    return ", ".join([f"{counts[0].answers:,} answers {whose[0]}", *words[1:]]) if counts else ""


def label_answerers(counts: Sequence[AnswererCount]) -> str:
    """Several models as one short name, such as `A (200) + B (100)`; with their prints if their names are the same."""
    names = [one.name.rsplit("/", 1)[-1] for one in counts]
    alike = len(set(names)) < len(names)
    return " + ".join(
        f"{name} {one.print} ({one.answers:,})" if alike and one.print else f"{name} ({one.answers:,})"
        for name, one in zip(names, counts, strict=True)
    )


def describe_models(counts: Sequence[AnswererCount], known: Mapping[str, KnownModel]) -> list[str]:
    """Each model that answered in words, the commonest first: all that was found out of it, and how many answers."""
    said = {key: entry.identity.describe() for key, entry in known.items()}
    return [f"{one.answers:,} answers of {said.get(one.print or '', one.name)}" for one in counts]


def _differences(before: ModelIdentity, now: ModelIdentity, count_cut: Callable[[], int]) -> list[str]:
    found = before.differences(now)
    if not found and _context(before) != _context(now) and (cut := count_cut()):
        found = [f"its context has {_context(now):,} tokens, not {_context(before):,}, and {cut:,} prompts did not fit"]
    return found


def _context(identity: ModelIdentity) -> float:
    """Tokens; infinite where the server does not tell."""
    return float(identity.notes.get("max_context") or "inf")


def _latest(entry: KnownModel) -> ModelIdentity:
    """The entry with the notes as they were last."""
    notes = dict(entry.identity.notes)
    for seen in entry.seen:
        notes |= {name: value for name, value in seen.items() if name != "at"}
    return entry.identity.model_copy(update={"notes": notes})


def _write(folder: WorkFolder, file: str, known: Mapping[str, KnownModel]) -> None:
    folder.write_json(file, {key: entry.model_dump(mode="json") for key, entry in known.items()})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
