"""Reads HEAD-QA v2: the hub's eight fields from Parquet or JSON Lines, in one file or several parts.

Pictures are left where they are: a question keeps the name of its picture, or `embedded` when it has none. A gold of
0 or null means that there is no official answer. It never uses the network; `medexam.datasets.fetching` does.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from medexam.datasets.rows import (
    Fault,
    Reading,
    Row,
    RowError,
    parse_exam,
    parse_number,
    parse_question,
    parse_whole_number,
)
from medexam.errors import DatasetError
from medexam.questions import Exam, Language

FIELDS = ("name", "year", "category", "qid", "qtext", "ra", "image", "answers")
"""The columns of the hub's data set."""
VERSION = "2.0"
SOURCE_METADATA = b"medexam.source"
"""The Parquet metadata under which a fetched file says which hub revision it holds."""

Placed = tuple[str, object]
"""Where a record stands in its file, and the record, or the `Fault` that stands in its place."""


def read_headqa_v2(paths: Sequence[Path], language: Language) -> Reading:
    """Everything in the files at `paths`, in order.

    Raises `DatasetError` when a file cannot be read, is neither Parquet nor JSON Lines, or lacks one of `FIELDS`.
    """
    digest = hashlib.sha256()
    placed: list[Placed] = []
    source = ", ".join(str(path) for path in paths)
    for path in paths:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise DatasetError(f"{path}: cannot be read ({error})") from None
        digest.update(content)
        if path.suffix == ".parquet":
            records, origin = _read_parquet(path)
            source += f" ({origin})" if origin else ""
        elif path.suffix == ".jsonl":
            records = list(_read_json_lines(path, content))
        else:
            raise DatasetError(f"{path}: is neither a .parquet nor a .jsonl file, the two that headqa_v2 is read from")
        placed += records
    if not placed:
        raise DatasetError(f"{source}: holds no questions")
    rows, faults = parse_headqa_v2(placed, language)
    return Reading(
        source=source, folder=paths[0].parent, version=VERSION, fingerprint=digest.hexdigest(), rows=rows, faults=faults
    )


def parse_headqa_v2(placed: Iterable[Placed], language: Language) -> tuple[tuple[Row, ...], tuple[Fault, ...]]:
    """The questions and unreadable entries among `placed` records.

    A key is `headqa-v2/YEAR/DISCIPLINE/NUMBER`. Where a file holds two booklets of one discipline and year, the keys of
    that exam carry the booklet's name before the number.
    """
    faults: list[Fault] = []
    exams: list[tuple[Mapping[str, Any], Exam]] = []
    booklets: defaultdict[tuple[int, str], set[str]] = defaultdict(set)
    for place, record in placed:
        try:
            if isinstance(record, Fault):
                faults.append(record)
                continue
            if not isinstance(record, Mapping):
                raise RowError(f"is {record!r}, not an object with the fields {', '.join(FIELDS)}")
            exam = parse_exam(record.get("name"), record.get("category"), record.get("year"))
            place = f"exam {exam.name}, question {parse_number(record)}"
            if "ra" not in record:
                raise RowError("has no field ra, which holds the gold answer or 0")
            exams.append((record, exam))
            booklets[exam.year, exam.discipline].add(exam.name)
        except RowError as error:
            faults.append(Fault(place, str(error)))
    rows: list[Row] = []
    for record, exam in exams:
        booklet = f"{exam.name}/" if len(booklets[exam.year, exam.discipline]) > 1 else ""
        key = f"headqa-v2/{exam.year}/{exam.discipline}/{booklet}{parse_number(record)}"
        try:
            rows.append(_parse_record(record, key, exam, language))
        except RowError as error:
            faults.append(Fault(key, str(error)))
    return tuple(rows), tuple(faults)


def parse_image(value: object) -> str | None:
    """The name of a picture, given as a path or as the hub's `{path, bytes}`.

    `embedded` when the picture has no name, None when there is no picture.
    """
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return value
    path = value.get("path") if isinstance(value, Mapping) else None
    return path if isinstance(path, str) and path else "embedded"


def _parse_record(record: Mapping[str, Any], key: str, exam: Exam, language: Language) -> Row:
    gold = parse_whole_number(record["ra"])
    if gold is None and record["ra"] is not None:
        raise RowError(f"gold answer ra is {record['ra']!r}, not an option number")
    question = parse_question(record, key=key, exam=exam, language=language, image=parse_image(record.get("image")))
    return Row(question, gold or None)


def _read_json_lines(path: Path, content: bytes) -> Iterator[Placed]:
    readable = 0
    first_fault: str | None = None
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        place = f"line {number}"
        try:
            record = json.loads(line)
            readable += 1
            yield place, record
        except ValueError as error:
            first_fault = first_fault or f"{place}: {error}"
            yield place, Fault(place, f"is not JSON ({error}): the file may be truncated")
    if first_fault and not readable:
        raise DatasetError(f"{path}: is not JSON Lines ({first_fault}): it needs one object a line")


def _read_parquet(path: Path) -> tuple[list[Placed], str | None]:
    """The records, without the bytes of pictures, and the hub revision that the file states."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            if missing := [field for field in FIELDS if field not in schema.names]:
                raise DatasetError(
                    f"{path}: lacks the columns {', '.join(missing)}: headqa_v2 needs {', '.join(FIELDS)}"
                )
            image = "image.path" if pa.types.is_struct(schema.field("image").type) else "image"
            table = file.read(columns=[field if field != "image" else image for field in FIELDS])
    except (OSError, pa.ArrowException) as error:
        raise DatasetError(
            f"{path}: is not a whole Parquet file ({error}): it may be truncated; copy it again or run "
            f"`medexam data fetch headqa_v2`"
        ) from None
    origin = (schema.metadata or {}).get(SOURCE_METADATA)
    records = [(f"row {number}", record) for number, record in enumerate(table.to_pylist(), start=1)]
    return records, origin.decode() if origin else None
