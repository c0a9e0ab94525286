"""Small real files: the bundled sample in its own shape, and turned into the eight fields of HEAD-QA v2."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command_line import _untracked, medexam
from data_folders import full_data, only_what_a_test_brings
from medexam.datasets import locate_files
from table_cases import write_rows

__all__ = ["_untracked", "full_data", "medexam", "only_what_a_test_brings"]

Document = dict[str, Any]
Record = dict[str, Any]
PICTURE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
"""How the hub's Parquet holds a picture."""


@pytest.fixture(scope="session")
def _sample() -> dict[str, Document]:
    files = {language: locate_files("headqa_sample", language)[0] for language in ("en", "es")}
    return {language: json.loads(file.read_text(encoding="utf-8")) for language, file in files.items()}


@pytest.fixture
def document(_sample: dict[str, Document]) -> Document:
    """The English sample in the authors' JSON; a copy that a test may break."""
    return copy.deepcopy(_sample["en"])


@pytest.fixture
def spanish(_sample: dict[str, Document]) -> Document:
    return copy.deepcopy(_sample["es"])


@pytest.fixture
def first(document: Document) -> Record:
    """The first entry of `document`, part of it: a change in one is a change in the other."""
    return document["exams"]["Cuaderno_2013_1_B"]["data"][0]


@pytest.fixture
def write_json(tmp_path: Path) -> Callable[..., Path]:
    return lambda content, name="HEAD_EN.json": write_rows(tmp_path / name, content)


@pytest.fixture
def write_exam(write_json: Callable[..., Path]) -> Callable[..., Path]:
    """`write_exam({"qtext": ...}, {"ra": "2"}, year="2015")`: a HEAD-QA v1 file of an exam of these entries."""

    def write(*entries: Record, category: str = "biology", year: str = "2013") -> Path:
        answers = [{"aid": number, "atext": f"Option {number}"} for number in (1, 2, 3)]
        usual = {"qtext": "Which?", "ra": "1", "image": "", "answers": answers}
        data = [{"qid": str(number), **usual, **entry} for number, entry in enumerate(entries, start=1)]
        exam = {"name": f"Cuaderno_{year}_1_B", "category": category, "year": year, "data": data}
        return write_json({"version": "1.0", "language": "en", "exams": {exam["name"]: exam}})

    return write


def _to_records(document: Document) -> list[Record]:
    return [
        {
            "name": exam["name"],
            "year": int(exam["year"]),
            "category": exam["category"],
            "qid": int(entry["qid"]),
            "qtext": entry["qtext"],
            "ra": int(entry["ra"]),
            "image": entry["image"] or None,
            "answers": entry["answers"],
        }
        for exam in document["exams"].values()
        for entry in exam["data"]
    ]


@pytest.fixture
def records(document: Document) -> list[Record]:
    """The English sample as rows of HEAD-QA v2: whole numbers, and null where there is no picture."""
    return _to_records(document)


@pytest.fixture
def spanish_records(spanish: Document) -> list[Record]:
    return _to_records(spanish)


@pytest.fixture
def write_parquet(tmp_path: Path) -> Callable[..., Path]:
    def write(rows: list[Record], name: str = "en.parquet", image: pa.DataType | None = None) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        schema = pa.Table.from_pylist([row | {"image": None} for row in rows]).schema
        schema = schema.set(schema.get_field_index("image"), pa.field("image", image or pa.string()))
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
        return path

    return write


@pytest.fixture
def write_jsonl(tmp_path: Path) -> Callable[..., Path]:
    return lambda rows, name="en.jsonl": write_rows(tmp_path / name, rows)
