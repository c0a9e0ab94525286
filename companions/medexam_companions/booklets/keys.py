"""Answer keys: question number to right option, from CSV or from the tables of a PDF.

An empty answer is an annulled question. It does not know the booklet.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from medexam.datasets import parse_whole_number
from medexam.errors import DatasetError
from medexam.files import UnreadableError, decode
from medexam_companions.booklets.pages.glyphs import Glyph
from medexam_companions.booklets.pages.opening import open_booklet
from medexam_companions.booklets.pages.rows import find_rows, render_glyphs

SHOWN = 5
"""Question numbers that an error names."""

_ANNULLED = re.compile(r"^(|-+|\*+|0|n/?a|null|none|a|an|anul\w*)$", re.IGNORECASE)
_VERSION = re.compile(r"VERSI[ÓO]N\s*:?\s*(\d+)", re.IGNORECASE)
_HEADING_VERSION = re.compile(r"^v(?:ersi[óo]n)?[\s._]*(\d+)$", re.IGNORECASE)
_CELL_GAP = 0.6
"""Of the type's size: a gap between two glyphs that parts two cells."""
_COLUMN_GAP = 9.0
"""Points between the centres of two columns at least."""


@dataclass(frozen=True, slots=True)
class Key:
    """The official answers of one version of an exam."""

    source: Path
    answers: Mapping[int, int | None]
    """By question number; None for an annulled question."""
    version: str | None
    """The version that the key says it is of; None if it does not say."""


def read_answer_key(path: Path, version: str | None = None) -> Key:
    """Read the key at `path`; raise `DatasetError` when it is neither CSV nor PDF, or holds no answers."""
    if not path.is_file():
        raise DatasetError(f"{path}: is not there: give the answer key as CSV (question,answer) or PDF")
    with path.open("rb") as stream:
        is_pdf = b"%PDF-" in stream.read(1024)
    stated, answers = _read_pdf(path, version) if is_pdf else _read_csv(path, version)
    if not answers:
        raise DatasetError(f"{path}: holds no answers: a key needs a question's number and its answer on each row")
    return Key(path, dict(sorted(answers.items())), stated)


def list_numbers(numbers: Sequence[int]) -> str:
    """Render `question 3`, or `questions 3, 5 and 9`, or the first few and how many more."""
    if len(numbers) == 1:
        return f"question {numbers[0]}"
    texts = [str(number) for number in numbers[:SHOWN]]
    if len(numbers) > SHOWN:
        return f"questions {', '.join(texts)} and {len(numbers) - SHOWN} more"
    return f"questions {', '.join(texts[:-1])} and {texts[-1]}"


def _read_csv(path: Path, version: str | None) -> tuple[str | None, dict[int, int | None]]:
    try:
        text = decode(path.read_bytes())
        delimiter = max(",;\t", key=text.count)
        rows = [[cell.strip() for cell in row] for row in csv.reader(text.splitlines(), delimiter=delimiter)]
    except (OSError, UnreadableError, csv.Error) as error:
        raise DatasetError(f"{path}: is neither a PDF nor CSV in UTF-8 ({error}): save it as CSV in UTF-8") from None
    answers: dict[int, int | None] = {}
    column, stated = 1, None
    for place, row in enumerate(rows, start=1):
        if not any(row):
            continue
        number = parse_whole_number(row[0])
        if number is None:
            if answers:
                raise DatasetError(f"{path}, line {place}: {row[0]!r:.60} is not a question's number: correct it")
            column, stated = _choose_column(path, enumerate(row), version, 1)
            continue
        answer = _parse_answer(row[column] if column < len(row) else "", f"{path}, line {place}")
        _add(answers, number, answer, path)
    return stated, answers


def _choose_column(
    path: Path, cells: Iterable[tuple[int, str]], version: str | None, default: int
) -> tuple[int, str | None]:
    """Choose the column of answers by the headings among `cells`, and read the version that its heading says."""
    versions = {match.group(1): place for place, cell in cells if (match := _HEADING_VERSION.match(cell))}
    if not versions:
        return default, None
    if version in versions:
        return versions[version], version
    if len(versions) == 1:
        return next((place, stated) for stated, place in versions.items())
    raise DatasetError(
        f"{path}: answers versions {', '.join(versions)}, not {version}: give the key of the booklet's version"
    )


