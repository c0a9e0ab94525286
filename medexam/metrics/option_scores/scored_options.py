"""One question's stored option scores as probabilities, seen beside its gold: what the option metrics are made of.

It reads the prediction alone, so it knows neither how scores were found nor what the question says.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from medexam.answer_key import AnswerKey
from medexam.predictions import Prediction, Status, normalise_scores
from medexam.questions import Question


@dataclass(frozen=True)
class ShownOrder:
    """The options in one order, as the model was shown them."""

    numbers: tuple[int, ...]
    """Printed number of the option at each place."""
    probabilities: tuple[float, ...]
    """Share of the probability of the option at each place; they sum to 1."""
    chosen: int
    """Printed number of the likeliest option, the first shown of equals."""


@dataclass(frozen=True)
class ScoredOptions:
    """One question whose options were scored."""

    gold: int
    """Printed number of the right option."""
    probabilities: Mapping[int, float]
    """Printed number of each option, in the exam's order -> its share of the probability; they sum to 1."""
    chosen: int
    """Printed number of the likeliest option, the first of equals."""
    orders: tuple[ShownOrder, ...]
    """Every order that was shown; empty where only the exam's was."""
    tied: bool
    """Whether more than one option shared the best score."""
    label_mass: float | None
    """Probability that the next token is any of the option numbers; None where no numbers were read."""

    @property
    def confidence(self) -> float:
        """The likeliest option's share of the probability."""
        return max(self.probabilities.values())

    @property
    def right(self) -> bool:
        """Whether the likeliest option is the right one."""
        return self.chosen == self.gold


def scored_options(
    questions: Sequence[Question], key: AnswerKey, predictions: Mapping[str, Prediction]
) -> list[ScoredOptions]:
    """Those of `questions`, in their order, whose prediction has option scores and did not fail.

    Raises `DatasetError` when `key` lacks one of them.
    """
    found = []
    for question in questions:
        prediction = predictions.get(question.key)
        if prediction is not None and prediction.status is not Status.FAILED and prediction.option_scores:
            found.append(_read(prediction, prediction.option_scores, key[question.key].number))
    return found


def _read(prediction: Prediction, scores: Mapping[int, float], gold: int) -> ScoredOptions:
    best = max(scores.values())
    sharing = sum(score == best for score in scores.values()) if prediction.tied is None else prediction.tied
    rows = prediction.order_scores or ()
    return ScoredOptions(
        gold=gold,
        probabilities=normalise_scores(scores),
        chosen=max(scores, key=scores.__getitem__),
        orders=tuple(_shown(tuple(scores), first, row) for first, row in enumerate(rows)),
        tied=sharing > 1,
        label_mass=prediction.label_mass,
    )


def _shown(numbers: Sequence[int], first: int, row: Sequence[float]) -> ShownOrder:
    """The order that begins with the option at place `first` (from 0) of the exam; `row` holds its scores as shown."""
    shown = tuple(numbers[(first + place) % len(numbers)] for place in range(len(numbers)))
    probabilities = normalise_scores(dict(enumerate(row)))
    return ShownOrder(shown, tuple(probabilities.values()), shown[row.index(max(row))])
