"""Extraction by a language model: the part of a text that answers a question, always literal."""

import re
from dataclasses import replace
from typing import Any

import dspy

from medexam.model_calls import Generation
from medexam.predictions import Reason
from medexam.programs.base import TaskProgram
from medexam.programs.program_output import ProgramOutput
from medexam.questions import Task
from medexam.signatures import find_span, split_thinking
from medexam.signatures.span_alignment import FoundSpan
from medexam.signatures.task_adapter import AnswerTask, AskedTask, TaskAdapter
from medexam.signatures.task_words import TaskWords
from medexam.specs.programs.tasks import TaskSpec
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

    def __init__(self, spec: TaskSpec, words: TaskWords, max_tokens: int | None) -> None:
        """Make the program; `max_tokens` is the model's own budget, and None leaves it to the program."""
        super().__init__(TaskAdapter(words.system))
        self.guided = spec.answer_format == "guided"
        self.calls = 2 if self.guided else 1
        ((group, budget),) = spec.budget(max_tokens).items()
        self.extract = dspy.Predict(AnswerTask.with_instructions(words.groups[group]), max_tokens=budget)

    async def answer(self, question: Task) -> ProgramOutput:
        """Ask once when free, twice when guided."""
        if self.guided:
            return await self._choose(question)
        return self.output(question, await self._reply(AskedTask(question)))

    def read(self, question: Task, reply: str) -> dict[str, Any]:
        """Find the part of the context that the reply quotes."""
        if self.guided:
            span = read_sentences(reply, question.context)
        else:
            _, content = split_thinking(reply)
            span = find_span(question.context, content)
        if span is None:
            return {"answer": None, "text": None, "rationale": None, "reason": Reason.NOT_IN_CONTEXT}
        return {
            "answer": None,
            "text": question.context[span.start : span.end],
            "span": (span.start, span.end),
            "alignment": span.alignment,
            "rationale": None,
        }

    async def _reply(self, task_prompt: AskedTask) -> Generation:
        generation: Generation = (await self.ask(self.extract, asked=task_prompt)).generation
        return generation

    async def _choose(self, question: Task) -> ProgramOutput:
        spans = split_sentences(question.context)
        numbered_text = "\n".join(f"[{number}] {question.context[a:b]}" for number, (a, b) in enumerate(spans, start=1))
        task_prompt = AskedTask(question, context=numbered_text, count=len(spans))
        if not spans:
            return self.output(question, await self._reply(task_prompt))
        numbers = tuple(str(number) for number in range(1, len(spans) + 1))
        first = await self._reply(replace(task_prompt, prefill=_FIRST, choices=numbers))
        first_number = (first.reply or "").removeprefix(_FIRST)
        last = await self._reply(
            replace(task_prompt, prefill=f"{_FIRST}{first_number}{_LAST}", choices=numbers[int(first_number) - 1 :])
        )
        return self.output(question, last)


def read_sentences(reply: str, context: str) -> FoundSpan | None:
    """Find the text from the first to the last sentence that a guided reply names, `[2 - 4`; None if none."""
    spans = split_sentences(context)
    match = _NAMED.fullmatch(reply)
    if match is None or not 1 <= int(match[1]) <= int(match[2]) <= len(spans):
        return None
    return FoundSpan(spans[int(match[1]) - 1][0], spans[int(match[2]) - 1][1], "literal")
