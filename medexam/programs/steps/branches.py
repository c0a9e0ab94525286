"""One answer made of those of the branches that stand beside each other in a program of steps."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import dspy

from medexam.errors import ProgramFaultError
from medexam.predictions.evidence.option_scores import OptionScores
from medexam.programs.combining.ensembles import choose, combine
from medexam.programs.fields import Asked
from medexam.programs.module_faults import naming_faults
from medexam.programs.program_output import ProgramOutput
from medexam.questions import Question
from medexam.signatures.choices import read_choice
from medexam.specs.programs.ensembles import Combine

BranchRule = Callable[[Question, Sequence[ProgramOutput]], Any]
"""A function of the user's own: of a question and the branches' predictions, an option, or a prediction with one."""


def combine_branches(
    rule: str, rules: Mapping[str, BranchRule], question: Asked, outcomes: Sequence[ProgramOutput]
) -> ProgramOutput:
    """Make one prediction of those of several branches, by a rule that ships or one of `rules`, by name.

    Raises `ProgramFaultError` for a question without numbered options.
    """
    if not isinstance(question, Question):
        raise ProgramFaultError("TypeError", f"{question.key} has no numbered options, and `combine` needs them")
    scores: OptionScores | None = None
    if rule in rules:
        with naming_faults(rules[rule]) as returned:
            returned.append(rules[rule](question, outcomes))
        value = returned[0] if returned else None
        answer = read_choice(value.get("answer") if isinstance(value, dspy.Prediction) else value, question)
    else:
        scores = combine(question, outcomes, cast("Combine", rule))
        answer = None if scores is None else choose(question, outcomes, scores.option_scores)
    best = next((outcome for outcome in outcomes if outcome.answer == answer), outcomes[0])
    votes = tuple(outcome.answer for outcome in outcomes)
    return best.copy(answer=answer, scores=scores, votes=votes, orders=None, keeps_replies=True)