def _parse_answer(text: str, place: str) -> int | None:
    if _ANNULLED.match(text):
        return None
    if (number := parse_whole_number(text)) is not None:
        return number
    raise DatasetError(f"{place}: the answer {text!r:.60} is neither an option's number nor empty: correct it")


def _add(answers: dict[int, int | None], number: int, answer: int | None, path: Path) -> None:
    if number in answers and answers[number] != answer:
        raise DatasetError(f"{path}: has two different answers to question {number}: correct it")
    answers[number] = answer


def _read_pdf(path: Path, version: str | None) -> tuple[str | None, dict[int, int | None]]:
    """Read the tables of questions and answers beside each other, as often as they fit on a page."""
    answers: dict[int, int | None] = {}
    stated: str | None = None
    with open_booklet(path) as booklet:
        for page in booklet.read_pages():
            body = median([glyph.size for glyph in page.glyphs] or [1.0])
            rows = [list(_find_cells(row.ink)) for row in find_rows(page.glyphs, body)]
            title = "\n".join(" ".join(text for _, text in row) for row in rows)
            if match := _VERSION.search(title):
                stated = match.group(1)
            for number, answer in _read_table(rows, path, version):
                _add(answers, number, answer, path)
    return stated, answers


def _find_cells(row: list[Glyph]) -> Iterator[tuple[float, str]]:
    """Find centre and text of each cell of a row."""
    cell: list[Glyph] = []
    for glyph in sorted(row, key=lambda glyph: glyph.x0):
        if cell and glyph.x0 - cell[-1].x1 > _CELL_GAP * glyph.size:
            yield (cell[0].x0 + cell[-1].x1) / 2, render_glyphs(cell, glyph.size)
            cell = []
        cell.append(glyph)
    if cell:
        yield (cell[0].x0 + cell[-1].x1) / 2, render_glyphs(cell, cell[0].size)


def _read_table(
    rows: list[list[tuple[float, str]]], path: Path, version: str | None
) -> Iterator[tuple[int, int | None]]:
    """Read numbers that count on down a column as questions; the column after it, or the version's own, as their
    answers.
    """
    columns = _find_columns(rows)
    table = [
        {min(range(len(columns)), key=lambda place: abs(columns[place] - x), default=0): text for x, text in row}
        for row in rows
    ]
    questions = [place for place in range(len(columns)) if _counts_on(table, place)]
    for place in questions:
        following = min((other for other in questions if other > place), default=len(columns))
        between = range(place + 1, following)
        headings = [(column, row.get(column, "")) for row in table for column in between]
        answers, stated = _choose_column(path, headings, version, between.start)
        if stated is None and len(between) > 1:
            raise DatasetError(
                f"{path}: has {len(between)} columns of answers beside each question, and none has a heading such as "
                "V0: give the key of one version, or a CSV"
            )
        for row in table:
            if (number := parse_whole_number(row.get(place))) is not None:
                yield number, _parse_answer(row.get(answers, ""), f"{path}, question {number}")


def _find_columns(rows: list[list[tuple[float, str]]]) -> list[float]:
    """Find the centres of the columns that hold numbers, from the left."""
    columns: list[list[float]] = []
    for x in sorted(x for row in rows for x, text in row if parse_whole_number(text) is not None):
        if columns and x - columns[-1][-1] < _COLUMN_GAP:
            columns[-1].append(x)
        else:
            columns.append([x])
    return [sum(column) / len(column) for column in columns]


def _counts_on(table: list[dict[int, str]], place: int) -> bool:
    numbers = [number for row in table if (number := parse_whole_number(row.get(place))) is not None]
    steps = [later - earlier for earlier, later in pairwise(numbers)]
    return bool(steps) and min(steps) > 0 and steps.count(1) > len(steps) / 2
