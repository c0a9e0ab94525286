"""Sheets for reviewers of translations: written, filled in and read again."""

import csv

import pytest

from medexam.companions.translation.layout import QuestionText
from medexam.companions.translation.writing import read_reviews, write_sheet
from medexam.errors import DatasetError

SOURCES = [QuestionText(f"q/{n}", f"¿Pregunta {n}?", ((1, "Sí."), (2, "No."))) for n in range(1, 5)]
TEXTS = {one.key: QuestionText(one.key, "Question?", ((1, "Yes."), (2, "No."))) for one in SOURCES}


def fill(path, marks, *, delimiter=","):
    write_sheet(path, SOURCES, TEXTS)
    rows = list(csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines(keepends=True)))
    for row, (adequacy, fluency) in zip(rows, marks, strict=True):
        row |= {"adequacy": adequacy, "fluency": fluency}
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0].keys(), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_a_filled_in_sheet_is_read_as_it_was_meant(tmp_path, delimiter) -> None:
    fill(tmp_path / "ana.csv", [("5", "4"), (" 3 ", ""), ("1", "2"), ("", "")], delimiter=delimiter)

    (review,) = read_reviews([tmp_path / "ana.csv"])

    assert review.reviewer == "ana"
    assert review.marks == {"adequacy": {"q/1": 5, "q/2": 3, "q/3": 1}, "fluency": {"q/1": 4, "q/3": 2}}
    assert review.mean("adequacy") == 3


@pytest.mark.parametrize("mark", ["6", "0", "4.5", "good"])
def test_a_mark_that_is_none_is_refused_with_its_question(tmp_path, mark) -> None:
    fill(tmp_path / "ana.csv", [("5", "4"), (mark, "1"), ("", ""), ("", "")])

    with pytest.raises(DatasetError, match=r"ana\.csv, line 7 \(q/2\): adequacy is .* give a whole number from 1 to 5"):
        read_reviews([tmp_path / "ana.csv"])


def test_another_file_is_refused(tmp_path) -> None:
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")

    with pytest.raises(DatasetError, match="lacks the columns question, adequacy, fluency"):
        read_reviews([tmp_path / "other.csv"])
