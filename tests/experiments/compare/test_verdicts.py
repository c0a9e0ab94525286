"""A verdict survives its reader: what is said of runs on the terminal, in Markdown and on the page."""

import json
from html import unescape

import pytest

import medexam
from medexam.predictions import Reason, Status
from small_exams import gold_of

FREE, GUIDED = {"kind": "zero_shot"}, {"kind": "zero_shot", "answer_format": "guided"}
FORM = (
    "The form of the replies decides whether zero_shot-guided differs from zero_shot in accuracy: 100.0 % against 0.0 %"
)


def _loose(question) -> dict:
    """A right answer that the lenient reader alone reads."""
    return {"status": Status.UNANSWERED, "answer": None, "reason": Reason.UNPARSED, "lenient": gold_of(question.number)}


@pytest.fixture
def said(tmp_path):
    """`said(run, ...)` -> a report on the terminal, as Markdown and as a page."""

    def say(*paths) -> list[str]:
        report = medexam.report(*paths, markdown=tmp_path / "report.md", html=tmp_path / "report.html")
        files = [(tmp_path / name).read_text() for name in ("report.md", "report.html")]
        return [" ".join(unescape(text).split()) for text in (repr(report), *files)]

    return say


def test_a_run_that_is_better_to_one_reader_alone_is_not_called_better(make_run, said, medexam) -> None:
    guided, free = make_run(GUIDED, "r"), make_run(FREE, "u", extra=_loose)
    for text in said(guided, free):
        assert FORM in text
        assert "read strictly +100.0" in text
        assert "read leniently 0.0" in text
        assert "is better" not in text
    assert "| **" not in (guided.parents[1] / "report.md").read_text()
    document = json.loads(medexam("compare", free, guided, "--json")[1])
    (pair,) = document["pairs"]
    assert (pair["verdict"], pair["measures"]["accuracy"]["verdict"]) == ("not told apart", "better")
    assert pair["views"]["read leniently"]["accuracy"]["difference"]["value"] == 0
    out = " ".join(medexam("compare", free, guided, "--reading", "lenient")[1].split())
    assert "100.0 % against 100.0 %" in out


def test_a_run_whose_replies_nobody_can_read_is_not_called_worse(make_run, said) -> None:
    for text in said(make_run(GUIDED, "r"), make_run(FREE, "u")):
        assert FORM in text
        assert "where both replies could be read (0 questions) nothing" in text


def test_a_verdict_that_holds_for_both_readers_says_so(make_run, said) -> None:
    wrong = make_run(FREE, "wwwwu", extra=lambda question: {} if question.number % 5 else {"lenient": 1})
    for text in said(make_run(GUIDED, "r"), wrong):
        assert "zero_shot-guided is better than zero_shot in accuracy: 100.0 % against 0.0 %, +100.0" in text
        assert "So it is however the replies are read." in text


def test_rows_of_several_experiments_differ_and_sentences_use_their_names(make_run, said) -> None:
    runs = [make_run(GUIDED, letters, name=name) for name, letters in (("low", "w"), ("fair", "rw"), ("good", "r"))]
    for text in said(*runs):
        assert (
            "zero_shot-guided good is better than every other run here in accuracy; beside zero_shot-guided fair"
            in text
        )
    report = (runs[0].parents[1] / "report.md").read_text()
    rows = [row.split("|") for row in report.splitlines() if row.startswith("| zero_shot-guided")][:3]
    assert [row[2].strip() for row in rows] == ["good", "fair", "low"]


def test_runs_of_one_spec_and_experiment_are_told_apart_by_a_column(make_run, said) -> None:
    first, second = make_run(GUIDED, "r", run_id="one"), make_run(GUIDED, "w", run_id="two")
    for text in said(second, first):
        assert "one is better than two in accuracy" in text
    report = (first.parents[1] / "report.md").read_text()
    assert "| Program | Run |" in report
