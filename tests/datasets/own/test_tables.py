"""The cells of a CSV file or sheet: its delimiter, encoding, header and what stands above it, read or named."""

import gzip
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from medexam.datasets import read_file
from medexam.datasets.own.tables import SourceTable, get
from medexam.errors import DatasetError

HEADER = ("question", "A", "B", "C", "answer")
ROWS = (
    ("Which gland makes thyroxine?", "Thyroid", "Pancreas", "Liver", "A"),
    ("Which vessel leaves the left ventricle?", "Vena cava", "Aorta", "Portal vein", "B"),
    ("Which nerve moves the diaphragm?", "Vagus", "Ulnar", "Phrenic", "C"),
)


def _read(path: Path, content: str | bytes) -> SourceTable:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_file(path)


def _cells(table: SourceTable) -> list[tuple[Any, ...]]:
    """The cells of each row, or what is wrong with it alone."""
    return [(row.record,) if isinstance(row.record, str) else tuple(row.record.values()) for row in table.rows]


def _write(lines: Any, delimiter: str = ",") -> str:
    return "\n".join(delimiter.join(cells) for cells in lines) + "\n"


def _book(path: Path, lines: Any) -> SourceTable:
    book = openpyxl.Workbook()
    for line in lines:
        book.active.append(list(line))
    book.save(path)
    return read_file(path)


@pytest.mark.parametrize(
    ("header", "row", "delimiter"),
    [
        ("question,options,answer", "q,a|b|c|d,A", ","),
        ("question,options,answer", "q,a;b;c;d,A", ","),
        ("question|options|answer", "q|a,b,c,d|A", "|"),
        ("question;options;answer", "q;a,b,c,d;A", ";"),
        ("question\toptions\tanswer", "q\ta;b;c,d\tA", "tab"),
        ("question,options (a|b|c|d),answer", "q,a|b|c|d,A", ","),
        ("pregunta;opciones;respuesta", '"q; r";"a|b, c|d";A', ";"),
    ],
)
def test_the_header_decides_the_delimiter(tmp_path, header, row, delimiter) -> None:
    table = _read(tmp_path / "a.csv", f"{header}\n{row}\n{row}\n")
    assert f'delimiter "{delimiter}"' in table.format or f"delimiter {delimiter}" in table.format
    assert [len(cells) for cells in _cells(table)] == [3, 3]


def test_rows_that_are_torn_are_named_whatever_their_share(tmp_path) -> None:
    table = _read(tmp_path / "a.csv", "question;A;B;answer\nq;a;b;A\nq;a\nq;a;b;c;B\nq;a;b;A;;\n")
    assert _cells(table) == [
        ("q", "a", "b", "A"),
        ("has 2 cells, and the header 4: quote cells that hold the delimiter",),
        ("has 5 cells, and the header 4: quote cells that hold the delimiter",),
        ("q", "a", "b", "A"),
    ]
    assert [row.place for row in table.rows][1] == "row 2 (line 3)"


@pytest.mark.parametrize("titles", [["Exam of 2024"], ["Exam of 2024,,,,", "Second part,,,,"], ["", "Exam", ""]])
def test_titles_above_the_header_are_passed_over_and_said(tmp_path, titles) -> None:
    table = _read(tmp_path / "a.csv", "\n".join([*titles, _write([HEADER, *ROWS])]))
    assert table.columns == HEADER
    assert _cells(table) == list(ROWS)
    assert 'above the header stands "Exam' in table.format


def test_a_sheet_with_titles(tmp_path) -> None:
    table = _book(tmp_path / "a.xlsx", [["Exam of 2024"], [], HEADER, *ROWS])
    assert (table.columns, _cells(table)) == (HEADER, list(ROWS))
    assert [row.place for row in table.rows] == ["row 1 (line 4)", "row 2 (line 5)", "row 3 (line 6)"]


def test_a_column_of_a_sheet_without_a_name_is_kept_if_it_holds_something(tmp_path) -> None:
    table = _book(tmp_path / "a.xlsx", [["question", None, "answer", None, " "], ["q", "a", "A"], ["r", "b", "B"]])
    assert table.columns == ("question", "unnamed (2)", "answer")
    shares = openpyxl.Workbook()
    shares.active.append(["question", "A", "B"])
    shares.active.append(["q", 0.125, 3])
    shares.active["B2"].number_format = "0.0%"
    shares.save(tmp_path / "b.xlsx")
    assert _cells(read_file(tmp_path / "b.xlsx")) == [("q", "12.5%", 3)]


def test_columns_of_one_name_are_numbered_and_said(tmp_path) -> None:
    lines = [("question", "option", "option", "option", "answer"), *ROWS]
    for table in (_read(tmp_path / "a.csv", _write(lines)), _book(tmp_path / "a.xlsx", lines)):
        assert table.columns == ("question", "option 1", "option 2", "option 3", "answer")
        assert "3 columns are called 'option', here option 1, option 2, option 3" in table.format
        assert _cells(table) == list(ROWS)


