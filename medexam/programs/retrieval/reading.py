"""Reading solvers (Vilares and Gómez-Rodríguez, ACL 2019): a model reads passages, an option follows.

The models and their batches are somebody else's business: a program asks a `QuestionReader` what was read for a
question. Reading takes seconds, so it is done beside the network loop.
"""

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import dspy

from medexam.model_calls import Generation
from medexam.predictions.evidence.option_scores import OptionScores
from medexam.programs.controls import Control
from medexam.programs.program_output import ProgramOutput
from medexam.programs.retrieval.stems import stems
from medexam.questions import Option, Question, Task
from medexam.retrievers.base import Hit, Span

R = TypeVar("R")
UNIT = "nats (log-probability of entailment)"
_LEAST = math.log(1e-300)
"""The score of an option for which no passage was found, in nats."""


@dataclass(frozen=True, slots=True)
class ReadSpan:
    """The best span of a question's passages."""

    question: Question
    """The question in the language in which it was read."""
    span: Span | None
    """None where there was no passage."""
    hits: tuple[Hit, ...]
    """The passages that were read, most relevant first."""
    reader: str
    """The model that read."""


@dataclass(frozen=True, slots=True)
class Entailments:
    """How far each option of a question follows from its passages."""

    best: dict[int, tuple[float, str]]
    """Printed number of each option that had a passage -> the highest log-probability of entailment, in nats, and the
    sentence that it comes from."""
    hits: tuple[Hit, ...]
    """The passages that were read, most relevant first."""
    reader: str
    """The model that read."""


@dataclass(frozen=True, slots=True)
class ReadContext:
    """The best span of a task's context."""

    span: Span | None
    """None where the context has no words."""
    reader: str
    """The model that read."""


class ContextReader(Protocol):
    """Reads the context of a task with a model; may take seconds, and is called from any thread."""

    def read_context(self, task: Task) -> ReadContext:
        """Find the best span."""
        ...


class _ReadingProgram(Control, Generic[R]):
    def __init__(self, reader: R) -> None:
        super().__init__()
        self._reader = reader

    async def aforward(self, question: Any) -> ProgramOutput:
        """Answer one question, in a thread of its own."""
        return await asyncio.to_thread(self.say, question)


class SpanExtraction(_ReadingProgram[ContextReader]):
    """The span of a task's context that a question answering model found: predictions hold `text` and `span`."""

    def say(self, question: Task) -> ProgramOutput:
        """Return the answer."""
        reading = self._reader.read_context(question)
        span = reading.span
        if span is None or not span.text:
            return ProgramOutput(answer=None, text=None, rationale=None)
        return ProgramOutput(
            answer=None,
            text=span.text,
            span=(span.start, span.end),
            alignment="literal",
            rationale=None,
            generation=_quote(span.text, reading.reader),
        )


class QuestionReader(Protocol):
    """Reads the passages of a question with a model; may take seconds, and is called from any thread."""

    def read_span(self, question: Question) -> ReadSpan:
        """Find the best span over all passages."""
        ...

    def read_entailments(self, question: Question) -> Entailments:
        """Find the best sentence for each option."""
        ...


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


class SpanChoice(_ReadingProgram[QuestionReader]):
    """The option with the largest share of its stems in the span that a question answering model found.

    Stop words do not count, neither in the option nor in the span.
    Of equal shares the longest option is taken, of equally long ones the first; so it is where the span shares nothing
    with any option. A prediction's reply is the span; unanswered where no passage was found.
    """

    def say(self, question: Question) -> ProgramOutput:
        """Return the answer; `hits` are the passages that were read."""
        reading = self._reader.read_span(question)
        answer, generation = None, None
        if reading.span is not None:
            answer = choose_by_overlap(reading.question, reading.span.text)
            generation = _quote(reading.span.text, reading.reader)
        return ProgramOutput(answer=answer, rationale=None, generation=generation, hits=list(reading.hits))


class EntailedChoice(_ReadingProgram[QuestionReader]):
    """The option whose hypothesis, the stem with the option, some sentence of the passages entails most.

    A prediction's reply is the sentence that decided, and `option_scores` are log-probabilities of entailment, so that
    an option's share is its probability of entailment among those of all options. Of equal options the first is taken;
    unanswered where no passage was found.
    """

    def say(self, question: Question) -> ProgramOutput:
        """Return the answer; `hits` are the passages that were read."""
        reading = self._reader.read_entailments(question)
        if not reading.best:
            return ProgramOutput(answer=None, rationale=None, hits=list(reading.hits))
        default = (_LEAST, "")
        scores = {number: max(reading.best.get(number, default)[0], _LEAST) for number in question.option_numbers}
        answer = max(scores, key=scores.__getitem__)
        return ProgramOutput(
            answer=answer,
            rationale=None,
            generation=_quote(reading.best.get(answer, default)[1], reading.reader),
            hits=list(reading.hits),
            scores=OptionScores(scores, UNIT),
        )


def choose_by_overlap(question: Question, span: str) -> int:
    """Return the printed number of the option with the largest share of its stems in `span`; see `SpanChoice`."""
    span_stems = stems(span, question.language)

    def rank(option: Option) -> tuple[float, int]:
        option_stems = stems(option.text, question.language)
        return (len(option_stems & span_stems) / len(option_stems) if option_stems else 0.0, len(option.text))

    return max(question.options, key=rank).number


def _quote(text: str, reader: str) -> Generation:
    return Generation(reply=text, finish_reason="stop", model=reader, prompt_tokens=None, completion_tokens=None)
