"""The questions of quiz tools' exports, read or refused by what is wrong."""

import gzip
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import assume, given, settings

from drawn_rows import ROWS
from medexam.datasets import read_file
from medexam.errors import DatasetError
from table_cases import read_cases, write_rows

CASES = Path(__file__).parent / "cases"


@pytest.mark.parametrize("case", read_cases("quizzes", CASES))
def test_the_questions_of_a_quiz(tmp_path, case) -> None:
    for name in case["files"]:
        write_rows(tmp_path / name, case["text"])
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(case["text"].encode()))
        for table in (read_file(tmp_path / name), read_file(tmp_path / f"{name}.gz")):
            assert [row.record for row in table.rows] == case["rows"]
            assert [row.place for row in table.rows] == case.get("places", [row.place for row in table.rows])


@pytest.mark.parametrize("case", read_cases("refused", CASES))
def test_a_quiz_that_is_none_is_refused_by_what_is_wrong(tmp_path, case) -> None:
    with pytest.raises(DatasetError, match=case["said"]):
        list(read_file(write_rows(tmp_path / case["file"], case["text"])).rows)


def test_a_zip_file_of_items(tmp_path) -> None:
    item = next(case.values[0]["text"] for case in read_cases("quizzes", CASES) if case.id == "QTI 2, correctResponse")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("imsmanifest.xml", "<manifest/>")
        archive.writestr("items/1.xml", item)
        archive.writestr("items/2.xml", item.replace("choiceInteraction", "orderInteraction"))
        archive.writestr("../p.png", b"")
    table = read_file(tmp_path / "a.zip")
    assert [row.place for row in table.rows] == ["items/1.xml, question 1", "items/2.xml, question 1"]
    first, second = (row.record for row in table.rows)
    assert first["answer"] == "B"
    assert second == "has 1 interactions; only items with exactly one, a choice, are read"


def _gift(row: dict[str, str]) -> str:
    def escape(text: str) -> str:
        return "".join(f"\\{sign}" if sign in "~=#{}:\\" else sign for sign in text).replace("\n", "\\n")

    options = [("=" if letter == row["answer"] else "~") + escape(row[letter]) for letter in "ABC"]
    return "\n".join([f"::n::{escape(row['question'])} {{", *options, "}"])


def _aiken(row: dict[str, str]) -> str:
    options = [f"{letter}) {' '.join(row[letter].split())}" for letter in "ABC"]
    return "\n".join([row["question"], *options, f"ANSWER: {row['answer']}"])


@pytest.mark.parametrize(("name", "write"), [("a.gift", _gift), ("a.txt", _aiken)])
@settings(max_examples=40)
@given(rows=ROWS)
def test_a_quiz_holds_the_same_questions(name, write, rows) -> None:
    # An arrow makes pairs to match of Moodle's answers, and cannot be escaped.
    assume(write is not _gift or not any("->" in cell for row in rows for cell in row.values()))
    with tempfile.TemporaryDirectory() as folder:
        path = write_rows(Path(folder, name), "\n\n".join(map(write, rows)))
        read = [row.record for row in read_file(path).rows]
    found = [[row["question"], *row["options"].values(), row["answer"]] for row in read]
    assert [[" ".join(cell.split()) for cell in row] for row in found] == [
        [" ".join(cell.split()) for cell in row.values()] for row in rows
    ]
