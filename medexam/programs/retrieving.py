"""Passages of a question: what finds them, what reads them, and the option that they speak for.

Which passages belong to a question is looked up once, before anything is asked; programs only ask for them by question.
The models that read and their batches are somebody else's business.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from medexam.questions import Question, Task
from medexam.retrievers.base import Hit, Passage
from medexam.text import split_sentences

Pair = tuple[str, str]
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


class Hypothesis(NamedTuple):
    """One sentence of a passage and the stem with one option, which may follow from it."""

    option: int
    """The printed number."""
    passage: Passage
    pair: Pair
    """The sentence, and the stem with the option."""


def list_hypotheses(question: Question, finder: PassageFinder) -> list[Hypothesis]:
    """List each sentence of an option's passages with the stem and that option, in the language of the passages.

    Sentences without a word are left out.
    """
    translation = finder.asked(question)
    hits_by_option = finder.find_per_option(question)
    return [
        Hypothesis(option.number, hit.passage, (sentence, f"{translation.stem} {option.text}"))
        for option in translation.options
        for hit in hits_by_option[option.number]
        for begin, end in split_sentences(hit.passage.content)
        if any(map(str.isalnum, sentence := hit.passage.content[begin:end]))
    ]


def shown_text(value: Any) -> str:
    """Return a field as prompts show it: a passage or a list of them as their texts, a blank line apart."""
    if isinstance(value, list | tuple):
        return "\n\n".join(map(shown_text, value))
    return value.passage.text if isinstance(value, Hit) else str(value)
