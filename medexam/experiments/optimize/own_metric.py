"""A function of the user's own that candidates are chosen by, and what it tells optimizers that reflect on answers."""

from collections.abc import Mapping
from numbers import Real
from typing import NamedTuple

import dspy

from medexam.errors import SpecError
from medexam.measures.own import Metric
from medexam.predictions import Prediction
from medexam.questions import Gold, Question


class Feedback(NamedTuple):
    """What an answer is worth."""

    score: float
    feedback: str | None = None
    """What is good or bad about it, in words; None where nothing is said."""


def gold_of(example: dspy.Example) -> Gold:
    """Return the right options of an example."""
    return Gold(number=example.answer, others=example.get("others", ()))


def score_by(metric: Metric, question: Question, gold: Gold, prediction: Prediction) -> Feedback:
    """Score an answer by a function of the user's own.

    Raises `SpecError` if it raises, or returns neither a number nor a mapping or `dspy.Prediction` with a `score`.
    """
    try:
        output = metric(question, gold, prediction)
        fields = output if isinstance(output, Mapping | dspy.Prediction) else {"score": output}
        score, feedback = fields["score"], fields.get("feedback")
    except Exception as error:
        message = " ".join(str(error).split())
        raise SpecError(
            f"optimizer.metric failed on question {question.key}: {type(error).__name__}: {message}"
        ) from error
    if not isinstance(score, Real):
        raise SpecError(f"optimizer.metric returned {score!r} for question {question.key}, which is no number")
    return Feedback(float(score), None if feedback is None else str(feedback))
