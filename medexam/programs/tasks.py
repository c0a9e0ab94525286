"""Questions that are answered in words: each format in the words of its own, a short answer, a literal quotation."""

import re
from collections.abc import Mapping, Sequence

import dspy

from medexam.model_calls import Generation
from medexam.predictions import Reason
from medexam.programs.base import AskingProgram
from medexam.questions import Task
from medexam.signatures import find_span, split_thinking
from medexam.signatures.span_alignment import FoundSpan
from medexam.signatures.word_files import Words, fill_task
from medexam.specs.programs.words import WordsSpec
from medexam.text import split_sentences

_FIRST, _LAST = "[", " - "
"""What stands before the numbers in a guided quotation: `[2 - 4`."""
_NAMED = re.compile(rf"{re.escape(_FIRST)}(\d+){re.escape(_LAST)}(\d+)")


class TaskProgram(AskingProgram):
    """Base of the programs that answer in words, with a predictor for each group of them."""

    def __init__(self, spec: WordsSpec, words: Words, budget: Mapping[str, int]) -> None:
        """Make the program; `budget` is the tokens of a reply by group of words."""
        super().__init__()
        self.system, self.guided = words.system, spec.answer_format == "guided"
        self.by_group = {
            group: dspy.Predict(dspy.Signature("question -> answer", template), max_tokens=budget[group])
            for group, template in words.parts.items()
        }

    async def _reply(
        self,
        question: Task,
        group: str,
        prefill: str = "",
        choices: Sequence[str] = (),
        context: str | None = None,
        count: int = 0,
    ) -> Generation:
        """Ask once; `context` is shown instead of the task's own, in `count` numbered parts."""
        predictor = self.by_group[group]
        text = fill_task(predictor.signature.instructions, question, context=context, count=count)
        return await self.ask_words(predictor, self.system, text, prefill, choices)


class AnswerInWords(TaskProgram):
    """One call a question, in the words of its format, or else of short answers, with the text that it brings along if
    it has one; predictions hold `text`.

    Guided: true/false and multiple choice leave the model the two words or the options' texts. All others stay free.
    """

    async def aforward(self, question: Task) -> dspy.Prediction:
        """Ask once, and read the reply behind any thinking."""
        choices = {"true_false": ("True", "False"), "multiple_choice": tuple(dict.fromkeys(question.options))}
        group, is_format = question.group, question.group in self.by_group
        if not is_format:
            group = "answer_from_text" if question.context else "answer"
        generation = await self._reply(question, group, choices=choices.get(group, ()) if self.guided else ())
        reply = generation.text or ""
        # An unclosed block of thinking is the answer of a format: the shared task leaves it there.
        text = split_thinking(reply)[1].strip() or (reply.strip() if is_format else None)
        return dspy.Prediction(text=text or None, generation=generation)


class ExtractExplanation(TaskProgram):
    """Predictions hold `text`, a literal part of the question's context, with its `span` and `alignment`.

    Free: the model copies it, and `find_span` says where the copy stands; a reply that stands nowhere leaves the
    question unanswered. Guided: the sentences are numbered and the model chooses the first and the last, so that every
    answer is whole sentences of the text; where it holds none, the question stays unanswered.
    """

    def calls_for(self, question: Task) -> int:  # noqa: ARG002
        """Count one if free, two if guided."""
        return 1 + self.guided

    async def aforward(self, question: Task) -> dspy.Prediction:
        """Ask, and find the part of the context that is quoted."""
        (group,) = self.by_group
        if self.guided:
            generation, span = await self._choose(question, group)
        else:
            generation = await self._reply(question, group)
            span = find_span(question.context, split_thinking(generation.text or "")[1])
        if span is None:
            return dspy.Prediction(reason=Reason.NOT_IN_CONTEXT, generation=generation)
        text, place = question.context[span.start : span.end], (span.start, span.end)
        return dspy.Prediction(text=text, span=place, alignment=span.alignment, generation=generation)

    async def _choose(self, question: Task, group: str) -> tuple[Generation, FoundSpan | None]:
        spans = split_sentences(question.context)
        numbered = "\n".join(f"[{number}] {question.context[a:b]}" for number, (a, b) in enumerate(spans, start=1))
        numbers = [str(number) for number in range(1, len(spans) + 1)]
        shown = numbered, len(spans)
        if not spans:
            return await self._reply(question, group, "", (), *shown), None
        first = await self._reply(question, group, _FIRST, numbers, *shown)
        begin = (first.text or "").removeprefix(_FIRST)
        if begin not in numbers:  # a reply that was withheld
            return first, None
        last = await self._reply(question, group, f"{_FIRST}{begin}{_LAST}", numbers[int(begin) - 1 :], *shown)
        match = _NAMED.fullmatch(last.text or "")
        if match is None or not 1 <= int(match[1]) <= int(match[2]) <= len(spans):
            return last, None
        return last, FoundSpan(spans[int(match[1]) - 1][0], spans[int(match[2]) - 1][1], "literal")
