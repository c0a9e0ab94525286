"""Reads HEAD-QA v1 in its authors' JSON: one document of exams for each language.

Its quirks end here: numbers written as text, `nursery`, and an empty text for no picture. It does not judge
golds: a number that is no option is passed on.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from medexam.datasets.exam_table import parse_image
from medexam.datasets.rows import (
    Pool,
    Reading,
    Record,
    Row,
    RowError,
    RowFault,
    parse_exam,
    parse_number,
    parse_question,
    parse_whole_number,
)
from medexam.errors import DatasetError
from medexam.files import write_whole
from medexam.inputs import UnreadableError, parse_json, read_bytes
from medexam.questions import Exam, Language


def read_headqa_v1(path: Path, language: Language) -> Reading:
    """Read everything in the file at `path`, which may be compressed with gzip.

    Raises `DatasetError` if it cannot be read, is not JSON, has another structure, or is in another language.
    """
    try:
        content = read_bytes(path)
    except (OSError, UnreadableError) as error:
        raise DatasetError(f"{path}: cannot be read ({error}): the file may be truncated; copy it again") from None
    try:
        pool: Pool = {}
        document = parse_json(content, object_hook=lambda entry: _read_exam(entry, language, pool))
    except UnreadableError as error:
        if path.suffix != ".json" and not path.name.endswith(".json.gz"):
            raise DatasetError(
                f"{path}: is no file of HEAD-QA v1, which is JSON; `medexam init {path}` "
                "writes a spec for questions of your own"
            ) from None
        raise DatasetError(
            f"{path}: {error}: the file may be truncated; copy it again or run `medexam data fetch headqa_v1`"
        ) from None
    try:
        version, rows, faults = parse_headqa_v1(document, language)
    except DatasetError as error:
        raise DatasetError(f"{path}: {error}") from None
    return Reading(str(path), path.parent, version, rows, faults)


def parse_headqa_v1(document: object, language: Language) -> tuple[str, tuple[Row, ...], tuple[RowFault, ...]]:
    """Parse the version, questions and unreadable entries of a document.

    Raises `DatasetError` if it is not built as HEAD-QA v1 is, is in another language, or holds no entry.
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("exams"), Mapping):
        raise DatasetError('is not a HEAD-QA v1 file: it needs an object with "version", "language" and "exams"')
    stated = document.get("language")
    if stated != language:
        raise DatasetError(
            f"is in language {stated!r}, not {language!r}: set dataset.language, or point dataset.path at the file of "
            f"that language or at the folder that holds both"
        )
    rows: list[Row] = []
    faults: list[RowFault] = []
    pool: Pool = {}
    for name, entry in document["exams"].items():
        for row_or_fault in entry if isinstance(entry, tuple) else _parse_exam(name, entry, language, pool):
            (rows if isinstance(row_or_fault, Row) else faults).append(row_or_fault)  # type: ignore[arg-type]
    if not rows and not faults:
        raise DatasetError("holds no questions: its exams are empty")
    return str(document.get("version", "unknown")), tuple(rows), tuple(faults)


def write_headqa_v1(path: Path, records: Sequence[Record], language: Language, origin: str) -> None:
    """Write records of the hub's copy as the authors' JSON document, whole or not at all; raises `OSError`."""
    exams: dict[str, dict[str, Any]] = {}
    for record in records:
        name = str(record["name"])
        exam = exams.setdefault(
            name, {"name": name, "category": record["category"], "year": str(record["year"]), "data": []}
        )
        exam["data"].append(
            {
                "qid": str(record["qid"]),
                "qtext": record["qtext"],
                "ra": str(record["ra"]),
                "answers": record["answers"],
                "image": parse_image(record["image"]) or "",
            }
        )
    document = {"version": "1.0", "language": language, "origin": origin, "exams": exams}
    write_whole(path, json.dumps(document, ensure_ascii=False))


def _read_exam(entry: dict[str, Any], language: Language, pool: Pool) -> object:
    """Read what an exam holds, as a tuple, as soon as its object ends; return any other object unchanged.

    So no more than one exam is ever held as JSON. JSON itself makes no tuples.
    """
    if isinstance(entry.get("data"), list) and isinstance(entry.get("name"), str):
        return tuple(_parse_exam(entry["name"], entry, language, pool))
    return entry


def _parse_exam(name: str, entry: object, language: Language, pool: Pool) -> Iterator[Row | RowFault]:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("data"), list):
        yield RowFault(f"exam {name}", 'is not an object with "name", "category", "year" and a list "data"')
        return
    try:
        exam = parse_exam(entry.get("name", name), entry.get("category"), entry.get("year"))
    except RowError as error:
        yield RowFault(f"exam {name}", str(error))
        return
    for position, record in enumerate(entry["data"], start=1):
        yield _parse_record(record, exam, language, position, pool)


def _parse_record(record: object, exam: Exam, language: Language, position: int, pool: Pool) -> Row | RowFault:
    place = f"exam {exam.name}, entry {position}"
    try:
        if not isinstance(record, Mapping):
            raise RowError(f"is {record!r}, not an object")
        key = place = f"headqa-v1/{exam.year}/{exam.discipline}/{parse_number(record)}"
        image = record.get("image") or None
        if image is not None and not isinstance(image, str):
            raise RowError(f"image is {image!r}, not a path")
        gold = parse_whole_number(record.get("ra"))
        if gold is None:
            raise RowError(f"gold answer ra is {record.get('ra')!r}, not an option number")
        question = parse_question(record, key=key, exam=exam, language=language, image=image, pool=pool)
        return Row(question, gold)
    except RowError as error:
        return RowFault(place, str(error))
