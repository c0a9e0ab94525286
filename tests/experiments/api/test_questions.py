"""Questions, programs and models in Python, as DSPy takes them."""

import asyncio
import math
import subprocess
import sys

import dspy
import pytest

import medexam
from medexam.errors import DatasetError, MedExamError, SpecError
from medexam.questions import Question
from medexam.serve import ScriptedEngine


def test_what_is_offered_can_be_imported() -> None:
    assert sorted(medexam.__all__) == medexam.__all__
    assert all(getattr(medexam, name) is not None for name in medexam.__all__)
    assert set(medexam.__all__) <= set(dir(medexam))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
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
    assert questions[0].key in questions._repr_html_()
    with pytest.raises(SpecError, match="did you mean 'years'"):
        medexam.load_questions("headqa_sample", year=2016)


def test_a_question_of_ones_own() -> None:
    question = Question.of("Which vitamin prevents scurvy?", ["A", "C", "D"])
    assert question.printed == "Which vitamin prevents scurvy?\n1. A\n2. C\n3. D"
    assert question.key == Question.of("Which vitamin prevents scurvy?", {1: "A", 2: "C", 3: "D"}).key
    assert question.key != Question.of("Which vitamin prevents scurvy?", ["A", "D", "C"]).key
    assert medexam.build_program("longest")(question=question).answer == 1


@pytest.mark.parametrize("kind", ["zero_shot", "longest", "likelihood"])
def test_a_text_is_no_question(kind, scripted) -> None:
    program = medexam.build_program(kind)
    with dspy.context(lm=medexam.lm(scripted)), pytest.raises(DatasetError, match=r"medexam\.Question\.of"):
        program(question="Which vitamin prevents scurvy?")


def test_programs_run_under_dspys_own_evaluation(scripted) -> None:
    questions = medexam.load_questions("headqa_sample", limit=12)
    program = medexam.build_program("zero_shot", answer_format="guided")
    with dspy.context(lm=medexam.lm(scripted)):
        evaluate = dspy.Evaluate(devset=questions.examples(), metric=medexam.exam_metric, num_threads=2)
        found = evaluate(program)
    right = sum(answer == 1 for answer in questions.answers.values())
    assert found.score == pytest.approx(100 * right / 12, abs=0.01)


@pytest.mark.parametrize(
    ("said", "score"), [(2, 1.0), ("2", 1.0), ("2.", 1.0), ("(2)", 1.0), ("B", 0.0), (None, 0.0), (3, 0.0)]
)
def test_the_metric_reads_numbers(said, score) -> None:
    assert medexam.exam_metric(dspy.Example(answer=2), dspy.Prediction(answer=said)) == score


@pytest.mark.parametrize(
    ("said", "score"), [(2, 1.0), ("B", 1.0), ("Vitamin C", 1.0), ("{Answer: 2}", 1.0), ("A", 0.0)]
)
def test_with_the_question_the_metric_reads_letters_and_texts(said, score) -> None:
    question = Question.of("Which prevents scurvy?", ["Vitamin A", "Vitamin C"])
    assert medexam.exam_metric(dspy.Example(question=question, answer=2), dspy.Prediction(answer=said)) == score


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


def test_equal_requests_at_a_temperature_are_drawn_one_after_the_other(scripted, monkeypatch) -> None:
    seeds, answer = [], ScriptedEngine.answer

    def keep_seed(engine, dialogue):
        seeds.append(dialogue.sampling.seed)
        return answer(engine, dialogue)

    monkeypatch.setattr(ScriptedEngine, "answer", keep_seed)
    lm = medexam.lm(scripted, temperature=0.7, seed=11)
    lm("Which vitamin?")
    lm("Which vitamin?", n=2)
    lm("Which mineral?")
    asyncio.run(lm.acall("Which vitamin?"))
    lm.copy(rollout_id=4)("Which vitamin?")
    assert seeds == [11, 12, 13, 11, 14, 15]
    seeds.clear()
    for _ in range(3):
        lm("Which vitamin?", temperature=0.0)
        medexam.lm(scripted, temperature=0.7, seed=11)("Which vitamin?")
    assert seeds == [11] * 6


def test_a_reply_that_is_drawn_again_tells_its_seed(scripted) -> None:
    question = Question.of("Which vitamin prevents scurvy?", ["A", "C", "D"])
    program = medexam.build_program("zero_shot")
    with dspy.context(lm=medexam.lm(scripted, temperature=0.7, seed=11)):
        assert [program(question=question).generations[0].seed for _ in range(3)] == [11, 12, 13]


@pytest.mark.model
def test_scores_are_those_of_transformers(tiny_llama) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_llama)
    model = AutoModelForCausalLM.from_pretrained(tiny_llama, dtype=torch.float32)
    prompt, texts = "Scurvy is caused by a lack of vitamin", [" C", " D", " B12, which meat holds"]
    scores = medexam.lm("embedded", path=tiny_llama, dtype="float32").score(prompt, texts)
    for text, score in zip(texts, scores, strict=True):
        whole, length = tokenizer(prompt + text)["input_ids"], len(tokenizer(prompt)["input_ids"])
        with torch.no_grad():
            logprobs = model(torch.tensor([whole])).logits[0].log_softmax(-1)
        expected = [logprobs[at - 1, whole[at]].item() for at in range(length, len(whole))]
        assert list(score.logprobs) == pytest.approx(expected, abs=1e-3)
        assert score.total == pytest.approx(math.fsum(expected), abs=2e-3)
