"""What a step asks beside the question: queries, notes and verdicts, of the model or of a local reader."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import dspy

from medexam.programs.base import AskingProgram
from medexam.programs.fields import Asked
from medexam.programs.program_output import ProgramOutput
from medexam.programs.retrieving import SupportReader, read_supports, shown_text
from medexam.programs.wrapping import BehindText, fitted
from medexam.questions import Question, Task
from medexam.retrievers.base import Hit
from medexam.signatures.adapter import AnswerTask, AskedTask, TaskAdapter
from medexam.signatures.word_files import Words, fill_task
from medexam.specs.programs.asides import AsideSpec
from medexam.specs.programs.signature_text import SignatureText

_LONGEST = 300
"""Characters of a query; the rest of its line is left out."""
_MARK = re.compile(r"^\s*(?:[-*\u2022]|\(?\d+[.):]|\w+\s*\d*\s*:)\s*")
"""A bullet, a number, or a word such as `Query 1:` before a query."""
Inputs = Mapping[str, Any]
"""Name -> value of the fields that a step reads beside the question's own."""


class BehindField(BehindText):
    """A program in words that ship, asked behind the text of a field."""

    def __init__(self, program: AskingProgram, field: str) -> None:
        super().__init__(program)
        self.field = field


class Aside(AskingProgram):
    """Base of what is asked beside the question; a prediction carries `fields` alone."""

    def __init__(self, signature: SignatureText, system: str) -> None:
        super().__init__(TaskAdapter(system))
        self._signature = signature
        self._outputs = list(signature.outputs)

    async def answer_given(self, question: Asked, inputs: Inputs, looked_up: Sequence[str]) -> ProgramOutput:
        """Ask; `looked_up` are the texts of all look-ups before."""
        raise NotImplementedError


class AskedAside(Aside):
    """A predictor in one group of words: for a verdict, chosen of two words, for a text, or for a list of queries."""

    def __init__(self, spec: AsideSpec, signature: SignatureText, words: Words) -> None:
        super().__init__(signature, words.system)
        self._spec = spec
        self._groups = words.parts
        template = words.parts[str(spec.group)]
        self.respond = dspy.Predict(AnswerTask.with_instructions(template), max_tokens=spec.budget(None))

    def task(self, question: Asked, inputs: Inputs, context: str = "") -> Task:
        """Return what the call shows: the question, or else the first text; before it `context`."""
        if "question" not in self._signature.inputs:
            text = shown_text(next(iter(inputs.values())))
        elif isinstance(question, Question):
            text = question.printed if "options" in self._signature.inputs else question.asked
        else:
            text = self._print_task(question)
        answer = inputs.get("answer", "")
        if isinstance(question, Question):
            answer = next((option.text for option in question.options if option.number == answer), "")
        return Task(key="side", group="side", language="en", question=text, context=context, given_answer=answer)

    def _print_task(self, task: Task) -> str:
        """Write a task as one question: its context and options, and what is wrong where its answer is given."""
        text = "\n".join([*([f"{task.context}\n"] if task.context else []), task.question, *task.options])
        if not task.given_answer or self._spec.wrong is None:
            return text
        answer = "\n".join([task.given_answer, *task.given_reasoning])
        return fill_task(self._groups[self._spec.wrong], replace(task, question=text, given_answer=answer))

    async def answer_given(self, question: Asked, inputs: Inputs, looked_up: Sequence[str]) -> ProgramOutput:
        """Ask once, with as much of the text as fits; not for a verdict on no passage."""
        texts = [value for name, value in inputs.items() if name != "answer"]
        text = texts[-1] if texts and ("question" in self._signature.inputs or len(texts) > 1) else ""
        if self._spec.output_type == "bool" and text == []:
            return ProgramOutput(answer=None, fields={self._outputs[0]: False})
        choices = (self._groups["answer_yes"], self._groups["answer_no"]) if self._spec.output_type == "bool" else ()

        count = self._spec.most if self._spec.output_type == "list[str]" else 0

        async def ask(excerpt: str) -> Any:
            asked = AskedTask(self.task(question, inputs, excerpt), choices=choices, count=count)
            return await self.ask(self.respond, asked=asked)

        prediction = await fitted(shown_text(text), ask)
        value: Any = prediction.answer
        if choices:
            value = prediction.answer == choices[0]
        elif self._spec.output_type != "str":
            value = read_queries(prediction.answer, self._spec.most, looked_up)
        return ProgramOutput(answer=None, generation=prediction.generation, fields={self._outputs[0]: value})

    def entry(self, question: Asked, inputs: Inputs, value: str) -> str:
        """Return a text as it is added to a list."""
        if self._spec.entry is None:
            return value
        text = self.task(question, inputs).question
        return fill_task(self._groups[self._spec.entry], Task("note", "note", "en", text, given_answer=value))


class ReadAside(Aside):
    """A model of natural language inference judges passages: by the option that they entail most, or by the answer.

    The hypothesis is the stem with the option, the premise a sentence.
    """

    calls = 0

    def __init__(self, spec: AsideSpec, signature: SignatureText, reader: SupportReader) -> None:
        super().__init__(signature, "")
        self._reader = reader
        self._least = spec.least

    async def answer_given(self, question: Asked, inputs: Inputs, looked_up: Sequence[str]) -> ProgramOutput:  # noqa: ARG002
        """Ask for one reading of all passages."""
        supports = await read_supports(self._reader, question)
        passages = next(value for name, value in inputs.items() if name != "answer")
        hits: list[Hit] = passages if isinstance(passages, list) else [passages]
        by_option = [supports.get(hit.passage.id, {}) for hit in hits]
        logprobs = [
            logprob for one in by_option for number, logprob in one.items() if inputs.get("answer", number) == number
        ]
        probability = math.exp(max(logprobs, default=-math.inf))
        values = (probability >= self._least, probability)
        return ProgramOutput(answer=None, fields=dict(zip(self._outputs, values, strict=False)))


def read_queries(reply: str, count: int, earlier_queries: Sequence[str]) -> list[str]:
    """Read at most `count` queries of a reply, a line each without number or bullet; none of `earlier_queries`."""
    query_keys = {query.casefold() for query in earlier_queries}
    queries: list[str] = []
    for line in reply.splitlines():
        query = _MARK.sub("", line).strip().strip("\"'`*")[:_LONGEST].strip()
        if any(map(str.isalnum, query)) and query.casefold() not in query_keys:
            query_keys.add(query.casefold())
            queries.append(query)
    return queries[:count]
