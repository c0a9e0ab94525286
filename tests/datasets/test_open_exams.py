"""Exams in their open setting: the stems that are asked, what is expected, and how answers are scored."""

import pytest

from medexam.datasets import load_exam_set, load_task_set
from medexam.errors import SpecError
from medexam.measures import find_benchmark
from medexam.predictions import Prediction
from medexam.specs import DatasetSpec, build_cells

FILTERS = {"years": (2015, 2016), "disciplines": ("medicine", "nursing"), "limit": 7}


@pytest.mark.parametrize("language", ["en", "es"])
def test_the_selected_questions_are_asked_without_their_options(language) -> None:
    exams = load_exam_set(DatasetSpec(name="headqa_sample", language=language, **FILTERS))
    tasks = load_task_set(DatasetSpec(name="headqa_sample_open", language=language, **FILTERS))
    assert [task.key for task in tasks.questions] == [question.key for question in exams.questions]
    for task, question in zip(tasks.questions, exams.questions, strict=True):
        right = next(option.text for option in question.options if option.number == exams.golds[task.key].number)
        assert (task.question, task.options, task.group) == (question.stem, (), question.exam.discipline)
        assert tasks.golds[task.key].answers == (right,)
    assert tasks.fingerprint == load_task_set(DatasetSpec(name="headqa_sample_open", language=language)).fingerprint


def _score(spec: DatasetSpec, right: bool):
    items = load_task_set(spec)
    answered = {key: {"status": "answered", "text": gold.answers[0]} for key, gold in items.golds.items()}
    silent = {"status": "unanswered", "reason": "unparsed"}
    predictions = {
        key: Prediction(question=key, program="p", spec_digest="d", **(said if right else silent))
        for key, said in answered.items()
    }
    return find_benchmark(spec).score(items, predictions).metrics


@pytest.mark.parametrize("right", [True, False])
def test_right_answers_score_1_and_empty_ones_0_in_each_discipline(right) -> None:
    scored = _score(DatasetSpec(name="headqa_sample_open"), right)
    assert {name: measure.value for name, measure in scored.measures.items()} == dict.fromkeys(
        ("f1", "exact_match"), float(right)
    )
    assert len(scored.by["group"]) == 6
    assert all(scores.measures["f1"].value == float(right) for scores in scored.by["group"].values())


def test_stems_that_need_their_options_are_scored_apart(write_exam) -> None:
    whole = ("Which virus causes measles?", "¿Qué virus causa el sarampión?")
    cut = (
        "Which of the following viruses causes measles?",
        "Señale la respuesta correcta. ¿Qué virus causa el sarampión?",
        "The virus that causes measles is:",
        "Какое из следующих утверждений верно?",
        "Quale delle seguenti è corretta?",
    )
    for stem in whole + cut:
        path = write_exam({"qtext": stem}, {"qtext": whole[0]})
        scored = _score(DatasetSpec(name="headqa_v1_open", path=path), right=True)
        assert scored.by["subset"]["whole questions"].measures["f1"].n == (2 if stem in whole else 1), stem


def test_a_program_that_chooses_among_options_is_refused() -> None:
    with pytest.raises(SpecError):
        build_cells({"name": "x", "dataset": {"name": "headqa_sample_open"}, "program": "zero_shot"}, {})
