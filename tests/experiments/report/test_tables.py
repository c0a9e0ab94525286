"""Tables as a terminal draws them, however narrow it is."""

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from medexam.experiments.report.shown import print_blocks
from medexam.experiments.report.tables import fold
from medexam.tables import Table


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("chain_of_thought-guided", 20, ["chain_of_thought-", "guided"]),
        ("few_shot-guided", 9, ["few_shot-", "guided"]),
        ("retrieve_then_answer-medcpt", 10, ["retrieve_", "then_", "answer-", "medcpt"]),
        ("longest", 20, ["longest"]),
        ("pneumonoultramicroscopic", 10, ["pneumonoul", "tramicrosc", "opic"]),
        ("a b", 1, ["a", "b"]),
    ],
)
def test_names_break_between_words(text, width, lines) -> None:
    assert fold(text, width).split("\n") == lines


@pytest.mark.parametrize("width", [30, 60, 80, 200])
def test_no_number_is_cut_in_a_narrow_terminal(width) -> None:
    rows = (("chain_of_thought-guided-optimized", "60", "25.0 [15.8, 37.2]", "100.0"), ("longest", "6,765", "1.0", "-"))
    table = Table("T", ("Program", "n", "Accuracy", "No answer"), rows)
    console = Console(file=StringIO(), width=width, color_system=None)
    print_blocks(console, [(table, "")])
    drawn = console.file.getvalue()
    for number in ("60", "25.0", "[15.8, 37.2]", "100.0", "6,765"):
        assert number in drawn
    assert "…" not in drawn
    assert "longest" in drawn


STUDY = Table(
    "study",
    ("Program", "Data set", "n", "Accuracy", "Chance", "Exam score", "Points", "No answer"),
    tuple(
        (program, "headqa_v1 en", "1020", "41.8 [38.8, 44.8]", "23.0", "22.4 [18.4, 26.1]", "22.8", "0.0")
        for program in ("retrieve_then_answer-guided-bm25", "likelihood-option_text", "ensemble3-mean_probability")
    ),
    text_columns=2,
)


@pytest.mark.parametrize("width", [60, 66, 80, 90])
def test_names_break_at_their_joints_alone(width) -> None:
    console = Console(file=StringIO(), width=width, color_system=None)
    print_blocks(console, [(STUDY, "")])
    drawn = console.file.getvalue()
    words = set(drawn.replace("-", " ").replace("_", " ").split())
    for name in ("likelihood", "option", "text", "ensemble3", "mean", "probability", "retrieve", "headqa", "bm25"):
        assert name in words
    assert max(len(line) for line in drawn.splitlines()) <= width


def test_columns_that_are_the_same_in_every_row_go_into_the_title_of_a_narrow_table() -> None:
    rows = tuple((*row[:3], f"{at}.0 [38.8, 44.8]", *row[4:]) for at, row in enumerate(STUDY.rows))
    console = Console(file=StringIO(), width=60, color_system=None)
    print_blocks(console, [(replace(STUDY, rows=rows), "")])
    title = " ".join(console.file.getvalue().partition("Program")[0].split())
    assert "every row: n 1020, Chance 23.0, Exam score" in title
    assert "Accuracy" not in title
