"""Sheets that people fill in: CSV files that every spreadsheet opens, with one row an item and marks from 1 to 5.

It knows nothing of what is judged. What a sheet shows was written by exams and models, so no cell of it is a formula.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from medexam.errors import DatasetError
from medexam.inputs import UnreadableError, decode, read_regular

MARKS = range(1, 6)
"""1 is worst, 5 is best."""
COMMENT = "comment"
"""The column for words of the reviewer's own; a sheet may lack it."""

Explain = Callable[[str], str | None]
"""From what a row says it judges to why that is wrong, in words; None if it is right."""

_FORMULA = re.compile(r"[\s']*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]")
"""How a cell begins that a spreadsheet may take for a formula, in full width too, behind any spaces and apostrophes."""


@dataclass(frozen=True)
class Review:
    """One reviewer's filled-in sheet."""

    reviewer: str
    """The name of the file, without its ending."""
    marks: Mapping[str, Mapping[str, int]]
    """Aspect -> item -> mark from 1 to 5; what was left empty is not there."""
    comments: Mapping[str, str]
    """By item; what was left empty is not there."""
    items: tuple[str, ...]
    """What the sheet asks about, filled in or not, in its order."""

    def mean(self, aspect: str) -> float | None:
        """Compute the mean mark; None if none was given."""
        marks = self.marks[aspect].values()
        return sum(marks) / len(marks) if marks else None


def render_sheet(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> bytes:
    """Render a sheet as the bytes of its file: UTF-8 with its mark, which spreadsheets know it by.

    A cell that a spreadsheet would take for a formula gets an apostrophe in front, which `read_review` takes off.
    """
    stream = io.StringIO(newline="")
    sheet = csv.writer(stream, quoting=csv.QUOTE_ALL)
    sheet.writerow(columns)
    sheet.writerows([_guard(cell) for cell in row] for row in rows)
    return stream.getvalue().encode("utf-8-sig")


def load_review_sheets(
    paths: Sequence[Path], item: str, aspects: Sequence[str], explain: Explain = lambda _: None
) -> tuple[Review, ...]:
    """Read the sheets at `paths`, whose column `item` says what a row judges and whose columns `aspects` hold the
    marks.

    Raises `DatasetError` naming the line that is wrong (a mark that is none, an item twice, or one that `explain`
    finds wrong), a file that is no such sheet, or two sheets of one name.
    """
    reviews = tuple(_read_review(path, item, aspects, explain) for path in paths)
    names = [review.reviewer for review in reviews]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise DatasetError(f"two sheets are called {twice}: name each file after its reviewer")
    return reviews


def _read_review(path: Path, item: str, aspects: Sequence[str], explain: Explain) -> Review:
    marks: dict[str, dict[str, int]] = {aspect: {} for aspect in aspects}
    comments: dict[str, str] = {}
    lines: dict[str, int] = {}
    for line, row in read_sheet_rows(path, (item, *aspects)):
        subject = row[item]
        where = f"{path}, line {line} ({subject or f'no {item}'})"
        if problem := "the first column is empty" if not subject else explain(subject):
            raise DatasetError(f"{where}: {problem}")
        if subject in lines:
            raise DatasetError(f"{where}: it is in line {lines[subject]} too: keep one of the two")
        lines[subject] = line
        for aspect in aspects:
            if (mark := _read_mark(row[aspect], f"{where}: {aspect}")) is not None:
                marks[aspect][subject] = mark
        if comment := row.get(COMMENT):
            comments[subject] = comment
    return Review(path.stem, marks, comments, tuple(lines))


def read_sheet_rows(path: Path, needed: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line that each row begins in, and its cells by column, without the space around them; no empty rows.

    Raises `DatasetError` for a file that is no CSV or lacks one of the `needed` columns.
    """
    try:
        text = decode(read_regular(path))
    except (OSError, UnreadableError) as error:
        raise DatasetError(f"{path}: cannot be read ({error}): save the sheet as CSV in UTF-8") from None
    # Spreadsheets of some countries write semicolons for commas.
    first = text.partition("\n")[0]
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=";" if ";" in first and "," not in first else ",")
    begins = 1
    try:
        header = [name.strip() for name in next(rows, [])]
        if missing := [column for column in needed if column not in header]:
            raise DatasetError(
                f"{path}: lacks the columns {', '.join(missing)}: fill in a sheet that this command wrote"
            )
        begins = rows.line_num + 1
        for cells in rows:
            line, begins = begins, rows.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if any(cell.strip() for cell in cells[len(header) :]):
                raise DatasetError(
                    f"{path}, line {line}: has {len(cells)} cells under {len(header)} columns: put quotes around texts "
                    "with commas, as spreadsheets do"
                )
            filled = [*cells, *[""] * (len(header) - len(cells))]
            yield line, {name: _unguard(cell.strip()) for name, cell in zip(header, filled, strict=False)}
    except csv.Error as error:
        raise DatasetError(f"{path}, line {begins}: is no CSV ({error}): save the sheet again as CSV") from None


def _read_mark(cell: str, where: str) -> int | None:
    if not cell:
        return None
    if cell not in {str(mark) for mark in MARKS}:
        raise DatasetError(f"{where} is {cell!r}: give a whole number from 1 to 5, or leave it empty")
    return int(cell)


def _guard(cell: str) -> str:
    return f"'{cell}" if _FORMULA.match(cell) else cell


def _unguard(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
