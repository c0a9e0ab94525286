"""The table in which exams are kept: eight columns, as the Hugging Face hub holds them, in Parquet or JSON Lines.

What is built, fetched or translated is written in this form. It knows neither keys nor golds.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from medexam.datasets.rows import RowError
from medexam.errors import DatasetError
from medexam.files import UnreadableError, open_parquet, parquet_rows, parse_json, whole_file
from medexam.questions import Discipline, Exam
from medexam.specs.catalogue import BUILT

FIELDS = ("name", "year", "category", "qid", "qtext", "ra", "image", "answers")
"""The columns of the hub's data set."""
WHOLE = ("year", "qid", "ra")
"""Those that hold whole numbers."""
SOURCE_METADATA = b"medexam.source"
"""The Parquet metadata under which a fetched file says which hub revision it holds."""

_PICTURES = {b"huggingface": b'{"info": {"features": {"image": {"_type": "Image"}}}}'}
"""The Parquet metadata by which the `datasets` library knows a column of pictures."""

Placed = tuple[str, object]
"""Where a record stands in its file, and the record, or the `RowError` that says what is wrong with it."""


def parse_image(value: object) -> str | None:
    """Parse the name of a picture, given as a path or as the hub's `{path, bytes}`.

    `embedded` when the picture has no name, None if there is no picture.
    """
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return value
    path = value.get("path") if isinstance(value, Mapping) else None
    return path if isinstance(path, str) and path else "embedded"


def render_record(
    exam: Exam, number: int, stem: str, options: Iterable[tuple[int, str]], gold: int | None, image: Any
) -> dict[str, Any]:
    """Render the eight fields of one question; `image` is a name, the hub's `{path, bytes}` or None."""
    return {
        "name": exam.name,
        "year": exam.year,
        "category": "nursery" if exam.discipline == Discipline.NURSING else exam.discipline,
        "qid": number,
        "qtext": stem,
        "ra": gold,
        "image": image,
        "answers": [{"aid": number, "atext": text} for number, text in options],
    }


def write_exam_table(path: Path, records: Sequence[Mapping[str, Any]], origin: str, *, with_pictures: bool) -> None:
    """Write records of the eight fields as Parquet, whole or not at all; `origin` says what they were made from.

    `with_pictures`: each `image` is the hub's `{path, bytes}` or None, and not a name. Raises `OSError`.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    picture = pa.struct([("bytes", pa.binary()), ("path", pa.string())]) if with_pictures else pa.string()
    answers = pa.list_(pa.struct([("aid", pa.int64()), ("atext", pa.string())]))
    types = (
        dict.fromkeys(FIELDS, pa.string()) | dict.fromkeys(WHOLE, pa.int64()) | {"image": picture, "answers": answers}
    )
    metadata = {SOURCE_METADATA: origin} | (_PICTURES if with_pictures else {})
    schema = pa.schema(list(types.items()), metadata=metadata)
    with whole_file(path) as draft:
        pq.write_table(pa.Table.from_pylist(records, schema=schema), draft)


def read_record_files(paths: Sequence[Path], origins: list[str]) -> Iterator[Placed]:
    """Read the records of all files in order; what a file was made from goes to `origins`."""
    for path in paths:
        if path.suffix == ".parquet":
            yield from _read_parquet(path, origins)
        elif path.suffix == ".jsonl":
            yield from _read_json_lines(path)
        else:
            raise DatasetError(f"{path}: is neither a .parquet nor a .jsonl file; exams are read from these")


def _read_json_lines(path: Path) -> Iterator[Placed]:
    errors: list[str] = []
    lines = 0
    try:
        with path.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                if not line.strip():
                    continue
                lines += 1
                try:
                    yield f"line {number}", parse_json(line)
                except UnreadableError as error:
                    errors.append(f"line {number}: {error}")
                    yield f"line {number}", RowError(f"{error}: the file may be truncated")
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read ({error})") from None
    if errors and len(errors) == lines:
        raise DatasetError(f"{path}: is not JSON Lines ({errors[0]}): it needs one object on each line")


def _read_parquet(path: Path, origins: list[str]) -> Iterator[Placed]:
    """Read the records, without the bytes of pictures; the hub revision that the file states goes to `origins`."""
    import pyarrow as pa

    try:
        with open_parquet(path) as file:
            schema = file.schema_arrow
            if missing := [field for field in FIELDS if field not in schema.names]:
                raise DatasetError(
                    f"{path}: lacks the columns {', '.join(missing)}: a table of exams needs {', '.join(FIELDS)}"
                )
            if origin := (schema.metadata or {}).get(SOURCE_METADATA):
                origins.append(origin.decode(errors="replace"))
            image = "image.path" if pa.types.is_struct(schema.field("image").type) else "image"
            columns = [field if field != "image" else image for field in FIELDS]
            for number, record in enumerate(parquet_rows(file, columns), start=1):
                yield f"row {number}", record
    except UnreadableError as error:
        raise DatasetError(
            f"{path}: {error}: it may be truncated; copy it again, or fetch it with `medexam data fetch {BUILT.name}`"
        ) from None
