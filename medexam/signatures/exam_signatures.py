"""The DSPy signatures: what goes into a question's prompt and what comes out of its reply.

Their instructions are the words of a prompt file, so optimizers that rewrite instructions rewrite the prompt. How the
fields become turns and text is `medexam.signatures.adapter`.
"""

import dspy

from medexam.questions import Question


class AnswerQuestion(dspy.Signature):
    """Answer a multiple-choice question."""

    question: Question = dspy.InputField()
    answer: int = dspy.OutputField(desc="printed number of the chosen option")


class ReasonAndAnswer(dspy.Signature):
    """Reason about a multiple-choice question, then answer it."""

    question: Question = dspy.InputField()
    rationale: str = dspy.OutputField(desc="brief reasoning about the options")
    answer: int = dspy.OutputField(desc="printed number of the chosen option")


class Reason(dspy.Signature):
    """Reason about a multiple-choice question up to the point of answering."""

    question: Question = dspy.InputField()
    rationale: str = dspy.OutputField(desc="brief reasoning about the options")


class AnswerAfterReasoning(dspy.Signature):
    """Answer a multiple-choice question after the reasoning that is given."""

    question: Question = dspy.InputField()
    rationale: str = dspy.InputField(desc="the assistant's own reasoning so far")
    answer: int = dspy.OutputField(desc="printed number of the chosen option")


def behind_passages(signature: type[dspy.Signature]) -> type[dspy.Signature]:
    """The signature with passages that stand before the question."""
    field = dspy.InputField(desc="passages that may help, most relevant first")
    extended: type[dspy.Signature] = signature.prepend("passages", field, str)
    return extended
