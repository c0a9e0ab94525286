"""Is a data set sound: what it holds, counted, and every anomaly, told apart into errors and notes.

An error means that answers or comparisons would be wrong; a note is something that real exams and their translations
are known to contain. It reports and never repairs.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pydantic import computed_field

from medexam.datasets.fingerprints import (
    fingerprint_golds,
    fingerprint_questions,
    fingerprint_task_golds,
    fingerprint_tasks,
)
from medexam.datasets.loading import find_unsound, load_rows
from medexam.datasets.locating import find_languages
from medexam.datasets.own.columns import read_questions
from medexam.datasets.own.questions import parse_words, read_choice_questions
from medexam.datasets.rows import Reading, Row, TaskReading
from medexam.datasets.symbols import as_published, find_private
from medexam.frozen_model import FrozenModel
from medexam.inputs import is_there
from medexam.questions import Language, Question
from medexam.specs import DatasetSpec
from medexam.specs.catalogue import CATALOGUE

_UNANSWERED = "no_official_answer"


class Anomaly(FrozenModel):
    """One thing that is not as it should be."""

    kind: str
    """What sort of thing, such as `gold_is_no_option`."""
    place: str
    """The question's key, or the exam or line if there is none."""
    detail: str


class LanguageCheck(FrozenModel):
    """What one language of a data set holds."""

    language: Language
    source: str
    version: str
    fingerprint: str
    """SHA-256 of the readable questions, in hexadecimal."""
    published_fingerprint: str
    """The same of the questions as they stand in the files; another one if characters were corrected."""
    golds_fingerprint: str
    """SHA-256 of what their golds are, in hexadecimal."""
    exams: int
    questions: int
    """Readable questions, those without an official answer included."""
    without_official_answer: int
    with_images: int
    by_option_count: dict[int, int]
    by_discipline: dict[str, dict[int, int]]
    """Questions by discipline, then by year."""
    errors: tuple[Anomaly, ...]
    notes: tuple[Anomaly, ...]
    corrections: tuple[Anomaly, ...] = ()
    """Characters that are read as others; a run with `dataset.as_published` asks them as they are."""


class CheckReport(FrozenModel):
    """What a check of a data set found."""

    name: str
    languages: tuple[LanguageCheck, ...]
    language_errors: tuple[Anomaly, ...]
    """Where the languages disagree; empty if only one was checked."""
    language_notes: tuple[Anomaly, ...]
    """Where the languages differ as their authors say they do."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def passed(self) -> bool:
        """Whether there is no error; notes do not count."""
        return not self.language_errors and not any(check.errors for check in self.languages)


def check_exam_set(name: str, languages: Sequence[Language] | None = None, path: Path | None = None) -> CheckReport:
    """Read `name` in `languages`, or in every language that is here when None, and report what it holds.

    It does not stop at an unreadable question, as loading does. Raises `DatasetError` if a whole file cannot be read.
    """
    language_codes = tuple(languages) if languages else find_languages(name, path)
    readings = {language: load_rows(name, language, path) for language in language_codes}
    differences: list[Anomaly] = []
    for other in language_codes[1:]:
        differences += compare_languages(readings[language_codes[0]], language_codes[0], readings[other], other)
    harmless = {"missing_in_language"} if CATALOGUE[name].may_miss_translations else set()
    return CheckReport(
        name=name,
        languages=tuple(check_reading(reading, language) for language, reading in readings.items()),
        language_errors=tuple(anomaly for anomaly in differences if anomaly.kind not in harmless),
        language_notes=tuple(anomaly for anomaly in differences if anomaly.kind in harmless),
    )


def check_own_set(spec: DatasetSpec) -> CheckReport:
    """Read questions of one's own and report what they hold; rows that a spec leaves out are notes, not errors.

    Raises `DatasetError` if the source cannot be read, or if how to read it has to be decided.
    """
    if spec.kind == "choice":
        reading = read_choice_questions(spec)
        checked = check_reading(reading, spec.language)
        checked = checked.model_copy(update={"notes": tuple(map(_named_for_own, checked.notes))})
        faults = reading.faults
    else:
        table = read_questions(spec)
        rows, faults = parse_words(table, spec)
        tasks = TaskReading(source=table.source, version="own", rows=rows)
        checked = LanguageCheck(
            language=spec.language,
            source=table.source,
            version=tasks.version,
            fingerprint=fingerprint_tasks(rows),
            published_fingerprint=fingerprint_tasks(rows),
            golds_fingerprint=fingerprint_task_golds(tasks),
            exams=0,
            questions=len(rows),
            without_official_answer=0,
            with_images=0,
            by_option_count={},
            by_discipline={group: {0: n} for group, n in Counter(row.task.group for row in rows).items()},
            errors=(),
            notes=(),
        )
    bad = tuple(Anomaly(kind="unreadable", place=fault.place, detail=fault.detail) for fault in faults)
    others = tuple(error for error in checked.errors if error.kind != "unreadable")
    errors, notes = (others, (*bad, *checked.notes)) if spec.skip_bad else ((*bad, *others), checked.notes)
    checked = checked.model_copy(update={"errors": errors, "notes": notes})
    return CheckReport(name=spec.name, languages=(checked,), language_errors=(), language_notes=())


def _named_for_own(note: Anomaly) -> Anomaly:
    """Name the note for one's own questions: those without a gold have several, all of which would have to be named."""
    return note.model_copy(update={"kind": "several_right_answers"}) if note.kind == _UNANSWERED else note


