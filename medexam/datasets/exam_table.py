"""The table in which exams are kept: eight columns, as the Hugging Face hub holds them, in Parquet or JSON Lines.

What is built, fetched or translated is written in this form. It knows neither keys nor golds.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from medexam.files import whole_file
from medexam.questions import Discipline, Exam

FIELDS = ("name", "year", "category", "qid", "qtext", "ra", "image", "answers")
"""The columns of the hub's data set."""
WHOLE = ("year", "qid", "ra")
"""Those that hold whole numbers."""
SOURCE_METADATA = b"medexam.source"
"""The Parquet metadata under which a fetched file says which hub revision it holds."""

_PICTURES = {b"huggingface": b'{"info": {"features": {"image": {"_type": "Image"}}}}'}
"""The Parquet metadata by which the `datasets` library knows a column of pictures."""


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
