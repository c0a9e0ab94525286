"""Is a data set sound: what it holds, counted, and every anomaly, told apart into errors and notes.

An error means that answers or comparisons would be wrong; a note is something that real exams and their translations
are known to contain. It reports and never repairs.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import Field, computed_field

from medexam.datasets.loading import find_unsound, load_rows
from medexam.datasets.locating import find_languages
from medexam.datasets.own.questions import parse_words, read_choice_questions, read_questions
from medexam.datasets.rows import Reading, find_private
from medexam.frozen_model import FrozenModel
from medexam.questions import Language
from medexam.specs import DatasetSpec
from medexam.specs.catalogue import CATALOGUE


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
    questions: int
    """Readable questions, those without an official answer included."""
    by_discipline: dict[str, dict[int, int]]
    """Questions by discipline, then by year."""
    errors: tuple[Anomaly, ...]
    notes: tuple[Anomaly, ...]
    exams: int = 0
    without_official_answer: int = 0
    with_images: int = 0
    by_option_count: dict[int, int] = Field(default_factory=dict)
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
        differences += _compare(readings[language_codes[0]], language_codes[0], readings[other], other)
    harmless = {"missing_in_language"} if CATALOGUE[name].may_miss_translations else set()
    return CheckReport(
        name=name,
        languages=tuple(
            _check_reading(reading, language, "no_official_answer") for language, reading in readings.items()
        ),
        language_errors=tuple(anomaly for anomaly in differences if anomaly.kind not in harmless),
        language_notes=tuple(anomaly for anomaly in differences if anomaly.kind in harmless),
    )


def check_own_set(spec: DatasetSpec) -> CheckReport:
    """Read questions of one's own and report what they hold; rows that a spec leaves out are notes, not errors.

    Raises `DatasetError` if the source cannot be read, or if how to read it has to be decided.
    """
    if spec.kind == "choice":
        reading = read_choice_questions(spec)
        checked = _check_reading(reading, spec.language, "several_right_answers")
    else:
        table = read_questions(spec)
        rows, faults = parse_words(table, spec)
        checked = _check_reading(Reading(table.source, "own", (), faults), spec.language, "")
        groups = {group: {0: n} for group, n in Counter(row.task.group for row in rows).items()}
        checked = checked.model_copy(update={"questions": len(rows), "by_discipline": groups})
    if spec.skip_bad:
        left_out = tuple(error for error in checked.errors if error.kind == "unreadable")
        others = tuple(error for error in checked.errors if error.kind != "unreadable")
        checked = checked.model_copy(update={"errors": others, "notes": (*left_out, *checked.notes)})
    return CheckReport(name=spec.name, languages=(checked,), language_errors=(), language_notes=())


def _check_reading(reading: Reading, language: Language, unanswered: str) -> LanguageCheck:
    """Count one reading and list its anomalies; `unanswered` is the kind of a question without a gold."""
    questions = [row.question for row in reading.rows]
    by_discipline: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for question in questions:
        by_discipline[question.exam.discipline][question.exam.year or 0] += 1
    return LanguageCheck(
        language=language,
        source=reading.source,
        version=reading.version,
        exams=len({question.exam for question in questions}),
        questions=len(questions),
        without_official_answer=sum(row.gold is None for row in reading.rows),
        with_images=sum(question.image is not None for question in questions),
        by_option_count=dict(sorted(Counter(len(question.options) for question in questions).items())),
        by_discipline={name: dict(sorted(years.items())) for name, years in sorted(by_discipline.items())},
        errors=tuple(_find_errors(reading)),
        notes=tuple(_find_notes(reading, unanswered)),
        corrections=tuple(
            Anomaly(kind="private_use_character", place=question.key, detail=detail)
            for question in reading.published.values()
            for detail in find_private(question)
        ),
    )


def _compare(first: Reading, first_name: str, second: Reading, second_name: str) -> Iterator[Anomaly]:
    """Yield where two languages of one data set disagree: questions, golds, option numbers or pictures."""
    rows, others = ({row.question.key: row for row in reading.rows} for reading in (first, second))
    for name, missing in ((second_name, rows.keys() - others.keys()), (first_name, others.keys() - rows.keys())):
        for key in (key for key in (*rows, *others) if key in missing):
            yield Anomaly(kind="missing_in_language", place=key, detail=f"is not there in {name}")
    for key, row in rows.items():
        if other := others.get(key):
            for kind, fact, other_fact in (
                ("gold_differs", row.gold, other.gold),
                ("option_numbers_differ", list(row.question.option_numbers), list(other.question.option_numbers)),
                ("image_differs", row.question.image, other.question.image),
            ):
                if fact != other_fact:
                    yield Anomaly(kind=kind, place=key, detail=f"{fact} in {first_name}, {other_fact} in {second_name}")


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


def _find_notes(reading: Reading, unanswered: str) -> Iterator[Anomaly]:
    same_text: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    same_stem: defaultdict[str, list[str]] = defaultdict(list)
    for row in reading.rows:
        question = row.question
        if row.gold is None:
            yield Anomaly(kind=unanswered, place=question.key, detail="is left out when the set is asked")
        texts = [option.text for option in question.options]
        if twins := sorted({text for text in texts if text.strip() and texts.count(text) > 1}):
            yield Anomaly(kind="identical_options", place=question.key, detail=f"two options read {twins[0]!r}")
        same_text[question.stem, *texts].append(question.key)
        same_stem[question.stem].append(question.key)
        for detail in find_private(question):
            yield Anomaly(kind="private_use_character", place=question.key, detail=f"{detail}; it is not changed")
    for kind, groups in (("repeated_question", same_text.values()), ("repeated_stem", same_stem.values())):
        for keys in groups:
            if len(keys) > 1:
                yield Anomaly(kind=kind, place=keys[0], detail=f"the same as {', '.join(keys[1:])}")
