"""Runs in several languages: what is right in all, in some and in none, and which runs may be set side by side."""

import json

import pytest

from medexam.datasets import load_exam_set
from medexam.measures import mcnemar_p
from medexam.predictions import Status
from medexam.specs import DatasetSpec
from sealed_texts import check_sealed
from stored_runs import write_run

ZERO_SHOT = {"kind": "zero_shot"}


@pytest.fixture
def compare(medexam):
    """`compare(run, ...)` -> what `medexam compare --languages` finds of them."""

    def find(*runs):
        code, out, err = medexam("compare", "--languages", *runs, "--json")
        assert code == 0, err
        return json.loads(out)["languages"] | {"questions": json.loads(out)["questions"]}

    return find


def test_questions_are_counted_by_where_they_are_right(compare, make_run, medexam, tmp_path) -> None:
    runs = [
        make_run(ZERO_SHOT, "rrrrr" + "rrrr" + "w" + "wwwww" + "uuwww", language="es"),
        make_run(ZERO_SHOT, "rrrrr" + "wwww" + "r" + "wwwww" + "uwoou"),
    ]
    document = compare(*runs)
    (pair,) = document["pairs"]
    flips = pair["flips"]
    assert (flips["both_right"], flips["both_wrong"], document["questions"]) == (5, 10, 20)
    assert (flips["right_to_wrong"], flips["wrong_to_right"]) == (4, 1)
    assert (len(document["right_alone"]["es"]), len(document["right_alone"]["en"])) == (4, 1)
    assert pair["neither_with_the_same_answer"] == 5
    assert pair["p"] == pytest.approx(mcnemar_p(4, 1))
    medexam("compare", "--languages", *runs, "--markdown", tmp_path / "languages.md")
    check_sealed("compare/languages.md", (tmp_path / "languages.md").read_text(), tmp_path)


@pytest.mark.parametrize("language", [None, "en"])
def test_queries_in_each_runs_language_or_in_one_are_no_other_difference(compare, make_run, language) -> None:
    program = {"kind": "retrieve_then_answer", "query_language": language}
    assert compare(make_run(program, "r", language="es"), make_run(program, "w"))["questions"] == 20


def test_runs_that_differ_in_more_than_language_are_refused(medexam, make_run) -> None:
    spanish = make_run(ZERO_SHOT, "r", language="es")
    for others, said in (
        ([make_run(ZERO_SHOT, "w", language="es")], "both runs ask in es"),
        ([make_run({"kind": "chain_of_thought"}, "w")], "differ in more than their language (program.kind"),
    ):
        code, _, err = medexam("compare", "--languages", spanish, *others)
        assert (code, said in err) == (2, True)


@pytest.fixture
def make_all(tmp_path):
    """Write runs of headqa_v2 over the same ten questions, a letter a question."""
    options = [{"aid": number, "atext": text} for number, text in enumerate(["Ferritin", "Sodium", "Iron"], start=1)]
    shared = {"name": "Cuaderno_2013_1_B", "year": 2013, "category": "biology", "ra": 1, "image": None}
    rows = [{**shared, "qid": n, "qtext": f"Question {n}?", "answers": options} for n in range(1, 11)]
    (tmp_path / "data").mkdir()

    def make(language, letters):
        (tmp_path / "data" / f"{language}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        dataset = {"name": "headqa_v2", "path": tmp_path / "data"}
        exams = load_exam_set(DatasetSpec(language=language, **dataset))
        letter = iter(letters)

        def answer(question, gold):
            return {"status": Status.ANSWERED, "answer": {"r": 1, "w": 2, "o": 3}[next(letter)], "reply": "x"}

        return write_run(tmp_path / f"run-{language}", exams, ZERO_SHOT, answer, dataset=dataset).path

    return make


def test_every_two_of_five_languages_are_compared(compare, make_all) -> None:
    letters = {"en": "rrrrrrrwww", "es": "rrrrrwrwww", "gl": "wrrrrwrwwo", "it": "rwrrrwrwwo", "ru": "rrwrrwwrwo"}
    document = compare(*(make_all(language, said) for language, said in letters.items()))
    assert document["accuracy"] == {"en": 0.7, "es": 0.6, "gl": 0.5, "it": 0.5, "ru": 0.5}
    assert document["right_in_how_many"] == [2, 2, 0, 0, 4, 2]
    assert (len(document["wrong_alone"]["gl"]), len(document["right_alone"]["en"])) == (1, 1)
    pairs = {"".join(pair["languages"]): pair for pair in document["pairs"]}
    assert list(pairs) == ["enes", "engl", "enit", "enru", "esgl", "esit", "esru", "glit", "glru", "itru"]
    flips = pairs["glit"]["flips"]
    assert (flips["both_right"], flips["both_wrong"]) == (4, 4)
    assert (flips["right_to_wrong"], flips["wrong_to_right"]) == (1, 1)
    assert pairs["engl"]["difference"]["value"] == pytest.approx(-0.2)
    assert pairs["enru"]["p_adjusted"] == pytest.approx(min(1, 10 * mcnemar_p(3, 1)))
    assert pairs["glit"]["neither_with_the_same_answer"] == 4
