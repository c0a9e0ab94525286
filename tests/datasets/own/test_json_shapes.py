"""One table of rows, whatever lists and objects of JSON stand around them."""

import json
from pathlib import Path
from typing import Any

import pytest

from medexam.datasets import read_file
from medexam.errors import DatasetError

ROWS = [
    {"question": "Which gland makes thyroxine?", "options": {"A": "Thyroid", "B": "Liver"}, "answer": "A"},
    {"question": "Which vessel leaves the left ventricle?", "options": {"A": "Vena cava", "B": "Aorta"}, "answer": "B"},
    {"question": "Which nerve moves the diaphragm?", "options": {"A": "Phrenic", "B": "Ulnar"}, "answer": "A"},
]
FLAT = [
    {"stem": "What is warm?", "opa": "ice", "opb": "fire", "cop": 2},
    {"stem": "What is cold in winter, and wet?", "opa": "snow", "opb": "sand", "cop": 1},
    {"stem": "What flies by night?", "opa": "bee", "opb": "owl", "cop": 2},
]


def _read(path: Path, text: str) -> list[Any]:
    path.write_text(text, encoding="utf-8")
    return [row.record for row in read_file(path).rows]


def _added(rows: list[dict[str, Any]], **columns: list[Any]) -> list[dict[str, Any]]:
    return [{**row, **{name: values[place] for name, values in columns.items()}} for place, row in enumerate(rows)]


def _keyed(rows: list[dict[str, Any]], *keys: str) -> dict[str, Any]:
    return dict(zip(keys, rows, strict=True))