def test_a_name_over_all_options_is_that_of_each(tmp_path) -> None:
    table = _book(tmp_path / "a.xlsx", [("Question", "Options", None, None, "Answer"), *ROWS])
    assert table.columns == ("Question", "Options 1", "Options 2", "Options 3", "Answer")
    assert _cells(table) == list(ROWS)


def test_delimiters_at_the_end_and_marks_as_other_programs_write_them(tmp_path) -> None:
    assert _cells(_read(tmp_path / "a.csv", "question,A,answer,\nq,a,A,\nr,b,A,\n")) == [
        ("q", "a", "A"),
        ("r", "b", "A"),
    ]
    table = _read(tmp_path / "a.csv", "question,A,answer,\nq,a,A\nr,b,A\n")
    assert (table.columns, _cells(table)) == (("question", "A", "answer"), [("q", "a", "A"), ("r", "b", "A")])
    assert _cells(_read(tmp_path / "a.csv", "sep=;\nquestion;A\nq, r;a, b\n")) == [("q, r", "a, b")]
    text = 'question,A\n"He said \\"no, no\\" twice","a"\n"q","\\"b\\", c"\n'
    assert _cells(_read(tmp_path / "a.csv", text)) == [('He said "no, no" twice', "a"), ("q", '"b", c')]
    assert _cells(_read(tmp_path / "a.csv", 'question,A\n"say ""x"" \\",b\n')) == [('say "x" \\', "b")]


def test_rows_without_a_header_have_numbered_columns(tmp_path) -> None:
    for table in (_read(tmp_path / "a.csv", _write(ROWS)), _book(tmp_path / "a.xlsx", ROWS)):
        assert table.columns == ("1", "2", "3", "4", "5")
        assert "no header" in table.format
        assert _cells(table) == list(ROWS)


@pytest.mark.parametrize(
    "header",
    [
        HEADER,
        ("Frage", "Antwort 1", "Antwort 2", "Antwort 3", "richtig"),
        ("문제", "1", "2", "3", "정답"),
        (
            "Question - max 120 characters",
            "Answer 1 - max 75",
            "Answer 2",
            "Answer 3",
            "Correct answer(s), at least one",
        ),
        ("Q", "O1", "O2", "O3", "A"),
    ],
)
def test_a_header_is_no_row(tmp_path, header) -> None:
    assert _read(tmp_path / "a.csv", _write([header, *ROWS], "\t")).columns == header
    assert _read(tmp_path / "b.csv", _write([header, ROWS[0]], "\t")).columns == header


WESTERN = "pregunta;respuesta\n¿Qué enfermedad causa ictericia, según Núñez?;«ácido úrico» \u2013 37 °C\n"


@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        ("utf-8", ""),
        ("utf-8-sig", ""),
        ("utf-16", "UTF-16"),
        ("utf-16-le", "UTF-16"),
        ("utf-16-be", "UTF-16"),
        ("utf-32", "UTF-32"),
        ("cp1252", "Windows-1252"),
    ],
)
def test_the_encoding_is_told_by_the_bytes(tmp_path, encoding, said) -> None:
    content = WESTERN.encode(encoding)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(content))
    for table in (_read(tmp_path / "a.csv", content), read_file(tmp_path / "a.csv.gz")):
        assert _cells(table) == [("¿Qué enfermedad causa ictericia, según Núñez?", "«ácido úrico» \u2013 37 °C")]
        assert table.format == 'CSV, delimiter ";"' + (f"; {said}" if said else "")


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Какой витамин?", "cp1251"),
        ("Který lékař léčí kůži?", "cp1250"),
        ("哪种维生素", "gbk"),
        ("ビタミン", "shift_jis"),
        ("¿Qué órgano?", "cp850"),
        ("¿Qué órgano?", "mac-roman"),
    ],
)
def test_another_encoding_is_not_guessed(tmp_path, text, encoding) -> None:
    with pytest.raises(DatasetError, match=r"is not UTF-8 \(byte \d+ is .*\): save it as UTF-8"):
        _read(tmp_path / "a.csv", f"question,answer\n{text},A\n".encode(encoding))


def test_a_file_in_utf_8_with_one_broken_letter_is_not_taken_for_another_encoding(tmp_path) -> None:
    with pytest.raises(DatasetError, match="is not UTF-8"):
        _read(tmp_path / "a.csv", "question,answer\nQué órgano,canción\n".encode().replace("ó".encode(), b"\xf3", 1))


def test_a_field_within_a_list_of_records_gives_their_values() -> None:
    record = {"options": [{"text": "a", "isCorrect": False}, {"text": "b", "isCorrect": True}, {"text": "c"}]}
    assert get(record, "options.text") == ["a", "b", "c"]
    assert get(record, "options.isCorrect") == [False, True, None]
    for column in ("options.letter", "options.text.more", "choices.text"):
        assert get(record, column) is None
