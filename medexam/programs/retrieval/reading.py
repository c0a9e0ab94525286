"""Having a local model read passages: what a program asks of it, and how far passages entail options.

The models and their batches are somebody else's business. Reading takes seconds, so it is done beside the network loop.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import dspy

from medexam.programs.retrieval.passages import PassageFinder
from medexam.questions import Question
from medexam.retrievers.base import Passage
from medexam.text import split_sentences

Pair = tuple[str, str]
"""Two texts that a model reads together."""


class TextReader(Protocol):
    """Has pairs of texts read by a local model; may take seconds, and is called from any thread."""

    @property
    def label(self) -> str:
        """The model as people read it."""
        ...

    def read(self, item: Any, pairs: Callable[[Any], list[Pair]]) -> list[Any]:
        """Read the pairs that a function makes of a question or task; entry i is what was found in pair i."""
        ...


class Hypothesis(NamedTuple):
    """One sentence of a passage and the stem with one option, which may follow from it."""

    option: int
    """The printed number."""
    passage: Passage
    pair: Pair
    """The sentence, and the stem with the option."""


def list_hypotheses(question: Question, finder: PassageFinder) -> list[Hypothesis]:
    """List each sentence of an option's passages with the stem and that option, in the language of the passages."""
    translation = finder.asked(question)
    hits_by_option = finder.find_per_option(question)
    return [
        Hypothesis(option.number, hit.passage, (sentence, f"{translation.stem} {option.text}"))
        for option in translation.options
        for hit in hits_by_option[option.number]
        for sentence in _split(hit.passage.content)
    ]


def _split(text: str) -> list[str]:
    """Split a text into its sentences, without those that hold no word."""
    sentences = (text[start:end] for start, end in split_sentences(text))
    return [sentence for sentence in sentences if any(map(str.isalnum, sentence))]


Supports = Mapping[str, Mapping[int, float]]
"""Id of a passage -> printed number of each option -> the highest log-probability, in nats, with which one of its
sentences entails the question with that option."""


class SupportReader(Protocol):
    """Reads how far the passages of a question entail its options; may take seconds, called from any thread."""

    def read_supports(self, question: Question) -> Supports:
        """Read that of each passage that has a sentence."""
        ...


class ReadSupports(dspy.Module):
    """A step that asks a local reader; called with `question=`, it returns `supports`."""

    asks_model = False

    def __init__(self, reader: SupportReader) -> None:
        super().__init__()
        self._reader = reader

    def forward(self, question: Question) -> dspy.Prediction:
        """Read."""
        return dspy.Prediction(supports=self._reader.read_supports(question))

    async def aforward(self, question: Question) -> dspy.Prediction:
        """Read in a thread of its own."""
        return dspy.Prediction(supports=await asyncio.to_thread(self._reader.read_supports, question))
