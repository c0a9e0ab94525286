"""One answer made of the answers that several runs gave to the same question; nothing is asked.

The rules are those of Kuncheva (2014), "Combining Pattern Classifiers", chapters 4 and 5: majority vote, the mean of
the members' probabilities, and weights that are fitted on other exams.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from medexam.predictions import Prediction, Status, normalise_scores
from medexam.predictions.evidence.option_scores import OptionScores
from medexam.programs.combining.voting import NO_VOTE
from medexam.programs.controls import Control
from medexam.programs.program_output import ProgramOutput
from medexam.questions import Question
from medexam.specs.programs.ensembles import Combine

Answered = Prediction | ProgramOutput
"""What a run keeps of a question, or a branch of a program says to it."""
Chances = Mapping[int, float]
"""Printed number of each option -> its probability; they sum to 1."""


class MemberAnswers(Protocol):
    """Knows what the members of an ensemble have answered."""

    @property
    def weights(self) -> Sequence[float] | None:
        """The weight of each member, in their order; None where the ensemble weighs none."""

    def find(self, question: Question) -> Sequence[Prediction] | None:
        """Find the answer of each member, in their order; None if one has not answered, or its asking failed."""


@dataclass
class StoredAnswers:
    """What the members of an ensemble have answered, as `MemberAnswers`."""

    predictions: Sequence[Mapping[str, Prediction]]
    """Of each member, in their order, key of a question -> its prediction."""
    weights: Sequence[float] | None = None

    def find(self, question: Question) -> tuple[Prediction, ...] | None:
        """Find the answer of each member; None if one has not answered, or its asking failed."""
        answers = [member.get(question.key) for member in self.predictions]
        valid_answers = tuple(answer for answer in answers if answer is not None and answer.status is not Status.FAILED)
        return valid_answers if len(valid_answers) == len(self.predictions) else None


class Ensemble(Control):
    """Combines what its members have answered.

    A prediction carries `votes`, the members' answers in their order, and `scores`, the log of each option's combined
    probability. It is unanswered where no member has a legal answer.
    """

    def __init__(self, combine: Combine, members: MemberAnswers) -> None:
        super().__init__()
        self._combine = combine
        self._members = members

    def say(self, question: Question) -> ProgramOutput:
        """Return the combined answer; raises `LookupError` where a member has none yet."""
        predictions = self._members.find(question)
        if predictions is None:
            raise LookupError(f"a member of the ensemble has not answered {question.key}")
        weights = self._members.weights if self._combine == "stacked" else None
        votes = tuple(prediction.answer for prediction in predictions)
        scores = combine(question, predictions, self._combine, weights)
        answer = None if scores is None else choose(question, predictions, scores.option_scores)
        return ProgramOutput(answer=answer, rationale=None, scores=scores, votes=votes)


def combine(
    question: Question, predictions: Sequence[Answered], rule: Combine, weights: Sequence[float] | None = None
) -> OptionScores | None:
    """Return the log of each option's combined probability; None where no member has a legal answer.

    `weights`, one a member, belong to `stacked`: the options' probabilities are the softmax of the weighted sums.
    """
    answers = Counter(prediction.answer for prediction in predictions if prediction.answer is not None)
    if not answers:
        return None
    numbers, chances = question.option_numbers, [member_chances(question, prediction) for prediction in predictions]
    if rule == "vote":
        probabilities = {number: answers[number] / answers.total() for number in numbers}
    elif rule == "mean_probability":
        probabilities = {
            number: math.fsum(by_option[number] for by_option in chances) / len(chances) for number in numbers
        }
    elif weights is None:
        raise ValueError("a stacked ensemble needs its weights")
    else:
        sums = {n: math.fsum(w * by_option[n] for w, by_option in zip(weights, chances, strict=True)) for n in numbers}
        probabilities = normalise_scores(sums)
    scores = {number: math.log(chance) if chance > 0 else NO_VOTE for number, chance in probabilities.items()}
    return OptionScores(
        option_scores=scores,
        score_unit="log of the share of votes" if rule == "vote" else "nats",
        score_norm="votes" if rule == "vote" else rule,
        read_by="members",
        read_why=f"{answers.total()} of {len(predictions)} members have a legal answer",
    )


def choose(question: Question, predictions: Sequence[Answered], scores: Mapping[int, float]) -> int:
    """Choose the best option; of equals that of the highest mean probability, then the first that a member gave."""
    best = max(scores.values())
    best_numbers = [number for number in question.option_numbers if scores[number] == best]
    chances = [member_chances(question, prediction) for prediction in predictions]
    order = [prediction.answer for prediction in predictions]

    def rank(number: int) -> tuple[float, int]:
        # Sums of the same numbers in another order differ in the last bits.
        mean = round(math.fsum(by_option[number] for by_option in chances) / len(chances), 12)
        return mean, -order.index(number) if number in order else -len(order)

    return max(best_numbers, key=rank)


def member_chances(question: Question, prediction: Answered) -> Chances:
    """Return what a member thinks of each option.

    A member that left no option scores gives its answer all the probability, and each option the same if it has none.
    """
    if prediction.option_scores is not None:
        return normalise_scores(prediction.option_scores)
    numbers = question.option_numbers
    if prediction.answer is None:
        return dict.fromkeys(numbers, 1 / len(numbers))
    return {number: float(number == prediction.answer) for number in numbers}
