"""The HEAD-QA v1 paper's averaging, by hand and against its published LENGTH row."""

import json
import os
from pathlib import Path

import pytest

from medexam.metrics import Tally, compute_metrics
from medexam.metrics.exam_averages import headqa_v1_accuracy, headqa_v1_points
from medexam.predictions import Prediction, Status
from medexam.questions import AnswerKey, Discipline, Exam, Gold, Option, Question


def test_exams_weigh_the_same_and_are_rounded_before_they_are_averaged() -> None:
    exams = [Tally(right=1, wrong=2), Tally(right=2, wrong=1, unanswered=3), Tally(right=1, wrong=5)]
    assert headqa_v1_accuracy(exams) == 27.8  # (0.333 + 0.333 + 0.167) / 3 = 0.27767
    assert headqa_v1_points(exams) == 1.3  # (1 + 5 - 2) / 3


@pytest.mark.parametrize(
    ("right", "n", "percent"),
    [(247, 400, 61.8), (919, 2000, 46.0), (1, 2000, 0.1), (1, 16, 6.3), (3, 16, 18.8), (2, 3, 66.7)],
)
def test_a_tie_in_accuracy_goes_up(right: int, n: int, percent: float) -> None:
    assert headqa_v1_accuracy([Tally(right=right, wrong=n - right)]) == percent


def test_a_tie_of_the_mean_goes_away_from_zero() -> None:
    exams = [Tally(right=498, wrong=502), Tally(right=499, wrong=501)]
    assert headqa_v1_accuracy(exams) == 49.9  # 0.4985
    assert headqa_v1_points([Tally(right=1), *[Tally()] * 3, *[Tally(wrong=1)] * 2, *[Tally()] * 14]) == 0.1  # 0.05
    assert headqa_v1_points([Tally(wrong=1), *[Tally()] * 3]) == -0.3  # -0.25


def test_no_exam_has_no_figure() -> None:
    assert headqa_v1_accuracy([]) is None
    assert headqa_v1_points([]) is None


def _head_json(language_file: str) -> Path:
    root = os.environ.get("MEDEXAM_DATA")
    if not root:
        pytest.skip("MEDEXAM_DATA is not set: it names the folder that holds headqa_v1/HEAD.json")
    return Path(root) / "headqa_v1" / language_file


def _longest(path: Path) -> tuple[list[Question], AnswerKey, dict[str, Prediction]]:
    """The file's questions, golds, and the first of the longest options of each."""
    questions, golds, predictions = [], {}, {}
    for exam in json.loads(path.read_text(encoding="utf-8"))["exams"].values():
        discipline = Discipline("nursing" if exam["category"] == "nursery" else exam["category"])
        booklet = Exam(name=exam["name"], year=int(exam["year"]), discipline=discipline)
        for item in exam["data"]:
            options = tuple(Option(number=int(a["aid"]), text=a["atext"]) for a in item["answers"])
            question = Question(
                key=f"{booklet.name}/{item['qid']}",
                exam=booklet,
                number=int(item["qid"]),
                language="es",
                stem=item["qtext"],
                options=options,
            )
            questions.append(question)
            golds[question.key] = Gold(number=int(item["ra"]))
            answer = max(options, key=lambda option: len(option.text)).number
            predictions[question.key] = Prediction(
                question=question.key, program="longest", spec_digest="d", status=Status.ANSWERED, answer=answer
            )
    return questions, AnswerKey(golds), predictions


@pytest.mark.data
def test_the_published_length_row_is_reproduced() -> None:
    metrics = compute_metrics(*_longest(_head_json("HEAD.json")))
    assert metrics.n == 6765
    assert (metrics.headqa_v1_accuracy, metrics.headqa_v1_points) == (28.1, 28.2)
    biology = metrics.by_discipline[Discipline.BIOLOGY]
    assert (biology.headqa_v1_accuracy, biology.headqa_v1_points) == (26.9, 16.8)
    assert metrics.by_option_count[5].n == 2657
    assert metrics.exams == 30


@pytest.mark.data
def test_the_published_length_row_of_the_test_split_is_reproduced_but_for_its_ties() -> None:
    questions, key, predictions = _longest(_head_json("HEAD.json"))
    asked = [question for question in questions if question.exam.year in (2016, 2017)]
    disciplines = ("biology", "medicine", "nursing", "pharmacology", "psychology", "chemistry")
    found = compute_metrics(asked, key, predictions).by_discipline
    printed = (32.4, 27.0, 32.8, 30.2, 30.5, 30.1)
    ours = [found[Discipline(name)].headqa_v1_accuracy for name in disciplines]
    assert ours == [*printed[:4], 30.6, 30.2]
