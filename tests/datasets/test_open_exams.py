"""Exams in their open setting: the stems that are asked, what is expected, and how answers are scored."""

import pytest

from medexam.benchmarks import find_benchmark
from medexam.datasets import load_exam_set, load_task_set
from medexam.errors import SpecError
from medexam.metrics.extraction import is_whole_question
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


def test_right_answers_score_1_and_empty_ones_0_in_each_discipline() -> None:
    spec = DatasetSpec(name="headqa_sample_open")
    items, benchmark = load_task_set(spec), find_benchmark(spec)
    for expected in (1.0, 0.0):
        texts = {key: gold.answers[0] if expected else None for key, gold in items.golds.items()}
        fields = {"program": "p", "spec_digest": "d"}
        predictions = {
            key: Prediction(question=key, status="answered", text=text, **fields)
            if text
            else Prediction(question=key, status="unanswered", reason="unparsed", **fields)
            for key, text in texts.items()
        }
        scored = benchmark.score(items, predictions).metrics
        assert {name: measure.value for name, measure in scored.measures.items()} == dict.fromkeys(
            ("f1", "exact_match", "bleu"), expected
        )
        assert len(scored.by_group) == 6
        assert all(measures["bleu"].value == expected for measures in scored.by_group.values())
        assert 0 < scored.by_subset["whole questions"]["f1"].n < scored.n


@pytest.mark.parametrize(
    ("stem", "whole"),
    [
        ("Which virus causes measles?", True),
        ("¿Qué virus causa el sarampión?", True),
        ("Which of the following viruses causes measles?", False),
        ("Señale la respuesta correcta. ¿Qué virus causa el sarampión?", False),
        ("The virus that causes measles is:", False),
        ("Какое из следующих утверждений верно?", False),
        ("Quale delle seguenti è corretta?", False),
    ],
)
def test_stems_that_need_their_options_are_told_apart(stem, whole) -> None:
    assert is_whole_question(stem) is whole


@pytest.mark.parametrize("settings", [{"program": "zero_shot"}, {"dataset.alter": "options_withheld"}])
def test_what_needs_options_is_refused(settings) -> None:
    document = {"name": "x", "dataset": {"name": "headqa_sample_open"}, "program": "short_answer"}
    with pytest.raises(SpecError):
        build_cells(document, settings)
