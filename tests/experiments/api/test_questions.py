"""Questions, programs and models in Python, as DSPy takes them."""

import asyncio
import subprocess
import sys

import dspy
import pytest

import medexam
from medexam.errors import DatasetError, MedExamError, SpecError
from medexam.questions import Question
from medexam.serve import ScriptedEngine
from scripted_engines import LAST_MADE, MADE
from table_cases import read_table


def test_what_is_offered_can_be_imported() -> None:
    assert sorted(medexam.__all__) == medexam.__all__
    assert all(getattr(medexam, name) is not None for name in medexam.__all__)
    assert set(medexam.__all__) <= set(dir(medexam))
    with pytest.raises(AttributeError, match="No medexam attribute nothing"):
        medexam.nothing  # noqa: B018


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, medexam; print({'dspy', 'torch', 'pydantic', 'numpy', 'pyarrow'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"


def test_questions_are_a_sequence_a_table_and_examples() -> None:
    questions = medexam.load_questions("headqa_sample", years=2016)
    assert len(questions) == 24
    assert {question.exam.year for question in questions} == {2016}
    assert isinstance(questions[0], Question)
    assert questions[:2] == tuple(questions)[:2]
    first = questions.examples()[0]
    assert (first.question, first.answer) == (questions[0], questions.answers[questions[0].key])
    assert list(first.inputs()) == ["question"]
    assert questions.examples(as_text=True)[0].question == questions[0].printed
    assert list(questions.to_pandas()["answer"]) == list(questions.answers.values())
    assert "24 questions" in repr(questions)
    assert questions[0].key in questions._repr_markdown_()
    with pytest.raises(SpecError, match="did you mean 'years'"):
        medexam.load_questions("headqa_sample", year=2016)


def test_a_question_of_ones_own() -> None:
    question = Question.of("Which vitamin prevents scurvy?", ["A", "C", "D"])
    with pytest.raises(DatasetError, match=r"medexam\.Question\.of"):
        medexam.build_program("longest")(question=question.printed)
    assert question.printed == "Which vitamin prevents scurvy?\n1. A\n2. C\n3. D"
    assert question.key == Question.of("Which vitamin prevents scurvy?", {1: "A", 2: "C", 3: "D"}).key
    assert question.key != Question.of("Which vitamin prevents scurvy?", ["A", "D", "C"]).key
    assert medexam.build_program("longest")(question=question).answer == 1


def test_programs_run_under_dspys_own_evaluation(scripted) -> None:
    questions = medexam.load_questions("headqa_sample", limit=12)
    program = medexam.build_program("zero_shot", answer_format="guided")
    with dspy.context(lm=medexam.lm(scripted)):
        evaluate = dspy.Evaluate(devset=questions.examples(), metric=medexam.exam_metric, num_threads=2)
        found = evaluate(program)
    right = sum(answer == 1 for answer in questions.answers.values())
    assert found.score == pytest.approx(100 * right / 12, abs=0.01)


@pytest.mark.parametrize(*read_table("metric_answers"))
def test_the_metric_reads_numbers_and_with_the_question_letters_and_texts(said, by_number, by_text) -> None:
    question = Question.of("Which prevents scurvy?", ["Vitamin A", "Vitamin C"])
    prediction = dspy.Prediction(answer=said)
    if by_number is not None:
        assert medexam.exam_metric(dspy.Example(answer=2), prediction) == by_number
    assert medexam.exam_metric(dspy.Example(question=question, answer=2), prediction) == by_text


def test_a_program_that_looks_up_passages_is_run_instead() -> None:
    with pytest.raises(SpecError, match=r"medexam\.run"):
        medexam.build_program("relevance")
    with pytest.raises(MedExamError, match="did you mean 'zero_shot'"):
        medexam.build_program("zero_shoot")


def test_a_model_is_an_lm_with_settings(scripted) -> None:
    lm = medexam.lm(scripted, temperature=0.5)
    assert isinstance(lm, dspy.LM)
    assert lm.kwargs["temperature"] == 0.5
    assert lm.choose("Which?", ["2", "1"]) == "2"
    with pytest.raises(SpecError, match="did you mean 'temperature'"):
        medexam.lm(scripted, temperatur=0.5)


def test_equal_requests_at_a_temperature_are_drawn_one_after_the_other() -> None:
    MADE.append(engine := ScriptedEngine({"*": "A and D."}))
    lm = medexam.lm(LAST_MADE, temperature=0.7, seed=11)
    lm("Which vitamin?")
    lm("Which vitamin?", n=2)
    lm("Which mineral?")
    asyncio.run(lm.acall("Which vitamin?"))
    lm.copy(rollout_id=4)("Which vitamin?")
    assert [one.sampling["seed"] for one in engine.dialogues] == [11, 12, 13, 11, 14, 15]
    engine.dialogues.clear()
    for _ in range(3):
        lm("Which vitamin?", temperature=0.0)
        medexam.lm(LAST_MADE, temperature=0.7, seed=11)("Which vitamin?")
    assert [one.sampling["seed"] for one in engine.dialogues] == [11] * 6
