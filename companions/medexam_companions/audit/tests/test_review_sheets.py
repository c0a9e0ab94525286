"""Sheets for people: nothing on them is a formula, they come back unharmed, and what is wrong is named by its line."""

import csv
import io

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from medexam.errors import DatasetError
from medexam_companions.audit import load_review_sheets, render_sheet

COLUMNS = ("code", "text", "mark", "comment")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def read_cells(data: bytes) -> list[list[str]]:
    """What a spreadsheet would find in the cells."""
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))


@pytest.mark.parametrize("text", ["=1+1", "+34 600", "-5 mg", "@SUM(A1)", "\t=1", "\r=1", " =1", "'=1", "＝1"])  # noqa: RUF001
def test_no_cell_begins_as_a_formula(text) -> None:
    _, (code, shown, _, _) = read_cells(render_sheet(COLUMNS, [("a", text, "", "")]))
    assert (code, shown) == ("a", f"'{text}")


@settings(max_examples=25)
@given(TEXT, TEXT)
@example("=1+1", "'=1+1")
@example("''-", 'a\u2028b\x0c;"c,\n\r\n')
def test_texts_come_back_unharmed(tmp_path_factory, item, comment) -> None:
    item, comment = item.strip(), comment.strip()
    path = tmp_path_factory.getbasetemp() / "unharmed.csv"
    path.write_bytes(render_sheet(COLUMNS, [(item or "empty", "", "4", comment)]))

    (review,) = load_review_sheets([path], "code", ["mark"])

    assert review.items == (item or "empty",)
    assert review.comments == ({item or "empty": comment} if comment else {})


def test_two_sheets_of_one_name_are_refused(tmp_path) -> None:
    (tmp_path / "other").mkdir()
    paths = [tmp_path / "ana.csv", tmp_path / "other" / "ana.csv"]
    for path in paths:
        path.write_bytes(render_sheet(COLUMNS, [("a", "", "", "")]))
    with pytest.raises(DatasetError, match="two sheets are called ana"):
        load_review_sheets(paths, "code", ["mark"])


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("a,,6,\n", r"line 2 \(a\): mark is '6': give one of 1, 2, 3, 4, 5, or leave it empty"),
        ('a,"two\nlines",5,\nb,,five,\n', r"line 4 \(b\): mark is 'five'"),
        ("a,,1,\nb,,,\n\n,,,\na,,2,\n", r"line 6 \(a\): it is in line 2 too"),
        ("a,,1,\n,text,2,\n", r"line 3 \(no code\): no answer has that code"),
        ("a,one, two,3,well\n", r"line 2: has 5 cells under 4 columns"),
        ("z,,3,\n", r"line 2 \(z\): no answer has that code"),
    ],
)
def test_what_is_wrong_is_named_by_its_line(tmp_path, rows, said) -> None:
    path = tmp_path / "ana.csv"
    path.write_text(f"{','.join(COLUMNS)}\n{rows}")
    with pytest.raises(DatasetError, match=rf"ana\.csv, {said}"):
        load_review_sheets([path], "code", ["mark"], {"a", "b"})


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "lacks the columns code, mark"),
        (b"\xffc\x00", "is not UTF-8"),
        (b"code,mark\na," + b"x" * 200_000 + b"\n", "line 2: is no CSV"),
    ],
)
def test_a_file_that_is_no_sheet_is_refused(tmp_path, data, said) -> None:
    (tmp_path / "ana.csv").write_bytes(data)
    with pytest.raises(DatasetError, match=said):
        load_review_sheets([tmp_path / "ana.csv"], "code", ["mark"])


def test_short_and_empty_rows_are_read_as_spreadsheets_leave_them(tmp_path) -> None:
    (tmp_path / "ana.csv").write_text("code;text;mark;comment\r\n\r\na;x\r\nb;y; 2 ;\r\n;;;;\r\n")
    (review,) = load_review_sheets([tmp_path / "ana.csv"], "code", ["mark"])
    assert (review.items, review.marks) == (("a", "b"), {"mark": {"b": 2}})
