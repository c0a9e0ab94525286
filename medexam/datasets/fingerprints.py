"""What tells one content of a data set from another: SHA-256 over the questions, over the golds, and over the files.

The first two are taken over everything that a source holds as it was read. The kind, name, place and line breaks of a
file count for nothing, nor does the order of its keys and rows. Nor does a picture's content, which
`pictures/showing.py` covers where pictures are shown.
The digest of the files says whether they changed, without parsing them.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

from medexam.datasets.locating import find_own_file, locate_files
from medexam.datasets.rows import Row, TaskReading, TaskRow
from medexam.errors import DatasetError, SpecError
from medexam.inputs import open_regular
from medexam.plugins import hash_source
from medexam.questions import Question, Task, TaskGold
from medexam.specs import DatasetSpec
from medexam.specs.catalogue import find_entry
from medexam.specs.dataset import ALTERATIONS
from medexam.specs.names import BENCHMARKS

_encode = json.JSONEncoder(separators=(",", ":")).encode


def fingerprint_questions(rows: Iterable[Row]) -> str:
    """Compute the SHA-256 of what an answer to these questions depends on, whether they have a gold or not; in
    hexadecimal.
    """
    return _fingerprint(_shown(row.question) for row in rows)


def fingerprint_golds(rows: Iterable[Row]) -> str:
    """Compute the SHA-256 of what a score depends on beside the answers: golds, and exams that group scores; in
    hexadecimal.
    """
    return _fingerprint(_expected_options(row) for row in rows)


def fingerprint_tasks(rows: Iterable[TaskRow]) -> str:
    """Compute the SHA-256 in hexadecimal of what an answer to these tasks depends on."""
    return _fingerprint(_shown_task(row.task) for row in rows)


def fingerprint_task_golds(reading: TaskReading) -> str:
    """Compute the SHA-256 of what a score depends on beside the answers: what is expected, and references; in
    hexadecimal.
    """
    expected = ([row.task.key, *_expected(row.gold)] for row in reading.rows)
    return _fingerprint(chain(expected, [sorted(reading.references)]))


def _shown(question: Question) -> list[object]:
    options = [[option.number, option.text] for option in question.options]
    context = [] if question.context is None else [question.context]
    return [question.key, question.stem, options, question.image, *context]


def _expected_options(row: Row) -> list[object]:
    exam, other_options = row.question.exam, [row.others] if row.others else []
    return [row.question.key, row.gold, exam.name, exam.year, exam.discipline, exam.split, *other_options]


def _shown_task(task: Task) -> list[object]:
    statements = [task.given_answer, task.given_reasoning]
    return [task.key, task.group, task.question, task.context, task.options, *statements]


def _expected(gold: TaskGold) -> list[object]:
    components = [[component.label, component.start, component.end] for component in gold.components]
    explained = [gold.incorrect_explanation, gold.incorrect_step]
    return [gold.answers, *explained, gold.paragraph, components, gold.repeats_training]


def _fingerprint(entries: Iterable[Sequence[object]]) -> str:
    """Compute the SHA-256 over the SHA-256 of each entry, whatever their order."""
    parts = sorted(hashlib.sha256(_encode(entry).encode()).digest() for entry in entries)
    return hashlib.sha256(b"".join(parts)).hexdigest()


def digest_files(spec: DatasetSpec) -> str:
    """Compute the SHA-256 over the names and bytes of the files that hold a data set, in hexadecimal.

    Of a data set on the hub it is that of its place; of a benchmark of one's own its source is part of it. Raises
    `DatasetError` if they are missing or cannot be read.
    """
    content = hashlib.sha256()
    hub = spec.hub if spec.path is None else None
    if hub is not None:
        content.update(hub.model_dump_json().encode())
    if spec.is_own:
        try:
            content.update(_encode(hash_source(spec.name, BENCHMARKS)).encode())
        except SpecError as error:
            raise DatasetError(str(error)) from None
    files = [] if hub is not None else _all_files(spec)
    if spec.alter is not None:
        content.update(_encode(hash_source(spec.alter.how, ALTERATIONS)).encode())
        files = [*files, *([] if spec.alter.table is None else [find_own_file(spec.alter.table)])]
    for path in files:
        content.update(f"{path.name}\0{_digest(path)}\0".encode())
    return content.hexdigest()


def _all_files(spec: DatasetSpec) -> Sequence[Path]:
    """List the files of a data set with those that are read beside them."""
    if spec.is_own:
        path = spec.path
        files = [] if path is None else sorted(path.rglob("*")) if path.is_dir() else [find_own_file(path)]
        return [file for file in files if file.is_file()]
    if spec.kind is not None and spec.path is not None:
        key = spec.answers.path if spec.answers is not None else None
        return [find_own_file(path) for path in (spec.path, key) if path is not None]
    paths = locate_files(spec.name, spec.language, spec.path)
    pattern = find_entry(spec.name).read_together.get(paths[0].suffix)
    return paths if pattern is None else sorted(paths[0].parent.glob(pattern))


def _digest(path: Path) -> str:
    try:
        with open_regular(path) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read ({error.strerror}): make it readable") from None
