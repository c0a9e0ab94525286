"""Small exams with known golds, and predictions made by a rule."""

import pytest

from medexam.measures import compute_metrics
from medexam.predictions import Failure, Prediction, Reason, Status
from medexam.questions import AnswerKey, Discipline, Exam, Gold, Option, Question, Scoring
from predicted import predicted

BOARD = Scoring(as_headqa_v1=True)
"""Three wrong answers cancel a right one, and averages are as the first paper prints them."""


def _question(exam: Exam, number: int, options: int) -> Question:
    return Question(
        key=f"{exam.name}/{number}",
        exam=exam,
        number=number,
        language="en",
        stem="?",
        options=tuple(Option(number=n, text="x" * n) for n in range(1, options + 1)),
    )


@pytest.fixture
def make_exam():
    """`make_exam("biology", 2013, size=10, options=5)` -> questions; the gold of each is 1."""

    def make(discipline: str, year: int, size: int, options: int, name: str | None = None, **more) -> list[Question]:
        exam = Exam(name=name or f"{discipline}-{year}", year=year, discipline=Discipline(discipline), **more)
        return [_question(exam, number, options) for number in range(1, size + 1)]

    return make


@pytest.fixture
def key_of():
    """An answer key in which option 1 is always right."""
    return lambda questions: AnswerKey({question.key: Gold(number=1) for question in questions})


@pytest.fixture
def predict():
    """`predict(questions, "rwufm")`: one letter a question, repeated: right, wrong, unanswered, failed, missing."""

    def make(questions, outcomes: str, **fields) -> dict[str, Prediction]:
        kinds = {
            "r": {"status": Status.ANSWERED, "answer": 1},
            "w": {"status": Status.ANSWERED, "answer": 2},
            "u": {"status": Status.UNANSWERED, "reason": Reason.UNPARSED},
            "f": {"status": Status.FAILED, "failure": Failure(kind="LMTransportError", message="gone")},
        }
        found = {}
        for position, question in enumerate(questions):
            outcome = outcomes[position % len(outcomes)]
            if outcome != "m":
                found[question.key] = predicted(
                    question=question.key, program="p", spec_digest="d", **kinds[outcome], **fields
                )
        return found

    return make


@pytest.fixture
def board():
    """How HEAD-QA is scored."""
    return BOARD


@pytest.fixture
def score(make_exam, key_of, predict):
    """`score("rrw", "ru")` -> the metrics of two exams, one letter a question."""

    def make(*exams: str, **more):
        questions, predictions = [], {}
        for place, outcomes in enumerate(exams):
            asked = make_exam("biology", 2013, len(outcomes), 4, name=f"exam-{place:02d}", **more)
            questions += asked
            predictions |= predict(asked, outcomes) if outcomes else {}
        return compute_metrics(questions, key_of(questions), predictions, BOARD)

    return make
