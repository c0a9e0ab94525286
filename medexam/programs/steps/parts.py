"""What a step asks: words behind a field, a DSPy signature, or something beside the question.

Each is an `AskingProgram`; what the step reads beside the question stands in `Given` while it is asked.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import dspy
from pydantic import ValidationError

from medexam.errors import SpecError
from medexam.plugins import load_object
from medexam.programs.base import WAY, AskingProgram
from medexam.programs.fields import Asked
from medexam.programs.loading import Nearest, typed_example
from medexam.programs.own import OwnProgram
from medexam.programs.retrieving import shown_text
from medexam.programs.wrapping import fitted
from medexam.questions import Language, Question, Task
from medexam.retrievers.base import Hit
from medexam.signatures import split_thinking
from medexam.signatures.word_files import Words, fill_task
from medexam.specs.base import PROGRAMS
from medexam.specs.programs.steps import NEAREST, SignatureText, Step
from medexam.specs.programs.words import WordsSpec

_REACT_TURNS = 4
"""How often `by: react` looks up before it answers, at most."""
_LONGEST = 300
"""Characters of a query; the rest of its line is left out."""
_MARK = re.compile(r"^\s*(?:[-*\u2022]|\(?\d+[.):]|\w+\s*\d*\s*:)\s*")
"""A bullet, a number, or a word such as `Query 1:` before a query."""


class AskedSignature(OwnProgram):
    """A predictor whose outputs are fields; a prediction carries them as `fields`, None where a reply did not parse."""

    def calls_for(self, question: Any) -> int:
        """Count the most: what looks up asks again."""
        return super().calls_for(question) + (_REACT_TURNS - 1 if isinstance(self.module, dspy.ReAct) else 0)

    def choose_nearest(self, nearest: Nearest, k: int) -> None:
        """Show each question the `k` of its demonstrations that are nearest to it."""
        pool = [
            dspy.Example(question=SimpleNamespace(stem=str(demo.get("question", "")), key=None), demo=demo)
            for demo in self.module.predictors()[0].demos
        ]
        self.nearest = nearest(pool, k, NEAREST)
        self._field_types = {**self._field_types, "demos": list}

    def _inputs(self, question: Asked, fields: Mapping[str, Any], hits: list[Hit]) -> dict[str, Any]:
        if self.nearest is not None:
            fields = {**fields, "demos": [entry.demo for entry in self.nearest.find(question)]}
        return super()._inputs(question, fields, hits)

    def _prediction(self, question: Asked, hits: list[Hit], output: Any) -> dspy.Prediction:
        """Build the prediction, which holds an `answer` only if the signature has one."""
        values = dict(output.items()) if isinstance(output, dspy.Prediction) else None
        if values is not None and "answer" not in values:
            output = dspy.Prediction(**values, answer=None)
        outcome = super()._prediction(question, hits, output)
        if values is None:
            return outcome
        answer = outcome.get("answer" if isinstance(question, Question) else "text")
        outcome["fields"] = {**values, **({"answer": answer} if "answer" in values else {})}
        return outcome


def make_module(step: Step, language: Language, *, looks_up: bool) -> dspy.Module:
    """Make what asks a step's signature, with its instructions and demonstrations.

    Raises `SpecError` if the signature is none, or a file cannot be read.
    """
    words = step.read_words(language)
    try:
        signature = dspy.Signature(step.ask or "", words.get("instructions"))
    except Exception as error:
        raise SpecError(f"ask {step.ask!r}: {error}") from None
    match step.by:
        case "predict":
            module = dspy.Predict(signature)
        case "chain_of_thought":
            module = dspy.ChainOfThought(signature)
        case "react":
            module = dspy.ReAct(signature, tools=[_search] if looks_up else [], max_iters=_REACT_TURNS)
        case _:
            try:
                module = load_object(step.by, PROGRAMS)(signature)
            except SpecError:
                raise
            except Exception as error:
                raise SpecError(f"by {step.by}: making it failed: {type(error).__name__}: {error}") from error
    if not isinstance(module, dspy.Module):
        raise SpecError(f"by {step.by} makes {type(module).__name__}, not a dspy.Module: name the class of a module")
    demos = words.get("demos", [])
    names = {name for predictor in module.predictors() for name in predictor.signature.fields}
    if unknown := {name for demo in demos for name in demo} - names:
        raise SpecError(f"demos: {', '.join(sorted(unknown))}: the signature has {', '.join(signature.fields)} alone")
    for predictor in module.predictors() if demos else ():
        try:
            predictor.demos = [typed_example(predictor.signature, demo) for demo in demos]
        except ValidationError as error:
            raise SpecError(f"demos: {error.errors()[0]['input']!r}: {error.errors()[0]['msg']}") from None
    return module


def _search(query: str) -> str:
    """Passages about a query."""
    return "\n\n".join(dspy.Retrieve(k=2)(query).passages)


class AskedAside(AskingProgram):
    """A predictor in one group of words: for a verdict, chosen of two words, for a text, or for a list of queries."""

    def __init__(self, spec: WordsSpec, signature: SignatureText, words: Words) -> None:
        super().__init__()
        self._system = words.system
        self._spec = spec
        self._groups = words.parts
        self._reads = signature.inputs
        (self._output, self._type) = next(iter(signature.outputs.items()))
        asked = dspy.Signature("question -> answer", words.parts[spec.group])
        self.respond = dspy.Predict(asked, max_tokens=spec.budget(None))
        self._at_first = None if spec.at_first is None else words.parts[spec.at_first]

    async def aforward(self, question: Asked) -> dspy.Prediction:
        """Ask once, with as much of the text as fits; not for a verdict on no passage."""
        given = WAY.get().given
        inputs = given.fields
        texts = [value for name, value in inputs.items() if name != "answer"]
        text = texts[-1] if texts and ("question" in self._reads or len(texts) > 1) else ""
        if self._type == "bool" and text == []:
            return dspy.Prediction(answer=None, fields={self._output: False})
        choices = (self._groups["answer_yes"], self._groups["answer_no"]) if self._type == "bool" else ()
        full_text, count = shown_text(text), self._spec.most if self._type == "list[str]" else 0
        template = self._at_first if self._at_first and not full_text else self.respond.signature.instructions

        async def ask(excerpt: str) -> dspy.Prediction:
            text = fill_task(template, self._task(question, inputs, excerpt), count=count)
            return dspy.Prediction(generation=await self.ask_words(self.respond, self._system, text, choices=choices))

        generation: Any = (await fitted(full_text, ask)).generation
        value: Any = split_thinking(generation.text or "")[1].strip()
        if choices:
            value = value == choices[0]
        elif self._type != "str":
            value = read_queries(value, self._spec.most, given.looked_up)
        return dspy.Prediction(answer=None, generation=generation, fields={self._output: value})

    def entry(self, question: Asked, inputs: Mapping[str, Any], value: str) -> str:
        """Return a text as it is added to a list."""
        if self._spec.entry is None:
            return value
        text = self._task(question, inputs).question
        return fill_task(self._groups[self._spec.entry], Task("note", "note", "en", text, given_answer=value))

    def _task(self, question: Asked, inputs: Mapping[str, Any], context: str = "") -> Task:
        """Return what the call shows: the question, or else the first text; before it `context`."""
        answer = inputs.get("answer", "")
        if "question" not in self._reads:
            text = shown_text(next(iter(inputs.values())))
        elif isinstance(question, Question):
            text = question.printed if "options" in self._reads else question.asked
        else:
            text = "\n".join(
                [*([f"{question.context}\n"] if question.context else []), question.question, *question.options]
            )
            if question.given_answer and "wrong_answer" in self._groups:
                wrong_answer = "\n".join([question.given_answer, *question.given_reasoning])
                text = fill_task(
                    self._groups["wrong_answer"], replace(question, question=text, given_answer=wrong_answer)
                )
        if isinstance(question, Question):
            answer = next((option.text for option in question.options if option.number == answer), "")
        return Task(key="side", group="side", language="en", question=text, context=context, given_answer=answer)


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
