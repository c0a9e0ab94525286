"""Reads HEAD-QA: v1 in its authors' JSON, v2 and what is built or fetched here in tables of eight columns.

Their quirks end here: numbers written as text, `nursery`, no picture as an empty text. Pictures are left where they
are: a question keeps the name of its picture, or `embedded` when it has none. Golds are not judged.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from medexam.datasets.exam_table import FIELDS, SOURCE_METADATA, parse_image
from medexam.datasets.own.documents import Cells
from medexam.datasets.own.tables import read_file
from medexam.datasets.rows import Reading, Row, RowError, RowFault, parse_exam, parse_whole_number
from medexam.errors import DatasetError
from medexam.files import UnreadableError, open_parquet, read_json
from medexam.questions import Exam, Language, Question
from medexam.specs.base import describe_faults
from medexam.specs.catalogue import BUILT

Placed = tuple[str, Cells]
"""Where a record stands in its file, and the record, or the text that says what is wrong with it."""


def read_v1(files: Sequence[Path], language: Language, _explained: bool) -> Reading:
    """Read a file of HEAD-QA v1, or a table of it.

    Raises `DatasetError` if it cannot be read, has another structure, or is in another language.
    """
    path = files[0]
    if path.suffix in (".parquet", ".jsonl"):
        return _read_tables(files, language, "1.0")
    try:
        document = read_json(path)
    except (OSError, UnreadableError) as error:
        advice = "the file may be truncated; copy it again or run `medexam data fetch headqa_v1`"
        raise DatasetError(f"{path}: {error}: {advice}; `medexam init {path}` reads questions of your own") from None
    if not isinstance(document, Mapping) or not isinstance(document.get("exams"), Mapping):
        needed = 'it needs an object with "version", "language" and "exams"'
        raise DatasetError(f"{path}: is not a HEAD-QA v1 file: {needed}")
    if document.get("language") != language:
        raise DatasetError(
            f"{path}: is in language {document.get('language')!r}, not {language!r}: set dataset.language, or point "
            "dataset.path at the file of that language or at the folder that holds both"
        )
    version = str(document.get("version", "unknown"))
    return _parse(_records_of(document["exams"]), files, language, version, ())


def read_v2(files: Sequence[Path], language: Language, _explained: bool) -> Reading:
    """Read the tables of HEAD-QA v2, in order; a gold of 0 or null means that there is no official answer.

    Raises `DatasetError` if one cannot be read, is neither Parquet nor JSON Lines, or lacks one of `FIELDS`.
    """
    return _read_tables(files, language, "2.0")


def _read_tables(files: Sequence[Path], language: Language, version: str) -> Reading:
    placed: list[Placed] = []
    origins: list[str] = []
    for path in files:
        if path.suffix not in (".parquet", ".jsonl"):
            raise DatasetError(f"{path}: is neither a .parquet nor a .jsonl file; exams are read from these")
        try:
            table = read_file(path, raw_texts=True)
        except DatasetError as error:
            raise DatasetError(f"{error}, or fetch it with `medexam data fetch {BUILT.name}`") from None
        missing = [field for field in FIELDS if field not in table.columns]
        if missing and table.columns:
            facts = f"lacks the columns {', '.join(missing)}: a table of exams needs {', '.join(FIELDS)}"
            raise DatasetError(f"{path}: {facts}")
        placed += ((row.place, row.record) for row in table.rows)
        if path.suffix == ".parquet":
            with open_parquet(path) as file:
                origin = (file.schema_arrow.metadata or {}).get(SOURCE_METADATA)
            origins += [] if origin is None else [origin.decode(errors="replace")]
    return _parse(placed, files, language, version, origins)


def _records_of(exams: Mapping[str, object]) -> Iterator[Placed]:
    """Yield the entries of each exam as records of a table, or what is wrong with the exam."""
    for name, exam in exams.items():
        try:
            if not isinstance(exam, Mapping) or not isinstance(exam.get("data"), list):
                raise RowError('is not an object with "name", "category", "year" and a list "data"')
            shared = {"name": exam.get("name", name), "category": exam.get("category"), "year": exam.get("year")}
            parse_exam(**shared)
        except RowError as error:
            yield f"exam {name}", str(error)
            continue
        for position, entry in enumerate(exam["data"], start=1):
            fault = f"is {entry!r:.60}, not an object with a question"
            record = {"ra": None, **entry, **shared} if isinstance(entry, Mapping) else fault
            yield f"exam {shared['name']}, entry {position}", record


def _parse(
    placed: Iterable[Placed], files: Sequence[Path], language: Language, version: str, origins: Sequence[str]
) -> Reading:
    """Parse the questions and unreadable entries among the records of a version.

    A key is `headqa-v2/YEAR/DISCIPLINE/NUMBER`. Where a file holds two booklets of one discipline and year, the keys of
    that exam carry the booklet's name before the number.
    """
    rows: list[Row] = []
    faults: list[RowFault] = []
    booklets: defaultdict[tuple[int | None, str], set[str]] = defaultdict(set)
    exams: dict[Exam, Exam] = {}
    for place, record in placed:
        try:
            if isinstance(record, str):
                raise RowError(record)
            exam = parse_exam(record.get("name"), record.get("category"), record.get("year"))
            exam = exams.setdefault(exam, exam)
            number = parse_whole_number(record.get("qid"))
            if number is None:
                raise RowError(f"qid is {record.get('qid')!r}, not a question number")
            place = key = f"headqa-v{version[:1]}/{exam.year}/{exam.discipline}/{number}"
            gold = _parse_gold(record, version)
            rows.append(Row(_parse_question(record, key, exam, number, language), gold))
            booklets[exam.year, exam.discipline].add(exam.name)
        except RowError as error:
            faults.append(RowFault(place, str(error)))
    source = ", ".join(map(str, files)) + "".join(f" ({origin})" for origin in origins)
    if not rows and not faults:
        raise DatasetError(f"{source}: holds no questions")
    shared = {place for place, names in booklets.items() if len(names) > 1}
    for n, row in enumerate(rows if shared else ()):
        exam = row.question.exam
        if (exam.year, exam.discipline) in shared:
            above, _, number_text = row.question.key.rpartition("/")
            key = f"{above}/{exam.name}/{number_text}"
            rows[n] = Row(row.question.model_copy(update={"key": key}), row.gold)
    return Reading(source, version, tuple(rows), tuple(faults))


def _parse_gold(record: Mapping[str, object], version: str) -> int | None:
    """Parse the number of the right option; None in v2 if there is no official answer."""
    if "ra" not in record:
        raise RowError("has no field ra, which holds the gold answer or 0")
    gold, is_v1 = parse_whole_number(record["ra"]), version[:1] == "1"
    if gold is None and (is_v1 or record["ra"] is not None):
        raise RowError(f"gold answer ra is {record['ra']!r}, not an option number")
    return gold if is_v1 else gold or None


def _parse_question(record: Mapping[str, object], key: str, exam: Exam, number: int, language: Language) -> Question:
    answers, image = record.get("answers"), record.get("image")
    if not isinstance(answers, list):
        raise RowError(f"answers is {answers!r}, not a list of options")
    options = [
        {"number": each.get("aid"), "text": each.get("atext")} if isinstance(each, Mapping) else each
        for each in answers
    ]
    fields = {"key": key, "exam": exam, "number": number, "language": language, "stem": record.get("qtext")}
    try:
        name = parse_image(image) if isinstance(image, (str, Mapping)) else image
        return Question.model_validate({**fields, "options": options, "image": name})
    except ValidationError as error:
        raise RowError(describe_faults(error)) from None
