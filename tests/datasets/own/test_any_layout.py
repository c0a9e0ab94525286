"""The same rows, whatever format, encoding, delimiter or shape they are written in."""

import csv
import gzip
import io
import json
import tempfile
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from medexam.datasets import read_file
from medexam.errors import DatasetError

NAMES = ("question", "A", "B", "C", "answer")
SIGNS = st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"], exclude_characters="<&")
WORDS = st.text(st.one_of(st.sampled_from("abcdefgh ,;|:()?."), SIGNS), min_size=1, max_size=20).map(
    lambda text: " ".join(unicodedata.normalize("NFC", text).split()) or "x"
)
CELLS = st.one_of(WORDS, WORDS.map(lambda text: f'{text}\n"{text}", {text}'))
ROWS = st.lists(
    st.tuples(WORDS.map("Which of these, {}?".format), CELLS, CELLS, CELLS, st.sampled_from("ABC")),
    min_size=1,
    max_size=6,
)
Row = tuple[str, str, str, str, str]


def _records(rows: Sequence[Row]) -> list[dict[str, str]]:
    return [dict(zip(NAMES, row, strict=True)) for row in rows]


def _csv(rows: Sequence[Row], delimiter: str, end: str, titles: Sequence[str] = ()) -> str:
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, lineterminator=end)
    writer.writerows([*([title] for title in titles), NAMES, *rows])
    return out.getvalue()


JSON: dict[str, Callable[[list[dict[str, str]]], Any]] = {
    "list": lambda rows: rows,
    "wrapper": lambda rows: {"status": "ok", "data": rows},
    "records by place": lambda rows: {str(place): row for place, row in enumerate(rows)},
    "columns": lambda rows: {name: {str(place): row[name] for place, row in enumerate(rows)} for name in NAMES},
    "lists": lambda rows: {name: [row[name] for row in rows] for name in NAMES},
    "split": lambda rows: {"columns": list(NAMES), "data": [list(row.values()) for row in rows]},
    "values": lambda rows: [list(NAMES), *(list(row.values()) for row in rows)],
    "case": lambda rows: [{"case": "", "questions": rows}],
}
TEXTS = st.one_of(
    st.tuples(
        st.just(".csv"),
        st.builds(
            lambda mark, end, titles: lambda rows: _csv(rows, mark, end, titles),
            st.sampled_from(",;\t|"),
            st.sampled_from(["\n", "\r\n"]),
            st.sampled_from([(), ("An exam",)]),
        ),
    ),
    st.tuples(st.sampled_from([".tsv", ".txt"]), st.just(lambda rows: _csv(rows, "\t", "\n"))),
    st.tuples(
        st.sampled_from([".jsonl", ".ndjson", ".json"]),
        st.just(lambda rows: "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in _records(rows))),
    ),
    st.tuples(
        st.sampled_from([".json", ".jsonl"]),
        st.builds(
            lambda shape, indent: (
                lambda rows: json.dumps(JSON[shape](_records(rows)), indent=indent, ensure_ascii=False)
            ),
            st.sampled_from(list(JSON)),
            st.sampled_from([1, 2]),
        ),
    ),
)


def _cells(path: Path) -> list[Row]:
    """The cells of each row, without columns that stand around the rows."""
    rows = [row.record for row in read_file(path).rows]
    return [row if isinstance(row, str) else tuple(str(row.get(name) or "") for name in NAMES) for row in rows]  # type: ignore[misc]


@settings(max_examples=150, deadline=None)
@given(
    ROWS,
    TEXTS,
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"]),
    st.booleans(),
)
def test_a_text_file_holds_the_same_rows(rows, text, encoding, packed) -> None:
    ending, write = text
    content = write(rows).encode(encoding, "replace")
    rows = [tuple(cell.encode(encoding, "replace").decode(encoding) for cell in row) for row in rows]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"a{ending}{'.gz' if packed else ''}")
        path.write_bytes(gzip.compress(content) if packed else content)
        try:
            read = _cells(path)
        except DatasetError as error:
            read = str(error)
    refused = encoding in ("cp1252", "utf-16-le", "utf-16-be") and "save it as UTF-8" in read
    assert refused or read == rows


@settings(max_examples=40, deadline=None)
@given(ROWS, st.booleans())
def test_a_binary_file_holds_the_same_rows(rows, titled) -> None:
    rows = [tuple(cell.removeprefix("=") for cell in row) for row in rows]
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(pa.Table.from_pylist(_records(rows)), path := Path(folder, "a.parquet"))
        assert _cells(path) == rows
        book = openpyxl.Workbook()
        for line in [*([["An exam"]] if titled else []), NAMES, *rows]:
            book.active.append(list(line))
        book.save(path := Path(folder, "a.xlsx"))
        assert _cells(path) == rows


def _gift(rows: Sequence[Row]) -> str:
    def escape(text: str) -> str:
        return "".join(f"\\{sign}" if sign in "~=#{}:\\" else sign for sign in text).replace("\n", "\\n")

    return "\n\n".join(
        f"::n::{escape(row[0])} {{\n"
        + "\n".join(
            ("=" if letter == row[4] else "~") + escape(text) for letter, text in zip("ABC", row[1:4], strict=True)
        )
        + "\n}"
        for row in rows
    )


def _aiken(rows: Sequence[Row]) -> str:
    return "\n\n".join(
        "\n".join(
            [
                row[0],
                *(f"{letter}) {' '.join(text.split())}" for letter, text in zip("ABC", row[1:4], strict=True)),
                f"ANSWER: {row[4]}",
            ]
        )
        for row in rows
    )


def _moodle(rows: Sequence[Row]) -> str:
    root = ET.Element("quiz")
    for row in rows:
        question = ET.SubElement(root, "question", type="multichoice")
        ET.SubElement(ET.SubElement(question, "questiontext"), "text").text = row[0]
        for letter, text in zip("ABC", row[1:4], strict=True):
            answer = ET.SubElement(question, "answer", fraction="100" if letter == row[4] else "-33.33333")
            ET.SubElement(answer, "text").text = text
    return ET.tostring(root, encoding="unicode")


@pytest.mark.parametrize(
    ("name", "write"), [("a.gift", _gift), ("a.txt", _gift), ("a.txt", _aiken), ("a.xml", _moodle)]
)
@settings(max_examples=40, deadline=None)
@given(rows=ROWS)
def test_a_quiz_holds_the_same_questions(name, write, rows) -> None:
    # An arrow makes pairs to match of Moodle's answers, and cannot be escaped.
    assume(write is not _gift or not any("->" in cell for row in rows for cell in row))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_text(write(rows), encoding="utf-8")
        read = [row.record for row in read_file(path).rows]
    flat = [[" ".join(cell.split()) for cell in row] for row in rows]
    assert [
        [" ".join(text.split()) for text in (row["question"], *row["options"].values(), row["answer"])] for row in read
    ] == flat
