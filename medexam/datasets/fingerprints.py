"""What tells one content of a data set from another: SHA-256 over the questions, over the golds, and over the files.

The first two are taken over everything that a source holds as it was read. The kind, name, place and line breaks of a
file count for nothing, nor does the order of its keys and rows. Nor does a picture's content, which
`pictures.py` covers where pictures are shown.
The digest of the files says whether they changed, without parsing them.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

from medexam.datasets.locating import find_own_file, locate_files
from medexam.datasets.rows import Row, TaskRow
from medexam.errors import DatasetError, SpecError
from medexam.plugins import hash_source
from medexam.specs import DatasetSpec
from medexam.specs.base import ALTERATIONS, BENCHMARKS
from medexam.specs.catalogue import find_entry

_encode = json.JSONEncoder(separators=(",", ":")).encode


def fingerprint_shown(rows: Iterable[Row | TaskRow]) -> str:
    """Compute the SHA-256 in hexadecimal of what an answer to these questions depends on, golds or none."""
    return _fingerprint(map(_shown, rows))


def fingerprint_expected(rows: Iterable[Row | TaskRow], references: Sequence[str] | None = None) -> str:
    """Compute the SHA-256 in hexadecimal of what a score depends on beside the answers: golds, exams, references."""
    return _fingerprint(chain(map(_expected, rows), () if references is None else [sorted(references)]))


def _shown(row: Row | TaskRow) -> Sequence[object]:
    if isinstance(row, TaskRow):
        task = row.task
        statements = (task.given_answer, task.given_reasoning)
        return [task.key, task.group, task.question, task.context, task.options, *statements]
    question = row.question
    options = [[option.number, option.text] for option in question.options]
    context = [] if question.context is None else [question.context]
    return [question.key, question.stem, options, question.image, *context]


def _expected(row: Row | TaskRow) -> Sequence[object]:
    if isinstance(row, TaskRow):
        gold = row.gold
        components = [[component.label, component.start, component.end] for component in gold.components]
        explained = (gold.incorrect_explanation, gold.incorrect_step)
        return [row.task.key, gold.answers, *explained, gold.paragraph, components, gold.repeats_training]
    exam, others = row.question.exam, [row.others] if row.others else []
    return [row.question.key, row.gold, exam.name, exam.year, exam.discipline, exam.split, *others]


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
        try:
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise DatasetError(f"{path}: cannot be read ({error.strerror}): make it readable") from None
        content.update(f"{path.name}\0{digest}\0".encode())
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
