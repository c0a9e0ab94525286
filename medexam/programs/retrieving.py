"""Passages of a question: what finds them, and how a prompt shows them.

Which passages belong to a question is looked up once, before anything is asked; programs only ask for them by question.
The models that read and their batches are somebody else's business.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from medexam.questions import Question, Task
from medexam.retrievers.base import Hit

"""Two texts that a model reads together."""


class PassageFinder(Protocol):
    """Finds the passages of a question."""

    def find(self, question: Question | Task) -> Sequence[Hit]:
        """Find the passages to show, most relevant first."""
        ...

    def find_per_option(self, question: Question) -> Mapping[int, Sequence[Hit]]:
        """Find printed number of each option -> its passages: those of the stem with that option, or those of all."""
        ...

    def asked(self, question: Question) -> Question:
        """Return the question in the language in which it is looked up."""
        ...


def shown_text(value: Any) -> str:
    """Return a field as prompts show it: a passage or a list of them as their texts, a blank line apart."""
    if isinstance(value, list | tuple):
        return "\n\n".join(map(shown_text, value))
    return value.passage.text if isinstance(value, Hit) else str(value)
