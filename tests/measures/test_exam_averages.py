"""The HEAD-QA v1 paper's averaging, by hand and against its published LENGTH row."""

import os

import pytest

from medexam.datasets import load_exam_set
from medexam.measures import compute_metrics
from medexam.predictions import Prediction, Status
from medexam.specs import DatasetSpec


@pytest.mark.parametrize(
    ("exams", "accuracy", "points"),
    [
        # (0.333 + 0.333 + 0.167) / 3 = 0.27767, and (1 + 5 - 2) / 3: exams weigh the same and are rounded first.
        (("rww", "rrwuuu", "rwwwww"), 27.8, 1.3),
        # A tie of an accuracy goes up: 0.6175, 0.4595, 0.0005, 0.0625, 0.1875, 0.6667.
        (("r" * 247 + "w" * 153,), 61.8, 588.0),
        (("r" * 919 + "w" * 1081,), 46.0, 1676.0),
        (("r" + "w" * 1999,), 0.1, -1996.0),
        (("r" + "w" * 15,), 6.3, -12.0),
        (("rrr" + "w" * 13,), 18.8, -4.0),
        (("rrw",), 66.7, 5.0),
        # A tie of the mean goes away from zero: 0.4985, 0.05 and -0.25.
        (("r" * 498 + "w" * 502, "r" * 499 + "w" * 501), 49.9, 994.0),
        (("r", *["u"] * 3, *["w"] * 2, *["u"] * 14), 5.0, 0.1),
        (("w", *["u"] * 3), 0.0, -0.3),
        (("f",), None, None),
    ],
)
def test_exams_are_averaged_as_the_paper_averages_them(score, exams, accuracy, points) -> None:
    found = score(*exams)
    values = found.measure("headqa_v1_accuracy").value, found.measure("headqa_v1_points").value
    assert values == (accuracy, points)


@pytest.mark.data
@pytest.mark.skipif("MEDEXAM_DATA" not in os.environ, reason="MEDEXAM_DATA does not name the folder of headqa_v1")
def test_the_published_rows_of_the_longest_option_are_reproduced(board) -> None:
    exams = load_exam_set(DatasetSpec(name="headqa_v1", language="es"))
    questions, key, predictions = exams.questions, exams.golds, {}
    for question in questions:
        answer = max(question.options, key=lambda option: len(option.text)).number
        predictions[question.key] = Prediction(
            question=question.key, program="longest", spec_digest="d", status=Status.ANSWERED, answer=answer
        )
    metrics = compute_metrics(questions, key, predictions, board)
    assert (metrics.n, metrics.exams, metrics.by["option_count"]["5"].n) == (6765, 30, 2657)
    assert (metrics.measure("headqa_v1_accuracy").value, metrics.measure("headqa_v1_points").value) == (28.1, 28.2)
    biology = metrics.by["discipline"]["biology"]
    assert (biology.measure("headqa_v1_accuracy").value, biology.measure("headqa_v1_points").value) == (26.9, 16.8)
    # Of the test split the paper prints 30.5 and 30.1 for the last two, whose longest options tie.
    asked = [question for question in questions if question.exam.year in (2016, 2017)]
    found = compute_metrics(asked, key, predictions, board).by["discipline"]
    disciplines = ("biology", "medicine", "nursing", "pharmacology", "psychology", "chemistry")
    ours = [found[name].measure("headqa_v1_accuracy").value for name in disciplines]
    assert ours == [32.4, 27.0, 32.8, 30.2, 30.6, 30.2]
