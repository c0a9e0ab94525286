"""Reads HEAD-QA v2, whose files are exam tables: the keys of its questions, and golds that are missing.

Pictures are left where they are: a question keeps the name of its picture, or `embedded` when it has none. A gold of
0 or null means that there is no official answer. It never uses the network; `medexam.datasets.fetching` does.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from medexam.datasets.exam_table import FIELDS, Placed, count_pictures, parse_image, read_record_files
from medexam.datasets.rows import (
    Pool,
    Reading,
    Row,
    RowError,
    RowFault,
    parse_exam,
    parse_number,
    parse_question,
    parse_whole_number,
)
from medexam.errors import DatasetError
from medexam.questions import Exam, Language
from medexam.specs.catalogue import BUILT

VERSION = "2.0"


def read_headqa_v2(paths: Sequence[Path], language: Language) -> Reading:
    """Read everything in the files at `paths`, in order.

    Raises `DatasetError` if a file cannot be read, is neither Parquet nor JSON Lines, or lacks one of `FIELDS`.
    """
    origins: list[str] = []
    rows, faults = parse_headqa_v2(read_record_files(paths, origins), language)
    source = ", ".join(str(path) for path in paths) + "".join(f" ({origin})" for origin in origins)
    if not rows and not faults:
        raise DatasetError(f"{source}: holds no questions")
    return Reading(
        source=source,
        folder=paths[0].parent,
        version=VERSION,
        rows=rows,
        faults=faults,
        pictures_inside=sum(count_pictures(path) for path in paths if path.suffix == ".parquet"),
    )


def parse_headqa_v2(placed: Iterable[Placed], language: Language) -> tuple[tuple[Row, ...], tuple[RowFault, ...]]:
    """Parse the questions and unreadable entries among `placed` records.

    A key is `headqa-v2/YEAR/DISCIPLINE/NUMBER`. Where a file holds two booklets of one discipline and year, the keys of
    that exam carry the booklet's name before the number.
    """
    faults: list[RowFault] = []
    entries: list[tuple[Exam, int, Row | str]] = []
    booklets: defaultdict[tuple[int | None, str], set[str]] = defaultdict(set)
    exams: dict[Exam, Exam] = {}
    pool: Pool = {}
    for place, record in placed:
        try:
            if isinstance(record, RowFault):
                faults.append(record)
                continue
            if not isinstance(record, Mapping):
                raise RowError(f"is {record!r}, not an object with the fields {', '.join(FIELDS)}")
            exam = parse_exam(record.get("name"), record.get("category"), record.get("year"))
            exam = exams.setdefault(exam, exam)
            number = parse_number(record)
            place = f"exam {exam.name}, question {number}"
            if "ra" not in record:
                raise RowError("has no field ra, which holds the gold answer or 0")
            entries.append((exam, number, _parse_record(record, _key(exam, number), exam, language, pool)))
            booklets[exam.year, exam.discipline].add(exam.name)
        except RowError as error:
            faults.append(RowFault(place, str(error)))
    rows: list[Row] = []
    for exam, number, row in entries:
        shared = len(booklets[exam.year, exam.discipline]) > 1
        key = _key(exam, number, f"{exam.name}/" if shared else "")
        if isinstance(row, str):
            faults.append(RowFault(key, row))
        else:
            rows.append(Row(row.question.model_copy(update={"key": key}), row.gold) if shared else row)
    return tuple(rows), tuple(faults)


def _key(exam: Exam, number: int, booklet: str = "") -> str:
    return f"{BUILT.keys}/{exam.year}/{exam.discipline}/{booklet}{number}"


def _parse_record(record: Mapping[str, Any], key: str, exam: Exam, language: Language, pool: Pool) -> Row | str:
    """Parse the row, or say what is wrong with the record."""
    gold = parse_whole_number(record["ra"])
    if gold is None and record["ra"] is not None:
        return f"gold answer ra is {record['ra']!r}, not an option number"
    image = parse_image(record.get("image"))
    try:
        question = parse_question(record, key=key, exam=exam, language=language, image=image, pool=pool)
    except RowError as error:
        return str(error)
    return Row(question, gold or None)
