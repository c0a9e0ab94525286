"""Small real files: the bundled sample in its own shape, and turned into the eight fields of HEAD-QA v2."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data_folders import full_data, only_what_a_test_brings
from medexam.datasets import SAMPLE_FOLDER

__all__ = ["full_data", "only_what_a_test_brings"]

Document = dict[str, Any]
Record = dict[str, Any]


@pytest.fixture(scope="session")
def _sample() -> dict[str, Document]:
    names = {"en": "HEAD_EN.json", "es": "HEAD.json"}
    return {
        language: json.loads((SAMPLE_FOLDER / name).read_text(encoding="utf-8")) for language, name in names.items()
    }


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
    def write(content: object, name: str = "HEAD_EN.json") -> Path:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

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
    def write(rows: list[Record], name: str = "en.jsonl") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        return path

    return write
