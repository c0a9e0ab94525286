"""Two runs in two languages: what is right in both, in one and in neither, and which runs may be set side by side."""

import json

import pytest

from medexam.datasets import load_exam_set
from medexam.errors import SpecError
from medexam.experiments.compare.languages import compare_run_languages
from medexam.experiments.report.language_tables import consistency_latex, consistency_report, consistency_tables
from medexam.metrics import mcnemar_p
from medexam.predictions import Status
from medexam.specs import DatasetSpec
from stored_runs import write_run


@pytest.fixture
def make(tmp_path):
    """A run of 20 sample questions in a language; a letter a question: right, wrong, another wrong, unanswered."""

    def run(language, letters, *, program=None, name=None):
        exams = load_exam_set(DatasetSpec(name="headqa_sample", language=language, limit=20))
        letter = dict(zip([question.key for question in exams.questions], letters, strict=True))

        def answer(question, gold):
            said = letter[question.key]
            if said == "u":
                return {"status": Status.UNANSWERED, "reason": "unparsed", "reply": "?"}
            wrong = [number for number in question.option_numbers if number != gold]
            number = {"r": gold, "w": wrong[0], "o": wrong[1]}[said]
            return {"status": Status.ANSWERED, "answer": number, "reply": "x"}

        path = tmp_path / (name or f"run-{language}")
        return write_run(path, exams, program or {"kind": "zero_shot"}, answer, dataset={"limit": 20})

    return run


def test_questions_are_counted_by_where_they_are_right(make) -> None:
    runs = [
        make("es", "rrrrr" + "rrrr" + "w" + "wwwww" + "uuwww"),
        make("en", "rrrrr" + "wwww" + "r" + "wwwww" + "uwoou"),
    ]

    found = compare_run_languages(runs)

    document = found.document()
    assert (document["both_right"], document["neither"], document["questions"]) == (5, 10, 20)
    assert (len(document["only_es"]), len(document["only_en"])) == (4, 1)
    assert len(document["neither_with_the_same_answer"]) == 5
    assert document["mcnemar_p"] == pytest.approx(mcnemar_p(4, 1))
    tables = consistency_tables(found)
    assert len(tables) == 3


def test_runs_that_differ_in_more_than_language_are_refused(make) -> None:
    spanish = make("es", "r" * 20)

    with pytest.raises(SpecError, match="both runs ask in es"):
        compare_run_languages([spanish, make("es", "w" * 20, name="other")])
    with pytest.raises(SpecError, match=r"differ in more than their language \(program.kind"):
        compare_run_languages([spanish, make("en", "w" * 20, program={"kind": "chain_of_thought"})])
    with pytest.raises(SpecError, match="takes two runs or more, and 1 were given"):
        compare_run_languages([spanish])


@pytest.mark.parametrize("language", [None, "en"])
def test_queries_in_each_runs_language_or_in_one_are_no_other_difference(make, language) -> None:
    program = {"kind": "retrieve_then_answer", "query_language": language}
    runs = [make("es", "r" * 20, program=program), make("en", "w" * 20, program=program)]
    assert compare_run_languages(runs).flips.n == 20


@pytest.fixture
def make_all(tmp_path):
    """Write runs of headqa_v2 over the same ten questions, a letter a question: right or wrong."""
    rows = [
        {
            "name": "Cuaderno_2013_1_B",
            "year": 2013,
            "category": "biology",
            "qid": number,
            "qtext": f"Question {number}?",
        }
        for number in range(1, 11)
    ]
    options = [{"aid": number, "atext": text} for number, text in enumerate(["Ferritin", "Sodium", "Iron"], start=1)]
    (tmp_path / "data").mkdir()

    def make(language, letters):
        lines = [json.dumps({**row, "ra": 1, "image": None, "answers": options}) for row in rows]
        (tmp_path / "data" / f"{language}.jsonl").write_text("\n".join(lines) + "\n")
        dataset = {"name": "headqa_v2", "path": tmp_path / "data"}
        exams = load_exam_set(DatasetSpec(language=language, **dataset))
        letter = dict(zip([question.key for question in exams.questions], letters, strict=True))
        numbers = {"r": 1, "w": 2, "o": 3}

        def answer(question, gold):
            return {"status": Status.ANSWERED, "answer": numbers[letter[question.key]], "reply": "x"}

        return write_run(tmp_path / f"run-{language}", exams, {"kind": "zero_shot"}, answer, dataset=dataset)

    return make


def test_every_two_of_five_languages_are_compared(make_all) -> None:
    letters = {"en": "rrrrrrrwww", "es": "rrrrrwrwww", "gl": "wrrrrwrwwo", "it": "rwrrrwrwwo", "ru": "rrwrrwwrwo"}
    found = compare_run_languages([make_all(language, said) for language, said in letters.items()])
    document = found.document()
    assert document["accuracy"] == {"en": 0.7, "es": 0.6, "gl": 0.5, "it": 0.5, "ru": 0.5}
    assert document["right_in_how_many"] == [2, 2, 0, 0, 4, 2]
    assert (len(document["wrong_alone"]["gl"]), len(document["right_alone"]["en"])) == (1, 1)
    pairs = {"".join(pair["languages"]): pair for pair in document["pairs"]}
    assert list(pairs) == ["enes", "engl", "enit", "enru", "esgl", "esit", "esru", "glit", "glru", "itru"]
    assert pairs["glit"]["both_right"] == 4
    assert (pairs["glit"]["only_gl"], pairs["glit"]["only_it"], pairs["glit"]["neither"]) == (1, 1, 4)
    assert pairs["engl"]["difference"]["value"] == pytest.approx(-0.2)
    assert pairs["enru"]["p_holm"] == pytest.approx(min(1, 10 * mcnemar_p(3, 1)))
    assert pairs["glit"]["neither_with_the_same_answer"] == 4
    titles = [table.title for table, _ in consistency_tables(found)]
    assert titles[1:4] == ["Every two languages", "Right in how many languages", "Accuracy by discipline"]
    assert "Every two languages" in consistency_report(found)
    assert "suspect" not in consistency_latex(found)
    assert found.values()["accuracy.ru"] == 0.5
