"""Extraction by a language model: the part of a text that answers a question, always literal."""

import re
from dataclasses import replace
from typing import Any

import dspy

from medexam.predictions import Reason
from medexam.programs.base import Call, Steps, TaskProgram
from medexam.signatures import (
    AskedTask,
    FoundSpan,
    QuoteContext,
    TaskAdapter,
    TaskWords,
    find_span,
    split_thinking,
)
from medexam.specs import ExtractExplanationSpec
from medexam.tasks import Task
from medexam.text import split_sentences

_FIRST, _LAST = "[", " - "
"""What stands before the numbers in a guided reply: `[2 - 4`."""
_NAMED = re.compile(rf"{re.escape(_FIRST)}(\d+){re.escape(_LAST)}(\d+)")


class ExtractExplanation(TaskProgram):
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
        return self.answer(question, [said.generation])

    def read(self, question: Task, reply: str) -> dict[str, Any]:
        """The part of the context that the reply quotes."""
        if self.guided:
            found = read_sentences(reply, question.context)
        else:
            _, said = split_thinking(reply)
            found = find_span(question.context, said)
        if found is None:
            return {"answer": None, "text": None, "rationale": None, "reason": Reason.NOT_IN_CONTEXT}
        return {
            "answer": None,
            "text": question.context[found.start : found.end],
            "span": (found.start, found.end),
            "alignment": found.alignment,
            "rationale": None,
        }

    def _call(self, asked: AskedTask) -> Call:
        return Call(self.extract, {"asked": asked})

    def _choose(self, question: Task) -> Steps:
        spans = split_sentences(question.context)
        shown = "\n".join(f"[{number}] {question.context[a:b]}" for number, (a, b) in enumerate(spans, start=1))
        asked = AskedTask(question, context=shown, count=len(spans))
        if not spans:
            said = yield self._call(asked)
            return self.answer(question, [said.generation])
        numbers = tuple(str(number) for number in range(1, len(spans) + 1))
        first = yield self._call(replace(asked, said=_FIRST, choices=numbers))
        begun = (first.generation.reply or "").removeprefix(_FIRST)
        last = yield self._call(replace(asked, said=f"{_FIRST}{begun}{_LAST}", choices=numbers[int(begun) - 1 :]))
        return self.answer(question, [first.generation, last.generation])


def read_sentences(reply: str, context: str) -> FoundSpan | None:
    """From the first to the last sentence that a guided reply names, `[2 - 4`; None where it names none of them."""
    spans = split_sentences(context)
    named = _NAMED.fullmatch(reply)
    if named is None or not 1 <= int(named[1]) <= int(named[2]) <= len(spans):
        return None
    return FoundSpan(spans[int(named[1]) - 1][0], spans[int(named[2]) - 1][1], "literal")
