"""What compare says of exams before and after a cutoff, of altered questions, and of questions that a corpus holds."""

import json
import re
from pathlib import Path

import pytest

from medexam.datasets import load_exam_set
from medexam.predictions import Status
from medexam.specs import DatasetSpec
from stored_runs import write_run

REMEMBERS, CONTROL = {"kind": "chain_of_thought"}, {"kind": "zero_shot"}


def _guess(question) -> int:
    """One of the options, the same one however the question is altered."""
    return question.option_numbers[sum(map(ord, question.key)) % len(question.options)]


def _knows(question, gold) -> int:
    """Right on two questions in three, whatever they show."""
    return gold if sum(map(ord, question.key)) % 3 else _guess(question)


@pytest.fixture
def write(tmp_path):
    """`write("run", program, answer, alter)` -> a run folder on the sample; `answer` gives the option's number."""

    def make(name, program, answer, alter=None):
        exams = load_exam_set(DatasetSpec(alter=alter))

        def said(question, gold):
            found = answer(question, gold)
            return {"status": Status.ANSWERED} | (found if isinstance(found, dict) else {"answer": found})

        write_run(tmp_path / "runs" / name, exams, program, said, dataset={"alter": alter} if alter else None)
        return name

    return make


@pytest.fixture
def compare(medexam):
    """`compare("control", "run", "--cutoff", "2015")`: the document, and the report."""

    def call(*words):
        code, out, err = medexam("compare", *words, "--json", "--markdown", "report.md")
        assert code == 0, err
        return json.loads(out), Path("report.md").read_text(encoding="utf-8")

    return call


def _sides(part):
    return [value for value in part.values() if isinstance(value, dict) and "clusters" in value]


def test_a_run_that_is_right_on_earlier_exams_is_told_from_its_control(write, compare) -> None:
    write("control", CONTROL, lambda question, _: _guess(question))
    write("run", REMEMBERS, lambda question, gold: gold if question.exam.year < 2016 else _guess(question))
    found, report = compare("control", "run", "--cutoff", "2015-12")
    around = found["cutoff"]
    before, after = _sides(around)
    assert (before["n"] + after["n"], before["clusters"] + after["clusters"]) == (120, 30)
    assert around["accuracy"]["run"]["means"][0] == 1.0
    against, differences = around["accuracy"]["run"]["against_control"], around["accuracy"]
    between = differences["run"]["difference"]["value"] - differences["control"]["difference"]["value"]
    assert against["value"] == pytest.approx(between, abs=1e-12)
    assert against["interval"][0] > 0
    assert "This is consistent with earlier exams in its training data." in report


def test_no_difference_is_no_sign_and_exams_of_the_cutoffs_own_year_are_left_out(write, compare) -> None:
    write("control", CONTROL, lambda question, _: _guess(question))
    write("run", REMEMBERS, _knows)
    _, report = compare("control", "run", "--cutoff", "2014")
    assert "of accuracy on questions up to 2014 over those after 2014" in report
    assert "which is no sign of remembered questions" in report
    found, report = compare("control", "run", "--cutoff", "2015-06")
    assert found["cutoff"]["not_told"] == 24
    assert sum(side["n"] for side in _sides(found["cutoff"])) == 96
    assert "Left out, because their exam may lie on either side: 24" in report
    assert {"cutoff", "altered", "overlap"}.isdisjoint(compare("control", "run")[0])


def test_a_cutoff_is_a_year_or_a_month_between_the_exams(write, medexam) -> None:
    write("control", CONTROL, _knows)
    write("run", REMEMBERS, _knows)
    for text in ("15", "2015-13", "2015-6", "2015-06-01"):
        code, _, err = medexam("compare", "control", "run", "--cutoff", text)
        assert (code, "such as 2023 or 2023-06" in err) == (2, True)
    for text in ("2012", "2017"):
        code, _, err = medexam("compare", "control", "run", "--cutoff", text)
        assert (code, "give a date between the exams' years" in err) == (2, True)
    code, _, err = medexam("compare", "control", "run", "--overlap-words", 8)
    assert (code, "needs --overlap CORPUS" in err) == (2, True)


