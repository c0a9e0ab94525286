"""What people think of translations: a sheet to fill in, what comes back, and how far reviewers agree.

Adequacy and fluency from 1 to 5, as HEAD-QA v1 had 60 of its questions judged. A sheet is a CSV file that every
spreadsheet opens; each reviewer fills in a copy.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from medexam.datasets.translate.layout import QuestionText, render_layout
from medexam.errors import DatasetError

SHEET_QUESTIONS = 60
"""As many as HEAD-QA v1 had reviewed."""
ASPECTS = ("adequacy", "fluency")
"""Adequacy: how much of the meaning is there. Fluency: how well it reads. 1 is worst, 5 is best."""
MARKS = range(1, 6)
COLUMNS = ("question", "source", "translation", *ASPECTS, "comment")


@dataclass(frozen=True)
class Review:
    """One reviewer's filled-in sheet."""

    reviewer: str
    """The name of the file, without its ending."""
    marks: Mapping[str, Mapping[str, int]]
    """Aspect -> question -> mark from 1 to 5; what was left empty is not there."""

    def mean(self, aspect: str) -> float | None:
        """The mean mark; None where none was given."""
        marks = self.marks[aspect].values()
        return sum(marks) / len(marks) if marks else None


@dataclass(frozen=True)
class Agreement:
    """How far two reviewers agree on one aspect."""

    aspect: str
    reviewers: tuple[str, str]
    n: int
    """Questions that both have marked."""
    same: float
    """Share of them with the same mark, from 0 to 1."""
    kappa: float | None
    """Cohen's kappa with quadratic weights (Cohen 1968, from statsmodels): 1 where all agree, 0 where chance explains
    it. None where both give all questions one and the same mark, or fewer than two questions are marked by both."""


def write_sheet(path: Path, sources: Sequence[QuestionText], translations: Mapping[str, QuestionText]) -> None:
    """Write a sheet of these questions, the marks empty; raises `DatasetError` where it cannot be written."""
    try:
        with path.open("w", encoding="utf-8-sig", newline="") as stream:
            sheet = csv.writer(stream)
            sheet.writerow(COLUMNS)
            for source in sources:
                sheet.writerow([source.key, render_layout(source), render_layout(translations[source.key]), "", "", ""])
    except OSError as error:
        raise DatasetError(f"cannot write {path} ({error}): choose another file with --sheet") from None


def read_reviews(paths: Sequence[Path]) -> tuple[Review, ...]:
    """The sheets at `paths`; raises `DatasetError` naming the line that is wrong, or two sheets of one name."""
    reviews = tuple(_read_review(path) for path in paths)
    names = [review.reviewer for review in reviews]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise DatasetError(f"two sheets are called {twice}: name each file after its reviewer")
    return reviews


def agree(reviews: Sequence[Review]) -> tuple[Agreement, ...]:
    """The agreement of every two reviewers on each aspect."""
    return tuple(_agreement(aspect, one, other) for aspect in ASPECTS for one, other in combinations(reviews, 2))


def _read_review(path: Path) -> Review:
    marks: dict[str, dict[str, int]] = {aspect: {} for aspect in ASPECTS}
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            text = stream.read()
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"{path}: cannot be read as UTF-8 ({error}): save the sheet as CSV in UTF-8") from None
    # Spreadsheets of some countries write semicolons for commas.
    first = text.partition("\n")[0]
    rows = csv.DictReader(text.splitlines(keepends=True), delimiter=";" if ";" in first and "," not in first else ",")
    if missing := [column for column in ("question", *ASPECTS) if column not in (rows.fieldnames or ())]:
        raise DatasetError(f"{path}: lacks the columns {', '.join(missing)}: fill in a sheet that --sheet wrote")
    for row in rows:
        for aspect in ASPECTS:
            said = (row[aspect] or "").strip()
            if not said:
                continue
            if said not in {str(mark) for mark in MARKS}:
                raise DatasetError(
                    f"{path}, {row['question']}: {aspect} is {said!r}: give a whole number from 1 to 5, or leave it "
                    "empty"
                )
            marks[aspect][row["question"]] = int(said)
    return Review(path.stem, marks)


def _agreement(aspect: str, one: Review, other: Review) -> Agreement:
    mine, its = one.marks[aspect], other.marks[aspect]
    pairs = [(mark, its[key]) for key, mark in mine.items() if key in its]
    same = sum(a == b for a, b in pairs) / len(pairs) if pairs else 0.0
    return Agreement(aspect, (one.reviewer, other.reviewer), len(pairs), same, _weighted_kappa(pairs))


def _weighted_kappa(pairs: Sequence[tuple[int, int]]) -> float | None:
    if len(pairs) < 2 or len({mark for pair in pairs for mark in pair}) < 2:
        return None
    import numpy as np
    from statsmodels.stats.inter_rater import cohens_kappa

    table = np.zeros((len(MARKS), len(MARKS)))
    for a, b in pairs:
        table[a - 1, b - 1] += 1
    return float(cohens_kappa(table, wt="quadratic", return_results=False))
