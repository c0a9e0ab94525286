"""Extraction by a language model: the part of a text that answers a question, always literal."""

from dataclasses import replace

import dspy

from medexam.predictions import Reason
from medexam.programs.base import AskingProgram, Call, Steps
from medexam.sentences import split_sentences
from medexam.signatures import AskedTask, Generation, QuoteContext, TaskAdapter, TaskWords, find_span
from medexam.specs import ExtractExplanationSpec
from medexam.tasks import Task

_FIRST, _LAST = "[", " - "
"""What stands before the numbers in a guided reply: `[2 - 4`."""


class ExtractExplanation(AskingProgram):
    """Predictions hold `text`, a literal part of the question's context, with its `span` and `alignment`.

    Free: the model copies it, and `find_span` says where the copy stands; a reply that stands nowhere leaves the
    question unanswered. Guided: the sentences are numbered and the model chooses the first and the last, so that every
    answer is whole sentences of the text; where it holds none, the question stays unanswered.
    """

    def __init__(self, spec: ExtractExplanationSpec, words: TaskWords, max_tokens: int | None) -> None:
        """`max_tokens` is the model's own budget; None leaves it to the program."""
        super().__init__(TaskAdapter(words.system))
        self.guided = spec.answer_format == "guided"
        self.calls = 2 if self.guided else 1
        ((group, budget),) = spec.budget(max_tokens).items()
        self.extract = dspy.Predict(QuoteContext.with_instructions(words.groups[group]), max_tokens=budget)

    def steps(self, question: Task) -> Steps:
        """One call when free, two when guided."""
        if self.guided:
            return (yield from self._choose(question))
        said = yield self._call(AskedTask(question))
        found = find_span(question.context, said.answer)
        if found is None:
            return _nothing(said.generation)
        return dspy.Prediction(
            answer=None,
            text=question.context[found.start : found.end],
            span=(found.start, found.end),
            alignment=found.alignment,
            rationale=None,
            generations=[said.generation],
        )

    def _call(self, asked: AskedTask) -> Call:
        return Call(self.extract, {"asked": asked})

    def _choose(self, question: Task) -> Steps:
        spans = split_sentences(question.context)
        shown = "\n".join(f"[{number}] {question.context[a:b]}" for number, (a, b) in enumerate(spans, start=1))
        asked = AskedTask(question, context=shown, count=len(spans))
        if not spans:
            said = yield self._call(asked)
            return _nothing(said.generation)
        numbers = tuple(str(number) for number in range(1, len(spans) + 1))
        first = yield self._call(replace(asked, said=_FIRST, choices=numbers))
        begun = (first.generation.reply or "").removeprefix(_FIRST)
        last = yield self._call(replace(asked, said=f"{_FIRST}{begun}{_LAST}", choices=numbers[int(begun) - 1 :]))
        ended = (last.generation.reply or "").rsplit(_LAST, 1)[-1]
        start, end = spans[int(begun) - 1][0], spans[int(ended) - 1][1]
        return dspy.Prediction(
            answer=None,
            text=question.context[start:end],
            span=(start, end),
            alignment="literal",
            rationale=None,
            generations=[first.generation, last.generation],
        )


def _nothing(generation: Generation) -> dspy.Prediction:
    """A reply that quotes nothing."""
    return dspy.Prediction(
        answer=None, text=None, rationale=None, generations=[generation], reason=Reason.NOT_IN_CONTEXT
    )
