"""Writes built questions as HEAD-QA v2 has them: the eight fields in Parquet, pictures as bytes.

The features are those of the `datasets` library, so that the file can be pushed to the hub as it is.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from medexam.datasets.build.drafts import Draft
from medexam.datasets.build.exam_names import CATEGORIES, ExamName
from medexam.datasets.build.pages.glyphs import INSTALL
from medexam.datasets.headqa_v2 import FIELDS, SOURCE_METADATA
from medexam.errors import DatasetError


def render_record(draft: Draft, exam: ExamName) -> dict[str, Any]:
    """The eight fields of one question that has an official answer."""
    picture = draft.picture
    return {
        "name": exam.name,
        "year": exam.year,
        "category": CATEGORIES.get(exam.discipline, exam.discipline.value),
        "qid": draft.number,
        "qtext": draft.stem,
        "ra": draft.gold,
        "image": None if picture is None else {"path": picture.name, "bytes": picture.content},
        "answers": [{"aid": number, "atext": text} for number, text in draft.options.items()],
    }


def write_parquet(path: Path, drafts: Sequence[Draft], exam: ExamName, source: str) -> None:
    """Write the questions at `path`; `source` says in the file's metadata what they were built from.

    Raises `DatasetError` without the `datasets` library.
    """
    try:
        import datasets
    except ImportError:
        raise DatasetError(f"writing a data set needs the `datasets` library: {INSTALL}") from None
    import pyarrow.parquet as pq

    text, whole = datasets.Value("string"), datasets.Value("int64")
    kinds = {
        "name": text,
        "year": whole,
        "category": text,
        "qid": whole,
        "qtext": text,
        "ra": whole,
        "image": datasets.Image(),
        "answers": [{"aid": whole, "atext": text}],
    }
    features = datasets.Features({field: kinds[field] for field in FIELDS})
    records = [render_record(draft, exam) for draft in drafts]
    columns = {field: [record[field] for record in records] for field in FIELDS}
    table = datasets.Dataset.from_dict(columns, features=features).data.table
    metadata = {**(table.schema.metadata or {}), SOURCE_METADATA: source.encode()}
    pq.write_table(table.replace_schema_metadata(metadata), path)