def check_reading(reading: Reading, language: Language) -> LanguageCheck:
    """Count one reading and list its anomalies."""
    questions = [row.question for row in reading.rows]
    by_discipline: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for question in questions:
        by_discipline[question.exam.discipline][question.exam.year or 0] += 1
    return LanguageCheck(
        language=language,
        source=reading.source,
        version=reading.version,
        fingerprint=fingerprint_questions(reading.rows),
        published_fingerprint=fingerprint_questions(as_published(reading)),
        golds_fingerprint=fingerprint_golds(reading.rows),
        exams=len({question.exam for question in questions}),
        questions=len(questions),
        without_official_answer=sum(row.gold is None for row in reading.rows),
        with_images=sum(question.image is not None for question in questions),
        by_option_count=dict(sorted(Counter(len(question.options) for question in questions).items())),
        by_discipline={name: dict(sorted(years.items())) for name, years in sorted(by_discipline.items())},
        errors=tuple(_find_errors(reading)),
        notes=tuple(_find_notes(reading)),
        corrections=tuple(_find_private(reading.published.values())),
    )


def compare_languages(first: Reading, first_name: str, second: Reading, second_name: str) -> list[Anomaly]:
    """List where two languages of one data set disagree: questions, golds, option numbers or pictures."""
    rows, others = ({row.question.key: row for row in reading.rows} for reading in (first, second))
    anomalies = [_missing(key, second_name) for key in rows if key not in others]
    anomalies += [_missing(key, first_name) for key in others if key not in rows]
    for key in rows:
        if key in others:
            anomalies += _differences(rows[key], first_name, others[key], second_name)
    return anomalies


def _missing(key: str, language: str) -> Anomaly:
    return Anomaly(kind="missing_in_language", place=key, detail=f"is not there in {language}")


def _differences(row: Row, name: str, other: Row, other_name: str) -> Iterator[Anomaly]:
    key = row.question.key
    for kind, fact, other_fact in (
        ("gold_differs", row.gold, other.gold),
        ("option_numbers_differ", list(row.question.option_numbers), list(other.question.option_numbers)),
        ("image_differs", row.question.image, other.question.image),
    ):
        if fact != other_fact:
            yield Anomaly(kind=kind, place=key, detail=f"{fact} in {name}, {other_fact} in {other_name}")


def _find_errors(reading: Reading) -> Iterator[Anomaly]:
    for kind, place, detail in find_unsound(reading):
        yield Anomaly(kind=kind, place=place, detail=detail)
    for row in reading.rows:
        question = row.question
        if not question.stem.strip():
            yield Anomaly(kind="empty_stem", place=question.key, detail="nothing is asked")
        empty = [option.number for option in question.options if not option.text.strip()]
        if empty:
            yield Anomaly(kind="empty_option", place=question.key, detail=f"no text in options {empty}")


def _find_notes(reading: Reading) -> Iterator[Anomaly]:
    same_text: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    same_stem: defaultdict[str, list[str]] = defaultdict(list)
    for row in reading.rows:
        question = row.question
        if row.gold is None:
            yield Anomaly(kind=_UNANSWERED, place=question.key, detail="is left out when the set is asked")
        texts = [option.text for option in question.options]
        if twins := sorted({text for text in texts if text.strip() and texts.count(text) > 1}):
            yield Anomaly(kind="identical_options", place=question.key, detail=f"two options read {twins[0]!r}")
        same_text[question.stem, *texts].append(question.key)
        same_stem[question.stem].append(question.key)
    for keys in same_text.values():
        if len(keys) > 1:
            yield Anomaly(kind="repeated_question", place=keys[0], detail=f"same text as {', '.join(keys[1:])}")
    for keys in same_stem.values():
        if len(keys) > 1:
            yield Anomaly(kind="repeated_stem", place=keys[0], detail=f"same stem as {', '.join(keys[1:])}")
    for anomaly in _find_private(row.question for row in reading.rows):
        detail = f"{anomaly.detail}; it is not changed: look it up in the exam, and correct the file"
        yield anomaly.model_copy(update={"detail": detail})
    yield from _find_missing_pictures(reading)


def _find_private(questions: Iterable[Question]) -> Iterator[Anomaly]:
    """Find characters without a meaning of their own, and the sign that each stands for if it is known."""
    for question in questions:
        for character in find_private(question):
            sign = "of no known sign" if character.sign is None else f"for {character.sign!r}"
            detail = f"{character.code} in {character.place}, {sign}: {character.around!r}"
            yield Anomaly(kind="private_use_character", place=question.key, detail=detail)


def _find_missing_pictures(reading: Reading) -> Iterator[Anomaly]:
    if sum(row.question.image is not None for row in reading.rows) <= reading.pictures_inside:
        return
    pictures = {row.question.image for row in reading.rows} - {None, "embedded"}
    missing = sorted(image for image in pictures if image is not None and not is_there(reading.folder / image))
    if missing:
        detail = (
            f"{len(missing)} of {len(pictures)} picture files are not here, such as {missing[0]}; no program needs them"
        )
        yield Anomaly(kind="pictures_not_here", place=str(reading.folder), detail=detail)