IDS = ["q-a", "q-b", "q-c"]
NESTED = [{"id": 7, "case": "A man of 30 coughs.", "questions": ROWS[:2]}, {"id": 8, "case": "", "questions": ROWS[2:]}]
CASES = _added(ROWS, case_id=[7, 7, 8], case=["A man of 30 coughs."] * 2 + [""])
SHAPES: dict[str, tuple[Any, list[dict[str, Any]]]] = {
    "a list": (ROWS, ROWS),
    "a wrapper": ({"data": ROWS}, ROWS),
    "a wrapper with more": ({"version": 1, "results": ROWS, "errors": []}, _added(ROWS, version=[1] * 3)),
    "a wrapper in a wrapper": ({"response": {"items": ROWS}}, ROWS),
    "a wrapper of a year": (
        {"year": 2020, "exam": "spring", "questions": ROWS},
        _added(ROWS, file_year=[2020] * 3, file_exam=["spring"] * 3),
    ),
    "by id": (_keyed(ROWS, *IDS), _added(ROWS, id=IDS)),
    "by id of digits": (_keyed(ROWS, "311", "577", "12"), _added(ROWS, id=["311", "577", "12"])),
    "by place": (_keyed(ROWS, "0", "1", "2"), ROWS),
    "by id, with ids": (_keyed(_added(ROWS, id=[1, 2, 3]), *IDS), _added(ROWS, id=[1, 2, 3], entry=IDS)),
    "by set and id": (
        {"first": _keyed(ROWS[:2], "x1", "x2"), "second": _keyed(ROWS[2:], "x3")},
        _added(ROWS, subject=["first", "first", "second"], id=["x1", "x2", "x3"]),
    ),
    "by set and place": (
        {"first": _keyed(ROWS[:2], "0", "1"), "second": _keyed(ROWS[2:], "0")},
        _added(ROWS, subject=["first", "first", "second"]),
    ),
    "by set and an id that begins anew": (
        {"first": _keyed(ROWS[:2], "x1", "x2"), "second": _keyed(ROWS[2:], "x1")},
        _added(ROWS, subject=["first", "first", "second"], entry=["x1", "x2", "x1"]),
    ),
    "by subject": ({"anatomy": ROWS[:2], "law": ROWS[2:]}, _added(ROWS, subject=["anatomy", "anatomy", "law"])),
    "by subject, with subjects": (
        {"anatomy": _added(ROWS[:2], subject=["x", "y"]), "law": _added(ROWS[2:], subject=["z"])},
        _added(ROWS, subject=["x", "y", "z"], group=["anatomy", "anatomy", "law"]),
    ),
    "by split": ({"train": ROWS[:2], "test": ROWS[2:]}, _added(ROWS, split=["train", "train", "test"])),
    "by split and subject": (
        {"train": {"law": ROWS[:1], "art": ROWS[1:2]}, "test": {"law": ROWS[2:]}},
        _added(ROWS, split=["train", "train", "test"], subject=["law", "art", None]),
    ),
    "cases": (NESTED, CASES),
    "cases in a wrapper": ({"cases": NESTED}, CASES),
    "one case": ({"vignette": "A man.", "questions": ROWS}, _added(ROWS, vignette=["A man."] * 3)),
    "exams of sections": (
        {"exams": [{"exam": "spring", "parts": [{"part": 1, "items": ROWS[:2]}, {"part": 2, "items": ROWS[2:]}]}]},
        _added(ROWS, exam=["spring"] * 3, part=[1, 1, 2]),
    ),
    "cases of questions by key": (
        [{"id": 7, "items": _keyed(ROWS[:2], "en", "es")}, {"id": 8, "items": _keyed(ROWS[2:], "en")}],
        _added(ROWS, case_id=[7, 7, 8], entry=["en", "es", "en"]),
    ),
    "sections of questions that are called text": (
        {
            "exam": {
                "year": 2022,
                "sections": [{"name": "A", "questions": [{"text": "Which?", "key": "A"}, {"text": "Who?"}]}],
            }
        },
        _added([{"text": "Which?", "key": "A"}, {"text": "Who?"}], entry=["exam"] * 2, year=[2022] * 2, name=["A"] * 2),
    ),
    "exams by name": (
        {"version": "1", "exams": {"e1": {"year": 2019, "data": ROWS[:2]}, "e2": {"year": 2020, "data": ROWS[2:]}}},
        _added(ROWS, version=["1"] * 3, year=[2019, 2019, 2020], entry=["e1", "e1", "e2"]),
    ),
    "columns": ({name: {str(at): row[name] for at, row in enumerate(FLAT)} for name in FLAT[0]}, FLAT),
    "columns of objects": ({name: {str(at): row[name] for at, row in enumerate(ROWS)} for name in ROWS[0]}, ROWS),
    "columns by id": (
        {name: dict(zip(IDS, (row[name] for row in FLAT), strict=True)) for name in FLAT[0]},
        _added(FLAT, id=IDS),
    ),
    "records of unknown names": (
        {at: dict(zip("abcd", row.values(), strict=True)) for at, row in zip("xyz", FLAT, strict=True)},
        _added([dict(zip("abcd", row.values(), strict=True)) for row in FLAT], id=["x", "y", "z"]),
    ),
    "lists of columns": ({name: [row[name] for row in ROWS] for name in ROWS[0]}, ROWS),
    "split": (
        {"columns": list(FLAT[0]), "index": [0, 1, 2], "data": [list(row.values()) for row in FLAT]},
        FLAT,
    ),
    "table": ({"schema": {"fields": [{"name": "stem", "type": "string"}]}, "data": FLAT}, FLAT),
    "values": ([list(FLAT[0]), *(list(row.values()) for row in FLAT)], FLAT),
    "values without names": (
        [list(row.values()) for row in FLAT],
        [dict(zip("1234", row.values(), strict=True)) for row in FLAT],
    ),
    "one question": (ROWS[0], ROWS[:1]),
    "one question with marked options": (
        {"question": "Which?", "options": [{"text": "a", "isCorrect": True}, {"text": "b", "isCorrect": False}]},
        [{"question": "Which?", "options": [{"text": "a", "isCorrect": True}, {"text": "b", "isCorrect": False}]}],
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_rows_of_a_document(tmp_path, shape) -> None:
    document, rows = SHAPES[shape]
    assert _read(tmp_path / "a.json", json.dumps(document)) == rows
    if all(isinstance(each, (list, dict)) for each in (document if isinstance(document, dict) else {}).values()):
        assert _read(tmp_path / "a.jsonl", json.dumps(document)) == rows
    assert _read(tmp_path / "b.jsonl", json.dumps(document, indent=1)) == rows


def test_json_lines_in_a_json_file_and_cases_in_lines(tmp_path) -> None:
    lines = "".join(json.dumps(row) + "\n" for row in ROWS)
    assert _read(tmp_path / "a.json", lines) == ROWS
    assert _read(tmp_path / "a.jsonl", "\n" + "".join(json.dumps(case) + "\n\n" for case in NESTED)) == CASES
    places = [row.place for row in read_file(tmp_path / "a.jsonl").rows]
    assert places == ["line 2", "line 2", "line 4"]


def test_one_line_is_one_row(tmp_path) -> None:
    assert _read(tmp_path / "a.jsonl", json.dumps(ROWS[0])) == ROWS[:1]
    row = {"name": "x", "choices": [{"text": "a"}, {"text": "b"}]}
    assert _read(tmp_path / "a.jsonl", json.dumps(row)) == [row]


@pytest.mark.parametrize(
    "row",
    [
        {"question": "q", "options": [{"key": "A", "value": "x"}], "answer": "A"},
        {"question": "q", "answer": "A", "similar": [{"question": "r", "answer": "B"}]},
        {"title": "t", "paragraphs": [{"context": "c", "qas": [{"question": "q", "answers": []}]}]},
        {"text": "q", "options": [{"id": 1, "text": "x", "correct": True, "comment": ""}]},
    ],
)
def test_a_question_with_lists_stays_one_row(tmp_path, row) -> None:
    assert _read(tmp_path / "a.json", json.dumps([row, row])) == [row, row]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"one": [], "two": []}, r"an object with 2 lists \(one, two\)"),
        ({"error": "not found"}, r"an object with 0 lists \(none\)"),
        ({"questions": FLAT, "people": [{"question": 1, "name": "x", "born": 2}] * 2}, "3 rows"),
        ({"questions": ROWS, "key": [{"question": "1", "letter": "A", "row": 1}]}, "an object with 2 lists"),
        ("text", "not a list of questions"),
        ({}, "an object with 0 lists"),
    ],
)
def test_a_document_that_is_no_table_is_refused(tmp_path, document, said) -> None:
    if said == "3 rows":
        assert len(_read(tmp_path / "a.json", json.dumps(document))) == 3
        return
    with pytest.raises(DatasetError, match=said):
        _read(tmp_path / "a.json", json.dumps(document))
