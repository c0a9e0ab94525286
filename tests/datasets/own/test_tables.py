"""The rows of a file of one's own: tables, sheets, JSON and texts, read or refused by what is wrong."""

import gzip
import json
import unicodedata

import openpyxl
import pytest

from medexam.datasets import read_file
from medexam.errors import DatasetError
from medexam.files import LONGEST_TEXT
from table_cases import read_cases, write_rows


@pytest.fixture
def read(tmp_path):
    """`read("a.csv", "question,A\\n...")`: the table of a file with this text, or with these bytes."""

    def make(name: str, content):
        if isinstance(content, bytes):
            (tmp_path / name).write_bytes(content)
        else:
            write_rows(tmp_path / name, content)
        return read_file(tmp_path / name)

    return make


def _records(table) -> list:
    """What each row holds, or what is wrong with it alone."""
    return [row.record for row in table.rows]


@pytest.mark.parametrize("case", read_cases("tables"))
def test_the_rows_of_a_file(read, case) -> None:
    for name in case["files"]:
        for table in (read(name, case["text"]), read(f"{name}.gz", gzip.compress(case["text"].encode()))):
            assert _records(table) == case["rows"]
            assert case.get("format", "") in table.format
            assert [row.place for row in table.rows] == case.get("places", [row.place for row in table.rows])


@pytest.mark.parametrize("case", read_cases("json_shapes"))
def test_the_rows_of_a_json_document(read, case) -> None:
    document = case["document"]
    assert _records(read("a.json", json.dumps(document))) == case["rows"]
    assert _records(read("b.jsonl", json.dumps(document, indent=1))) == case["rows"]
    if isinstance(document, dict) and all(isinstance(each, list | dict) for each in document.values()):
        assert _records(read("a.jsonl", json.dumps(document))) == case["rows"], "one line may be the document"


def test_json_lines_in_a_json_file_and_cases_in_lines(read) -> None:
    rows = [{"question": f"Which is {n}?", "answer": "A"} for n in range(3)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    assert _records(read("a.json", lines)) == rows
    table = read(
        "a.jsonl", "\n" + json.dumps({"case": "It hurts.", "questions": rows[:2]}) + "\n\n" + json.dumps(rows[2])
    )
    assert [row.place for row in table.rows] == ["line 2", "line 2", "line 4"]


@pytest.mark.parametrize("case", read_cases("refused_files"))
def test_a_file_that_is_none_is_refused_by_what_is_wrong(load, case) -> None:
    with pytest.raises(DatasetError, match=case["said"]) as refused:
        load(case["text"], case["file"], columns=case.get("columns", {}))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("case", read_cases("sheets"))
def test_a_sheet(tmp_path, case) -> None:
    book = openpyxl.Workbook()
    for line in case["lines"]:
        book.active.append(line)
    book.save(tmp_path / "a.xlsx")
    table = read_file(tmp_path / "a.xlsx")
    assert list(table.columns) == case["columns"]
    assert [list(row.values()) for row in _records(table)] == case["rows"]
    assert table.rows[0].place == case["place"]


def test_a_share_of_a_sheet_is_read_as_it_is_shown(tmp_path) -> None:
    book = openpyxl.Workbook()
    book.active.append(["question", "A", "B"])
    book.active.append(["q", 0.125, 3])
    book.active["B2"].number_format = "0.0%"
    book.save(tmp_path / "b.xlsx")
    assert _records(read_file(tmp_path / "b.xlsx")) == [{"question": "q", "A": "12.5%", "B": 3}]


@pytest.mark.parametrize("encoding", ["cp1251", "cp1252", "mac-roman"])
def test_another_encoding_is_not_guessed(read, encoding) -> None:
    text = "Какой?" if encoding == "cp1251" else "¿Qué órgano?"
    with pytest.raises(DatasetError, match=r"is not UTF-8 \(byte \d+ is .*\): save it as UTF-8"):
        read("a.csv", f"question,answer\n{text},A\n".encode(encoding))


@pytest.mark.parametrize("case", read_cases("texts"))
def test_a_text_is_shown_as_its_reader_sees_it(read, case) -> None:
    def shown(text: str) -> str:
        (row,) = _records(read("a.jsonl", [{"question": text}]))
        return row["question"]

    assert shown(case["written"]) == case["shown"]
    assert shown(case["shown"]) == shown(shown(case["shown"]))


def test_every_text_of_a_row_is_cleaned(read) -> None:
    decomposed = unicodedata.normalize("NFD", "opción")
    row = {"question": "a&amp;b", decomposed: decomposed, "options": [{"text": "<b>x</b>"}], "E": float("nan"), "n": 1}
    expected = {"question": "a&b", "opción": "opción", "options": [{"text": "x"}], "E": None, "n": 1}
    assert _records(read("a.jsonl", [row])) == [expected]


def test_a_cell_that_is_longer_than_any_question_is_refused_with_the_limit(read) -> None:
    with pytest.raises(DatasetError, match="16,777,216 characters") as refused:
        read("long.csv", f"question,answer\n{'x' * (LONGEST_TEXT + 1)},A\n")
    assert len(str(refused.value)) < 300
