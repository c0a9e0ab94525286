"""One answer made of several to the same question: of a program's branches, or of stored runs.

The rules that ship are those of Kuncheva (2014), "Combining Pattern Classifiers", chapters 4 and 5.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import dspy

from medexam.errors import ProgramFaultError
from medexam.predictions.prediction import normalise_scores
from medexam.programs.base import NO_SCORES
from medexam.programs.fields import Asked
from medexam.programs.own import naming_faults
from medexam.questions import Question
from medexam.signatures.choices import read_choice
from medexam.specs.programs.steps import Combine

NO_VOTE = math.log(1e-9)
"""The score of an option without a vote: its share of the probability is 0 to nine decimals."""
BranchRule = Callable[[Question, Sequence[dspy.Prediction]], Any]
"""A function of the user's own: of a question and the branches' predictions, an option, or a prediction with one."""


def combine_branches(
    rule: str, rules: Mapping[str, BranchRule], question: Asked, outcomes: Sequence[dspy.Prediction]
) -> dspy.Prediction:
    """Make one prediction of those of several branches, by a rule that ships or one of `rules`, by name.

    Raises `ProgramFaultError` for a question without numbered options.
    """
    if not isinstance(question, Question):
        raise ProgramFaultError("TypeError", f"{question.key} has no numbered options, and `combine` needs them")
    outcomes = [outcome.copy(answer=outcome.get("answer")) for outcome in outcomes]
    votes = tuple(outcome.answer for outcome in outcomes)
    if rule in rules:
        with naming_faults(rules[rule]):
            value = rules[rule](question, outcomes)
        answer = read_choice(value.get("answer") if isinstance(value, dspy.Prediction) else value, question)
        combined = dspy.Prediction(answer=answer, votes=votes)
    else:
        combined = combine(question, outcomes, cast("Combine", rule))
    best = next((outcome for outcome in outcomes if outcome.answer == combined.answer), outcomes[0])
    return best.copy(**{**NO_SCORES, "orders": None, **combined})


def combine(question: Question, answers: Sequence[Any], rule: Combine) -> dspy.Prediction:
    """Combine several answers: `votes` holds them in their order, `option_scores` the log of each one's probability.

    Of equals, the option of the highest mean probability is taken, then the first that was given. Without a legal
    answer there is none, and no scores.
    """
    votes = tuple(each.answer for each in answers)
    counts = Counter(vote for vote in votes if vote is not None)
    if not counts:
        return dspy.Prediction(answer=None, votes=votes)
    numbers, chances = question.option_numbers, [_chances(question, each) for each in answers]
    means = {number: math.fsum(by_option[number] for by_option in chances) / len(chances) for number in numbers}
    shares = means if rule == "mean_probability" else {number: counts[number] / counts.total() for number in numbers}
    scores = {number: math.log(share) if share > 0 else NO_VOTE for number, share in shares.items()}
    best = max(scores.values())

    def rank(number: int) -> tuple[float, int]:
        # Sums of the same numbers in another order differ in the last bits.
        return round(means[number], 12), -votes.index(number) if number in votes else -len(votes)

    return dspy.Prediction(
        answer=max((number for number in numbers if scores[number] == best), key=rank),
        option_scores=scores,
        score_unit="log of the share of votes" if rule == "vote" else "nats",
        score_norm="votes" if rule == "vote" else rule,
        read_by="members",
        read_why=f"{counts.total()} of {len(answers)} members have a legal answer",
        votes=votes,
    )


def _chances(question: Question, member: Any) -> Mapping[int, float]:
    """Return the probability of each option by its printed number.

    An answer without option scores has all of it; without an answer too, each option has the same.
    """
    if (scores := getattr(member, "option_scores", None)) is not None:
        return normalise_scores(scores)
    numbers = question.option_numbers
    if member.answer is None:
        return dict.fromkeys(numbers, 1 / len(numbers))
    return {number: float(number == member.answer) for number in numbers}
