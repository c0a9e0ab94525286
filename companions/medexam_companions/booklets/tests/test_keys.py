"""Answer keys in the forms that they come in."""

import re

import pytest
from fpdf import FPDF

from medexam.errors import DatasetError
from medexam_companions.booklets import read_answer_key


@pytest.mark.parametrize(
    "text",
    [
        "pregunta,respuesta\n1,3\n2,\n3,1\n",
        "1;3\n2;ANULADA\n3;1\n",
        "\ufeffQuestion\tAnswer\n1\t3\n2\t-\n3\t1\n\n",
        "P,V0,V1\n1,3,2\n2,,4\n3,1,1\n",
    ],
)
def test_forms_of_csv(tmp_path, text) -> None:
    path = tmp_path / "key.csv"
    path.write_text(text, encoding="utf-8")
    key = read_answer_key(path, "0")
    assert dict(key.answers) == {1: 3, 2: None, 3: 1}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1,3\n2,B\n", "key.csv, line 2: the answer 'B' is neither an option's number nor empty"),
        ("1,3\nfin,2\n", "line 2: 'fin' is not a question's number"),
        ("1,3\n1,2\n", "has two different answers to question 1"),
        ("pregunta,respuesta\n", "holds no answers"),
        ("P,V2,V3\n1,3,2\n", "answers versions 2, 3, not 0"),
    ],
)
def test_wrong_csv_is_named_by_line(tmp_path, text, said) -> None:
    path = tmp_path / "key.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DatasetError, match=re.escape(said)):
        read_answer_key(path, "0")


def print_key(path, answers, *, blocks=5, title="RESPUESTAS CORRECTAS - BIOLOGÍA - VERSIÓN: 0", versions=()):
    """A table as the Ministry prints them: questions and answers beside each other, several times over the page."""
    pdf = FPDF(unit="pt", format="A4")
    pdf.add_page()
    pdf.set_font("helvetica", "", 10)
    pdf.text(60, 50, title)
    numbers = sorted(answers)
    height = -(-len(numbers) // blocks)
    wide = 45 + 40 * max(len(versions), 1)
    for place, number in enumerate(numbers):
        x, y = 60 + wide * (place // height), 100 + 14 * (place % height)
        pdf.text(x + 20 - pdf.get_string_width(str(number)), y, str(number))
        given = answers[number] if versions else [answers[number]]
        for column, answer in enumerate(given):
            pdf.text(x + 42 + 40 * column, y, "" if answer is None else str(answer))
    for block in range(blocks):
        pdf.text(60 + wide * block, 84, "V")
        for column, version in enumerate(versions or ["RC"]):
            pdf.text(60 + wide * block + 38 + 40 * column, 84, version)
    pdf.output(str(path))
    return path


def test_a_table_in_a_pdf(tmp_path) -> None:
    answers = {number: 1 + number % 4 for number in range(1, 186)} | {50: None, 81: None, 185: None}
    key = read_answer_key(print_key(tmp_path / "key.pdf", answers))
    assert dict(key.answers) == answers
    assert key.version == "0"


def test_the_version_s_own_column_of_a_pdf(tmp_path) -> None:
    answers = {number: [1 + number % 4, 1 + (number + 1) % 4] for number in range(1, 61)}
    path = print_key(tmp_path / "key.pdf", answers, blocks=3, title="RESPUESTAS " * 20, versions=("V0", "V1"))
    assert dict(read_answer_key(path, "1").answers) == {number: given[1] for number, given in answers.items()}
    with pytest.raises(DatasetError, match="answers versions 0, 1, not 4"):
        read_answer_key(path, "4")
    unnamed = print_key(tmp_path / "key.pdf", answers, blocks=3, title="RESPUESTAS " * 20, versions=("RA", "RB"))
    with pytest.raises(DatasetError, match="2 columns of answers"):
        read_answer_key(unnamed, "0")
