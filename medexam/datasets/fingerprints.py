"""What tells one content of a data set from another: SHA-256 over the questions, and apart from them over the golds.

Both are taken over everything that a source holds as it was read. The kind, name, place and line breaks of a file
count for nothing, nor does the order of its keys and rows. Nor does a picture's content: no program here sees one.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from itertools import chain

from medexam.datasets.rows import Row
from medexam.datasets.task_reading import TaskReading, TaskRow
from medexam.questions import Question
from medexam.tasks import Task, TaskGold

_encode = json.JSONEncoder(separators=(",", ":")).encode


def fingerprint_questions(rows: Iterable[Row]) -> str:
    """SHA-256 in hexadecimal of what an answer to these questions depends on, whether they have a gold or not."""
    return _fingerprint(_shown(row.question) for row in rows)


def fingerprint_golds(rows: Iterable[Row]) -> str:
    """SHA-256 in hexadecimal of what a score depends on beside the answers: golds, and exams that group the scores."""
    return _fingerprint(
        [row.question.key, row.gold, exam.name, exam.year, exam.discipline, exam.split]
        for row in rows
        for exam in (row.question.exam,)
    )


def fingerprint_tasks(rows: Iterable[TaskRow]) -> str:
    """SHA-256 in hexadecimal of what an answer to these tasks depends on."""
    return _fingerprint(_shown_task(row.task) for row in rows)


def fingerprint_task_golds(reading: TaskReading) -> str:
    """SHA-256 in hexadecimal of what a score depends on beside the answers: what is expected, and the references."""
    expected = ([row.task.key, *_expected(row.gold)] for row in reading.rows)
    return _fingerprint(chain(expected, [sorted(reading.references)]))


def _shown(question: Question) -> list[object]:
    options = [[option.number, option.text] for option in question.options]
    return [question.key, question.stem, options, question.image]


def _shown_task(task: Task) -> list[object]:
    given = [task.given_answer, task.given_reasoning]
    return [task.key, task.group, task.question, task.context, task.options, *given]


def _expected(gold: TaskGold) -> list[object]:
    components = [[component.label, component.start, component.end] for component in gold.components]
    explained = [gold.incorrect_explanation, gold.incorrect_step]
    return [gold.answers, *explained, gold.paragraph, components, gold.repeats_training]


def _fingerprint(entries: Iterable[Sequence[object]]) -> str:
    """SHA-256 over the SHA-256 of each entry, whatever their order."""
    parts = sorted(hashlib.sha256(_encode(entry).encode()).digest() for entry in entries)
    return hashlib.sha256(b"".join(parts)).hexdigest()
