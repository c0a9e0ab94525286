"""The DSPy signatures of questions that are answered in words: one for each of ClinIQLink's formats, and extraction.

Their instructions are templates of a words file, so optimizers that rewrite instructions rewrite the prompt. How the
fields become turns is `medexam.signatures.task_adapter`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import dspy

from medexam.tasks import Task


@dataclass(frozen=True, slots=True)
class AskedTask:
    """A task as one call shows it."""

    task: Task
    said: str = ""
    """How the reply is prefilled."""
    choices: tuple[str, ...] = ()
    """What the reply may continue with, one of these and nothing else; empty leaves it free."""
    context: str | None = None
    """What is shown instead of the task's own context; None: that context."""
    count: int = 0
    """How many parts `context` has, where it is shown in numbered parts."""


class JudgeStatement(dspy.Signature):
    """Say whether a statement is true or false."""

    asked: AskedTask = dspy.InputField()
    answer: str = dspy.OutputField(desc="True or False")


class ChooseOption(dspy.Signature):
    """Choose the one right option and give its text."""

    asked: AskedTask = dspy.InputField()
    answer: str = dspy.OutputField(desc="the full text of the right option")


class ListOptions(dspy.Signature):
    """Choose all right options and give their texts."""

    asked: AskedTask = dspy.InputField()
    answer: str = dspy.OutputField(desc="the full texts of the right options, separated by commas")


class AnswerBriefly(dspy.Signature):
    """Answer an open question in at most 100 words."""

    asked: AskedTask = dspy.InputField()
    answer: str = dspy.OutputField(desc="the final answer")


class ExplainError(dspy.Signature):
    """Explain why the answer that is given is wrong."""

    asked: AskedTask = dspy.InputField()
    answer: str = dspy.OutputField(desc="the explanation")


class AnswerBySteps(dspy.Signature):
    """Answer an open question and give the steps that lead there."""

    asked: AskedTask = dspy.InputField()
    answer: str = dspy.OutputField(desc="the final answer and the reasoning")


class FindWrongStep(dspy.Signature):
    """Find the step of a reasoning that is wrong, and say why."""

    asked: AskedTask = dspy.InputField()
    answer: str = dspy.OutputField(desc="the number of the step and the explanation")


class QuoteContext(dspy.Signature):
    """Quote the part of a text that answers a question."""

    asked: AskedTask = dspy.InputField()
    answer: str = dspy.OutputField(desc="a literal part of the text")


CLINIQLINK: Mapping[str, type[dspy.Signature]] = MappingProxyType(
    {
        "true_false": JudgeStatement,
        "multiple_choice": ChooseOption,
        "list": ListOptions,
        "short": AnswerBriefly,
        "short_inverse": ExplainError,
        "multi_hop": AnswerBySteps,
        "multi_hop_inverse": FindWrongStep,
    }
)
"""Format -> its signature."""
