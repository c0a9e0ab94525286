"""The items that a spec asks for, with what is expected of them: exams and questions that are answered in words.

The one entrance for those who ask questions: it sends each data set to the reader of its format, refuses what is
unsound, and selects.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

from medexam.datasets.fingerprints import digest_files, fingerprint_expected, fingerprint_shown
from medexam.datasets.locating import locate_files
from medexam.datasets.own.questions import read_choice_questions, read_word_questions, reading_notes
from medexam.datasets.rows import Altered, Reading, Row, TaskReading, TaskRow, read_signs
from medexam.datasets.selection import sample_keys, select_questions, split_of
from medexam.errors import DatasetError, SpecError
from medexam.kept import keep
from medexam.plugins import load_object
from medexam.process import gc_seldom
from medexam.questions import AnswerKey, AnySet, ExamSet, Gold, Language, Question, Task, TaskGold, TaskSet
from medexam.specs import DatasetSpec
from medexam.specs.base import ALTERATIONS, BENCHMARKS
from medexam.specs.catalogue import find_entry
from medexam.specs.dataset import Alteration
from medexam.text import count_of, nearest

MOST_KEPT = 50_000
"""Items of a set that is held so that it is not read again; a larger one is not worth its memory."""
ExamReader = Callable[[Sequence[Path], Language, bool], Reading]
"""From the files of one language, and whether explanations stand before the questions, to everything they hold."""
TaskReader = Callable[[Path, DatasetSpec], TaskReading]
"""From the first file and the spec to everything that a set of questions answered in words holds."""


def _worth_keeping(items: AnySet) -> bool:
    return len(items.questions) <= MOST_KEPT


@keep(_worth_keeping)
@gc_seldom()
def load_exam_set(spec: DatasetSpec) -> ExamSet:
    """Load the questions that `spec` selects, read from this machine.

    Raises `DatasetError` if the files are missing or unsound, if a gold is no option, or if nothing is selected.
    """
    files_digest = digest_files(spec)
    notes: tuple[str, ...] = ()
    if spec.kind is None:
        reading = load_rows(
            spec.name, spec.language, spec.path, explained=spec.explained, as_published=spec.as_published
        )
        _check_sound(reading, spec.name)
    else:
        reading = read_choice_questions(spec)
        total = len(reading.rows) + len(reading.faults)
        unasked = sum(row.gold is None for row in reading.rows)
        notes = (*reading.notes, *reading_notes(reading.source, reading.faults, total, spec, unasked))
    questions = select_questions([row.question for row in reading.rows if row.gold is not None], spec)
    left_out = [row.question.key for row in reading.rows if row.gold is None]
    if spec.alter is not None:
        altered = _alter(reading.rows, spec.alter, spec.language)
        reading = replace(reading, rows=altered.rows, published={})
        question_by_key = {row.question.key: row.question for row in altered.rows}
        questions = tuple(question_by_key[each.key] for each in questions if each.key in question_by_key)
        if not questions:
            raise DatasetError(
                f"{spec.name}: none of the selected questions can be altered by {spec.alter.label}: select others"
            )
        if altered.unfit:
            left_out = [*left_out, *altered.unfit]
            total = len(altered.unfit) + len(altered.rows)
            note = f"{len(altered.unfit):,} of the data set's {total:,} questions cannot be altered and are left out"
            notes = (*notes, f"{note}: {altered.reason}")
    return ExamSet(
        **_published(spec, reading.version, reading.source),
        **_asked(questions, reading.rows),
        corrected=tuple(reading.published),
        left_out=tuple(left_out),
        notes=notes,
        files_digest=files_digest,
    )


def _asked(questions: tuple[Question, ...], rows: Sequence[Row]) -> dict[str, Any]:
    """Return selected questions with their golds, and the fingerprints of all rows."""
    prints = {"fingerprint": fingerprint_shown(rows), "golds_fingerprint": fingerprint_expected(rows)}
    stated = {row.question.key: (row.gold, row.others) for row in rows if row.gold is not None}
    golds = {gold: Gold(number=gold[0], others=gold[1]) for gold in set(stated.values())}
    key = AnswerKey((question.key, golds[stated[question.key]]) for question in questions)
    return {"questions": questions, "golds": key, **prints}


def _alter(rows: Iterable[Row], alter: Alteration, language: Language) -> Altered:
    """Have the function that `alter` names alter all rows with a right answer; raises `SpecError` if it cannot."""
    settings = {name: value for name, value in (("seed", alter.seed), ("table", alter.table)) if value is not None}
    function: Callable[..., Altered] = load_object(alter.how, ALTERATIONS)
    with_gold = [row for row in rows if row.gold is not None]
    try:
        signature(function).bind(with_gold, language, **settings)
    except TypeError as error:
        raise SpecError(f"dataset.alter: {alter.label}: {error}") from None
    return function(with_gold, language, **settings)


def make_exam_set(spec: DatasetSpec, rows: Iterable[tuple[Question, int]], *, source: str, version: str) -> ExamSet:
    """Select with `spec` from questions that code has read, each with the printed number of its right option.

    For the `load` of a benchmark of one's own. Raises `DatasetError` if nothing is selected, or a gold is no option.
    """
    read = [Row(question, gold) for question, gold in rows]
    for row in read:
        if row.gold not in row.question.option_numbers:
            raise DatasetError(f"{source}: {row.question.key}: the right answer {row.gold} is none of its options")
    questions = select_questions([row.question for row in read], spec)
    return ExamSet(name=spec.called, language=spec.language, version=version, source=source, **_asked(questions, read))


@keep(_worth_keeping)
@gc_seldom()
def load_task_set(spec: DatasetSpec) -> TaskSet:
    """Load the tasks that `spec` selects, read from this machine.

    Raises `DatasetError` if the files are missing or unsound, or if nothing is selected.
    """
    files_digest = digest_files(spec)
    if spec.kind is None:
        reading = _read_tasks(spec)
        notes = (*reading.notes, *find_entry(spec.name).notes)
    else:
        reading = read_word_questions(spec)
        notes = reading.notes
    twice = [key for key, times in Counter(row.task.key for row in reading.rows).items() if times > 1]
    if twice:
        raise DatasetError(f"{reading.source}: {twice[0]} occurs more than once: make the keys unique")
    rows = _select(reading, spec)
    return TaskSet(
        **_published(spec, reading.version, reading.source),
        fingerprint=fingerprint_shown(reading.rows),
        golds_fingerprint=fingerprint_expected(reading.rows, reading.references),
        questions=tuple(row.task for row in rows),
        golds={row.task.key: row.gold for row in rows},
        references=reading.references,
        notes=notes,
        files_digest=files_digest,
    )


def _read_tasks(spec: DatasetSpec) -> TaskReading:
    """Read questions that are answered in words, or those of an exam without their options."""
    entry = find_entry(spec.name)
    if entry.exam is None:
        read: TaskReader = load_object(entry.reader, BENCHMARKS)
        return read(locate_files(spec.name, spec.language, spec.path)[0], spec)
    reading = load_rows(entry.exam, spec.language, spec.path, as_published=spec.as_published)
    _check_sound(reading, entry.exam)
    rows = []
    for row in reading.rows:
        if row.gold is not None:
            question, texts = row.question, {option.number: option.text for option in row.question.options}
            group, context = str(question.exam.discipline), question.context or ""
            task = Task(question.key, group, question.language, question.stem, context=context)
            gold = TaskGold(answers=tuple(texts[number] for number in (row.gold, *row.others)))
            rows.append(TaskRow(task, gold, split_of(question.exam, entry.exam), question))
    missing = len(reading.rows) - len(rows)
    notes = (f"left out: {count_of(missing, 'question')} without an official answer",) if missing else ()
    return TaskReading(source=reading.source, version=reading.version, rows=tuple(rows), notes=notes)


def load_rows(
    name: str, language: Language, path: Path | None = None, *, explained: bool = False, as_published: bool = False
) -> Reading:
    """Read everything that the exam set `name` holds in `language`; raise `DatasetError` if its files are unreadable.

    `explained` puts the explanation of a question before it, where the data set has one. `as_published` leaves
    private-use characters as they are, where the data set is known to have some.
    """
    entry = find_entry(name)
    if entry.form != "choice":
        raise DatasetError(
            f"{name} is not an exam: its questions are answered in words, and only `medexam run` reads them"
        )
    read: ExamReader = load_object(entry.reader, BENCHMARKS)
    reading = read(locate_files(name, language, path), language, explained)
    return read_signs(reading) if "as_published" in entry.fields and not as_published else reading


def find_question(exam_set: ExamSet, key: str) -> Question:
    """Find the question called `key`; raise `DatasetError` naming the nearest keys when it is not in the set."""
    for question in exam_set.questions:
        if question.key == key:
            return question
    if key in exam_set.left_out:
        raise DatasetError(
            f"{exam_set.name}: {key} is left out: it has no official answer, needs several answers at once, or "
            "cannot be altered"
        )
    near = nearest(key, (question.key for question in exam_set.questions), most=3) or exam_set.questions[0].key
    raise DatasetError(f"{exam_set.name} holds no question {key!r} in {exam_set.language}: did you mean {near}?")


def find_unsound(reading: Reading) -> Iterator[tuple[str, str, str]]:
    """Yield kind, place and detail of what keeps a data set from being asked."""
    yield from (("unreadable", fault.place, fault.detail) for fault in reading.faults)
    for row in reading.rows:
        numbers = row.question.option_numbers
        if row.gold is not None and row.gold not in numbers:
            detail = f"the gold answer {row.gold} is none of the options {list(numbers)}"
            yield "gold_is_no_option", row.question.key, detail
    for key, times in Counter(row.question.key for row in reading.rows).items():
        if times > 1:
            yield "repeated_key", key, f"stands {times} times in the file"


def _check_sound(reading: Reading, name: str) -> None:
    problems = [f"{place}: {detail}" for _, place, detail in find_unsound(reading)]
    if problems:
        remainder = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise DatasetError(
            f"{reading.source}: {problems[0]}{remainder}: correct the file, or list everything with "
            f"`medexam data check {name} --path ...`"
        )


def _published(spec: DatasetSpec, version: str, source: str) -> dict[str, Any]:
    """Return what an item set says of its origin."""
    stated = {"name": spec.name, "language": spec.language, "version": version, "source": source}
    authors = find_entry(spec.name) if spec.kind is None else spec.published
    return stated if authors is None else {**stated, "licence": authors.licence, "citation": authors.citation}


def _select(reading: TaskReading, spec: DatasetSpec) -> list[TaskRow]:
    if questions := [row.question for row in reading.rows if row.question is not None]:
        selected_keys = {question.key for question in select_questions(questions, spec)}
        return [row for row in reading.rows if row.task.key in selected_keys]
    groups: tuple[str, ...] | None = spec.variants or spec.formats or spec.disciplines
    rows = [
        row
        for row in reading.rows
        if (spec.split == "all" or row.split == spec.split) and (groups is None or row.task.group in groups)
    ]
    if not rows:
        group_names = ", ".join(sorted({row.task.group for row in reading.rows}))
        splits = ", ".join(sorted({row.split for row in reading.rows if row.split}))
        way_out = "widen the filters" if splits or spec.split == "all" else "set dataset.split=all"
        raise DatasetError(
            f"{spec.name}: no question matches split={spec.split}, groups {', '.join(groups or ('all',))}: there are "
            f"splits {splits or 'none'}; groups {group_names}; {way_out}"
        )
    if spec.limit is None:
        return rows
    turns = {group: place for place, group in enumerate(dict.fromkeys(row.task.group for row in rows))}
    keys = sample_keys(((turns[row.task.group], 0, row.task.key) for row in rows), spec.limit, spec.seed)
    return [row for row in rows if row.task.key in keys]
