"""What compare says of exams before and after a cutoff, and of altered questions."""

import json
import re

import pytest

from medexam.companions.contamination.cutoff import Cutoff
from medexam.companions.contamination.section import CAVEAT, Contamination
from medexam.datasets import load_exam_set
from medexam.errors import DatasetError, SpecError
from medexam.experiments import compare_runs, paired_report, rescore
from medexam.experiments.compare.further import find_further
from medexam.experiments.report.papers.human_baseline import human_baseline
from medexam.experiments.report.tables import check_shown
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
    """`write(program, answer, alter)` -> a run folder on the packaged sample; `answer` gives the option's number."""

    def make(program, answer, alter=None):
        exams = load_exam_set(DatasetSpec(alter=alter))
        path = tmp_path / f"{program['kind']}-{alter}"
        said = lambda question, gold: {"status": Status.ANSWERED, "answer": answer(question, gold)}  # noqa: E731
        return write_run(path, exams, program, said, dataset={"alter": alter} if alter else None)

    return make


def _found(*folders, **settings) -> Contamination:
    (section,) = compare_runs(folders, find_further(**settings)).sections
    assert isinstance(section, Contamination)
    return section


def test_a_run_that_is_right_on_earlier_exams_is_told_from_its_control(write) -> None:
    control = write(CONTROL, lambda question, _: _guess(question))
    run = write(REMEMBERS, lambda question, gold: gold if question.exam.year < 2016 else _guess(question))
    section = _found(control, run, cutoff="2015-12")
    assert section.around is not None
    before, after = section.around.sides
    assert (before.n + after.n, before.exams + after.exams, before.means[1]) == (120, 30, 1.0)
    (against,) = section.around.against
    mine, its = section.around.differences[1].value, section.around.differences[0].value
    assert against.value == pytest.approx(mine - its, abs=1e-12)
    assert against.interval is not None
    assert against.interval[0] > 0
    said = section.sentences(("control", "run"))
    assert "This is consistent with earlier exams in its training data." in said[0]
    assert said[-1] == CAVEAT


def test_no_difference_is_no_sign(write) -> None:
    control = write(CONTROL, lambda question, _: _guess(question))
    run = write(REMEMBERS, _knows)
    section = _found(control, run, cutoff="2014")
    assert (
        "is not shown to do better on questions up to 2014 than on those after 2014"
        in section.sentences(("control", "run"))[0]
    )


def test_exams_of_the_cutoffs_own_year_are_left_out(write) -> None:
    section = _found(write(CONTROL, _knows), write(REMEMBERS, _knows), cutoff="2015-06")
    assert section.around is not None
    assert section.around.leftover_count == 24
    assert sum(side.n for side in section.around.sides) == 96
    ((table, caption),) = section.around.tables(("control", "run"))
    assert "Left out, because their exam may lie on either side: 24" in caption
    assert table.title == "Contamination: before and after the cutoff 2015-06"


@pytest.mark.parametrize("text", ["15", "2015-13", "2015-6", "soon", "2015-06-01", ""])
def test_a_cutoff_is_a_year_or_a_month(text) -> None:
    with pytest.raises(SpecError, match="such as 2023 or 2023-06"):
        Cutoff.parse(text)


def test_a_cutoff_beyond_the_exams_is_refused(write) -> None:
    folders = [write(CONTROL, _knows), write(REMEMBERS, _knows)]
    for cutoff in ("2012", "2017"):
        with pytest.raises(DatasetError, match="give a date between the exams' years"):
            compare_runs(folders, find_further(cutoff=cutoff))


def test_altered_runs_are_set_beside_the_same_asking_and_a_control(write) -> None:
    alter = "none_of_the_above"
    folders = [
        write(CONTROL, _knows),
        write(CONTROL, _knows, alter),
        write(REMEMBERS, lambda _, gold: gold),
        write(REMEMBERS, lambda question, _: _guess(question), alter),
    ]
    comparison = compare_runs(folders, find_further())
    (section,) = comparison.sections
    control, run = section.altered.runs
    assert (control.plain, control.control, control.against) == (0, None, None)
    assert (run.plain, run.control) == (2, 1)
    assert control.change.value == 0.0
    assert run.change.value == pytest.approx(run.accuracy - 1.0, abs=1e-12)
    assert run.against.value == pytest.approx(run.change.value, abs=1e-12)
    said = section.sentences(comparison.names)
    assert "has no control" in said[0]
    assert "This is consistent with right options that the model recognises" in said[1]
    report = paired_report(comparison)
    assert "## Contamination: altered questions" in report
    assert CAVEAT in report
    document = json.loads(json.dumps(comparison.document()))["contamination"]
    assert (document["cutoff"], document["altered"][1]["alter"]) == (None, alter)
    # The paired table of the same two runs has the same interval.
    alone = compare_runs(folders[2:], find_further())
    assert alone.statistics.known_by[0].interval == alone.sections[0].altered.runs[0].change.interval


def test_right_answers_without_the_question_are_more_than_a_preference_for_places(write) -> None:
    first = lambda question, _: question.option_numbers[0]  # noqa: E731
    runs = [write(CONTROL, first, "options_withheld"), write(REMEMBERS, _knows, "options_withheld")]
    section = _found(*runs)
    assert section.altered is not None
    constant, remembers = section.altered.runs
    assert constant.above.value == pytest.approx(0.0, abs=1e-12)
    assert remembers.above.interval is not None
    assert remembers.above.interval[0] > 0.2
    said = section.sentences(("first", "remembers"))
    assert "no sign of remembered questions" in said[0]
    assert "This is consistent with remembered places of the right options." in said[1]