def test_altered_runs_are_set_beside_the_same_asking_and_a_control(write, compare) -> None:
    alter = "none_of_the_above"
    write("control", CONTROL, _knows)
    write("control_altered", CONTROL, _knows, alter)
    write("run", REMEMBERS, lambda _, gold: gold)
    write("run_altered", REMEMBERS, lambda question, _: _guess(question), alter)
    found, report = compare("control", "control_altered", "run", "run_altered")
    control, run = found["altered"].values()
    assert (control["unaltered"], control["control"], control["against_control"]) == ("control", None, None)
    assert (run["alter"], run["unaltered"], run["control"]) == (alter, "run", "control_altered")
    assert control["change"]["value"] == 0.0
    assert run["change"]["value"] == pytest.approx(run["accuracy"] - 1.0, abs=1e-12)
    assert run["against_control"]["value"] == pytest.approx(run["change"]["value"], abs=1e-12)
    assert "cutoff" not in found
    assert "has no control" in report
    assert "This is consistent with right options that the model recognises" in report
    assert "## Contamination: altered questions" in report


def test_right_answers_without_the_question_are_more_than_a_preference_for_places(write, compare) -> None:
    write("first", CONTROL, lambda question, _: question.option_numbers[0], "options_withheld")
    write("remembers", REMEMBERS, _knows, "options_withheld")
    found, report = compare("first", "remembers")
    constant, remembers = found["altered"].values()
    assert constant["above_place"]["value"] == pytest.approx(0.0, abs=1e-12)
    assert remembers["above_place"]["interval"][0] > 0.2
    assert "no sign of remembered questions" in report
    assert "This is consistent with remembered places of the right options." in report


def test_questions_that_stand_in_a_corpus_are_told_from_the_others(write, compare, tmp_path) -> None:
    exams = load_exam_set(DatasetSpec())
    leaked = [each for each in exams.questions if each.exam.year < 2015]
    long = {each.key for each in leaked if len(re.findall(r"\w\w+", each.printed)) >= 13}
    corpus = tmp_path / "leaked.jsonl"
    rows = [
        {"id": each.key, "content": " b) ".join([each.stem.upper(), *(option.text for option in each.options)])}
        for each in leaked
    ]
    corpus.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    write("control", CONTROL, lambda question, _: _guess(question))
    write("run", REMEMBERS, lambda question, gold: gold if question.key in long else _guess(question))
    # An altered run beside them changes nothing: the questions are searched as they were printed.
    write("altered", CONTROL, _knows, "question_withheld")
    found, report = compare("control", "run", "altered", "--overlap", corpus)
    overlap = found["overlap"]
    assert long <= set(overlap["shared"]) <= {each.key for each in leaked}
    assert overlap["passages"] == len(leaked)
    assert overlap["sides"]["accuracy"]["run"]["means"][0] == 1.0
    assert overlap["sides"]["accuracy"]["run"]["against_control"]["interval"][0] > 0
    assert "This is consistent with texts like these in its training data." in report
    nowhere = compare("control", "run", "--overlap", corpus, "--overlap-words", 300)[0]["overlap"]
    assert (nowhere["shared"], nowhere["sides"], len(nowhere["too_short"])) == ({}, None, len(exams.questions))


def test_how_likely_options_are_is_set_around_the_cutoff_too(write, compare) -> None:
    def scores(earlier):
        def said(question, _):
            shift = earlier if question.exam.year <= 2014 else 0.0
            found = {
                number: shift - 3 - (sum(map(ord, question.key)) + number) % 5 / 10
                for number in question.option_numbers
            }
            return {"answer": max(found, key=found.__getitem__), "option_scores": found}

        return said

    for norm in ("min_k", "sum", "byte"):
        write(f"run_{norm}", {"kind": "likelihood", "norm": norm}, scores(0.4))
    write("control", {"kind": "likelihood", "norm": "min_k"}, scores(0.0))
    found, report = compare("control", "run_min_k", "--cutoff", "2014")
    around = found["cutoff"]
    assert around["log_probability"]["run_min_k"]["against_control"]["value"] == pytest.approx(0.4, abs=1e-12)
    assert around["accuracy"]["run_min_k"]["against_control"]["value"] == pytest.approx(0.0, abs=1e-12)
    assert (
        "a nat per token of log-probability of the options (min_k) on questions up to 2014 over those after 2014, "
        "beyond what control has. This is consistent with earlier exams" in " ".join(report.split())
    )
    # Scores that grow with the length of options, or of another norm, are set beside nothing.
    for norm in ("sum", "byte"):
        assert "log_probability" not in compare("control", f"run_{norm}", "--cutoff", "2014")[0]["cutoff"]


def test_altered_runs_stand_beside_no_paper_and_no_people(write, medexam) -> None:
    write("altered", CONTROL, _knows, "options_replaced")
    code, _, err = medexam("report", "altered", "--layout", "headqa-v1")
    assert (code, "asked altered questions" in err) == (2, True)
    code, out, err = medexam("report", "altered", "--json")
    assert code == 0, err
    assert json.loads(out)[0].get("against_people", []) == []
