"""What an answer is worth to an optimizer, and what is said of it to one that reflects on answers."""

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

import dspy

from medexam.errors import SpecError
from medexam.measures.own import Metric
from medexam.predictions import Prediction, Status
from medexam.questions import Gold, Question

WRONG_COSTS = 1 / 3
"""Right answers that a wrong one takes away, by the exam boards' rule."""
LEAST_SHARE = 1e-12
"""What an option's probability counts as when it rounds to nothing."""
SCORE = "_medexam_score"
"""Attribute of a program's output that holds what it is worth."""


class Scored(dspy.Prediction):
    """What an answer is worth, `score`, and what is to be said of it, `feedback`.

    It counts as true for a right answer alone: DSPy's bootstrapping shows what counts as true.
    """

    def __init__(self, score: float, feedback: str, *, right: bool = False) -> None:
        super().__init__(score=score, feedback=feedback)
        self._right = right

    def __bool__(self) -> bool:
        return self._right


def score_output(
    example: dspy.Example,  # noqa: ARG001 - DSPy's names
    prediction: Any,
    trace: Any = None,  # noqa: ARG001
    pred_name: Any = None,  # noqa: ARG001
    pred_trace: Any = None,  # noqa: ARG001
) -> Scored:
    """Return what a program's output is worth, as DSPy's optimizers ask for it."""
    scored = vars(prediction).get(SCORE) if isinstance(prediction, dspy.Prediction) else None
    return scored if scored is not None else Scored(0.0, "The reply has no answer in the format that is asked for.")


def score_answer(name: str, own: Metric | None, question: Question, gold: Gold, prediction: Prediction) -> Scored:
    """Score an answer by the optimizer's metric: its `name`, and the function of the user's own that it is, if any.

    Raises `SpecError` if that raises, or returns neither a number nor a mapping or `dspy.Prediction` with a `score`.
    """
    answer, right = prediction.answer, gold.accepts(prediction.answer)
    if own is not None and prediction.status is not Status.FAILED:
        try:
            output = own(question, gold, prediction)
            fields = output if isinstance(output, Mapping | dspy.Prediction) else {"score": output}
            score, feedback = fields["score"], fields.get("feedback")
        except Exception as error:
            message = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise SpecError(f"optimizer.metric failed on question {question.key}: {message}") from error
        if not isinstance(score, Real):
            raise SpecError(f"optimizer.metric returned {score!r} for question {question.key}, which is no number")
        return Scored(float(score), str(feedback or ""), right=right)
    options = {option.number: option.text for option in question.options}
    solution = f"The right answer is {gold.number}: {options[gold.number]}"
    mistake = "gave no answer in the format that is asked for" if answer is None else f"answered {answer}"
    score = float(right)
    if name == "log_probability":
        shares = prediction.option_probabilities or {}
        score = math.log(max(sum(share for number, share in shares.items() if gold.accepts(number)), LEAST_SHARE))
    elif name == "exam_score" and answer is not None and not right:
        score = -WRONG_COSTS
    return Scored(score, f"Right. {solution}" if right else f"Wrong: the reply {mistake}. {solution}", right=right)
