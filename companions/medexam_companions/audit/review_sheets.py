"""Sheets that people fill in: CSV files that every spreadsheet opens, with one row an item and marks from 1 to 5.

It knows nothing of what is judged. What a sheet shows was written by exams and models, so no cell of it is a formula.
"""

import csv
import io
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from medexam.errors import DatasetError
from medexam.files import UnreadableError, decode

MARKS: Mapping[str, int] = {"1": 1, "2": 2, "3": 3, "4": 4, "5": 5}
"""What a cell may hold, the worst first -> the mark."""
COMMENT = "comment"
"""The column for words of the reviewer's own; a sheet may lack it."""

_FORMULA = re.compile(r"[\s']*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]")
"""How a cell begins that a spreadsheet may take for a formula, in full width too, behind any spaces and apostrophes."""


V = TypeVar("V")


@dataclass(frozen=True)
class Review(Generic[V]):
    """One reviewer's filled-in sheet."""

    reviewer: str
    """The name of the file, without its ending."""
    marks: Mapping[str, Mapping[str, V]]
    """Aspect -> item -> mark; an empty cell is not there, nor in `comments`, by item."""
    comments: Mapping[str, str]
    items: tuple[str, ...]
    """What the sheet asks about, filled in or not, in its order."""


def render_sheet(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> bytes:
    """Render a sheet as the bytes of its file: UTF-8 with its mark, which spreadsheets know it by.

    A cell that a spreadsheet would take for a formula gets an apostrophe in front, which `read_review` takes off.
    """
    stream = io.StringIO(newline="")
    sheet = csv.writer(stream, quoting=csv.QUOTE_ALL)
    sheet.writerow(columns)
    sheet.writerows([f"'{cell}" if _FORMULA.match(cell) else cell for cell in row] for row in rows)
    return stream.getvalue().encode("utf-8-sig")


def load_review_sheets(
    paths: Sequence[Path],
    item: str,
    aspects: Sequence[str],
    known: Collection[str] | None = None,
    values: Mapping[str, V] = MARKS,  # type: ignore[assignment]
) -> tuple[Review[V], ...]:
    """Read the sheets at `paths`, whose column `item` says what a row judges and whose columns `aspects` hold marks.

    `known` holds the items that there are, None if any may be; `values` is what a cell may hold, in either case. Raises
    `DatasetError` naming the line that is wrong (a mark that is none, or an item twice), a file that is no such sheet,
    or two sheets of one name.
    """
    names = [path.stem for path in paths]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise DatasetError(f"two sheets are called {twice}: name each file after its reviewer")
    return tuple(_read_review(path, item, aspects, known, values) for path in paths)


def _read_review(
    path: Path, item: str, aspects: Sequence[str], known: Collection[str] | None, values: Mapping[str, V]
) -> Review[V]:
    marks: dict[str, dict[str, V]] = {aspect: {} for aspect in aspects}
    comments: dict[str, str] = {}
    lines: dict[str, int] = {}
    for line, row in read_sheet_rows(path, (item, *aspects)):
        subject = row[item]
        where = f"{path}, line {line} ({subject or f'no {item}'})"
        if not subject or (known is not None and subject not in known):
            raise DatasetError(f"{where}: no answer has that {item}: read a sheet with the folder that it was made in")
        if subject in lines:
            raise DatasetError(f"{where}: it is in line {lines[subject]} too: delete one of the two")
        lines[subject] = line
        for aspect in aspects:
            if (cell := row[aspect].lower()) and cell not in values:
                raise DatasetError(f"{where}: {aspect} is {cell!r}: give one of {', '.join(values)}, or leave it empty")
            if cell:
                marks[aspect][subject] = values[cell]
        if comment := row.get(COMMENT):
            comments[subject] = comment
    return Review(path.stem, marks, comments, tuple(lines))


def read_sheet_rows(path: Path, needed: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line that each row begins in, and its cells by column, without the space around them; no empty rows.

    Raises `DatasetError` for a file that is no CSV or lacks one of the `needed` columns.
    """
    try:
        text = decode(path.read_bytes())
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
            texts = map(str.strip, [*cells, *[""] * (len(header) - len(cells))])
            plain = (text[1:] if text.startswith("'") and _FORMULA.match(text) else text for text in texts)
            yield line, dict(zip(header, plain, strict=False))
    except csv.Error as error:
        raise DatasetError(f"{path}, line {begins}: is no CSV ({error}): save the sheet again as CSV") from None