def test_questions_that_stand_in_a_corpus_are_told_from_the_others(write, tmp_path) -> None:
    exams = load_exam_set(DatasetSpec())
    leaked = [each for each in exams.questions if each.exam.year < 2015]
    long = {each.key for each in leaked if len(re.findall(r"\w\w+", each.printed)) >= 13}
    corpus = tmp_path / "leaked.jsonl"
    rows = [
        {"id": each.key, "content": " b) ".join([each.stem.upper(), *(option.text for option in each.options)])}
        for each in leaked
    ]
    corpus.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    control = write(CONTROL, lambda question, _: _guess(question))
    run = write(REMEMBERS, lambda question, gold: gold if question.key in long else _guess(question))
    # An altered run beside them changes nothing: the questions are searched as they were printed.
    altered = write(CONTROL, _knows, "question_withheld")
    section = _found(control, run, altered, overlap=str(corpus))
    assert long <= set(section.overlap.shared)
    assert set(section.overlap.shared) <= {each.key for each in leaked}
    assert (section.overlap.texts, section.overlap.sides.sides[0].means[1]) == (len(leaked), 1.0)
    (against, _) = section.overlap.sides.against
    assert against.interval[0] > 0
    said = section.sentences(("control", "run", "altered"))
    assert any("This is consistent with texts like these in its training data." in each for each in said)
    assert any(f"of the {len(leaked)} passages of" in each for each in said)
    with pytest.raises(SpecError, match="needs --overlap CORPUS"):
        find_further(overlap_words=8)
    nowhere = _found(control, run, overlap=str(corpus), overlap_words=300).overlap
    assert (nowhere.shared, nowhere.sides, nowhere.too_short) == ({}, None, len(exams.questions))


def test_how_likely_options_are_is_set_around_the_cutoff_too(tmp_path) -> None:
    exams = load_exam_set(DatasetSpec())

    def write(name, norm, earlier):
        def said(question, _):
            shift = earlier if question.exam.year <= 2014 else 0.0
            scores = {
                number: shift - 3 - (sum(map(ord, question.key)) + number) % 5 / 10
                for number in question.option_numbers
            }
            return {"status": Status.ANSWERED, "answer": max(scores, key=scores.__getitem__), "option_scores": scores}

        return write_run(tmp_path / name, exams, {"kind": "likelihood", "norm": norm}, said)

    control, run = write("control", "min_k", 0.0), write("run", "min_k", 0.4)
    around = _found(control, run, cutoff="2014").around
    assert around is not None
    assert around.scores is not None
    assert around.scores.against[0].value == pytest.approx(0.4, abs=1e-12)
    assert around.against[0].value == pytest.approx(0.0, abs=1e-12)
    tables = around.tables(("control", "run"))
    assert [table.title for table, _ in tables] == [
        "Contamination: before and after the cutoff 2014",
        "Contamination: before and after the cutoff 2014, log-probability of the options (min_k)",
    ]
    said = around.sentences(("control", "run"))
    assert "is not shown to do better" in said[0]
    assert "run finds options likelier on questions up to 2014 than on those after 2014" in said[1]
    # Of questions that are continued, only the own second half counts.
    halves, dataset = load_exam_set(DatasetSpec(alter="question_continued")), {"alter": "question_continued"}
    golds = halves.golds

    def continued(name, earlier):
        def said(question, _):
            own = earlier if question.exam.year <= 2014 else 0.0
            scores = {
                number: own - 3.0 if number == golds[question.key].number else -9.0
                for number in question.option_numbers
            }
            return {"status": Status.ANSWERED, "answer": golds[question.key].number, "option_scores": scores}

        return write_run(tmp_path / name, halves, {"kind": "likelihood", "norm": "min_k"}, said, dataset=dataset)

    section = _found(continued("control_continued", 0.0), continued("run_continued", 0.4), cutoff="2014")
    assert section.around is not None
    assert section.around.scores is not None
    assert section.around.scores.against[0].value == pytest.approx(0.4, abs=1e-12)
    assert "log-probability of the second halves (min_k)" in section.around.tables(("a", "b"))[1][0].title
    assert "picks the true second half of 100.0 % of the questions" in " ".join(section.sentences(("a", "b")))
    # Scores that grow with the length of options, or of another norm, are set beside nothing.
    for norm in ("sum", "byte"):
        other = _found(control, write(norm, norm, 0.4), cutoff="2014").around
        assert other is not None
        assert other.scores is None


def test_altered_runs_stand_beside_no_paper_and_no_people(write) -> None:
    altered = rescore(write(CONTROL, _knows, "options_replaced"))
    with pytest.raises(SpecError, match="asked altered questions"):
        check_shown([altered], "headqa-v1", plots=False)
    check_shown([altered], None, plots=True)
    assert human_baseline([altered]) == ([{"against_people": []}], [])


def test_runs_on_the_same_plain_questions_have_no_such_part(write) -> None:
    assert compare_runs([write(CONTROL, _knows), write(REMEMBERS, _knows)], find_further()).sections == ()
