"""The DSPy signatures of exam questions, and the adapter between them and a model.

The instructions of a signature are the words of a prompt file, so optimizers that rewrite instructions rewrite the
prompt. The adapter asks once and never again, whatever the reply looks like. With `answer_format="guided"` it attaches
the choice among the question's own option numbers, so a four-option question cannot be answered 5. How an engine
enforces a choice is not known here.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple, cast

import dspy

from medexam.model_calls import (
    WITHHELD,
    ContinuationRequest,
    Dialogue,
    Ending,
    Generation,
    Reading,
    Sampling,
    join_thinking,
)
from medexam.questions import Question
from medexam.signatures.answer_format import (
    answer_closing,
    answer_opening,
    find_answers,
    parse_answer,
    plain_forms,
    render_answer,
)
from medexam.signatures.citations import CLOSING, OPENING, drop_citations, read_citation
from medexam.signatures.lenient import read_leniently
from medexam.signatures.prompts import Turn
from medexam.signatures.single_call import Fields, Signature, SingleCallAdapter
from medexam.signatures.thinking import end_turn, split_thinking
from medexam.specs.programs.needs import AnswerForm, AnswerFormat


class AnswerQuestion(dspy.Signature):
    """Answer a multiple-choice question."""

    question: Question = dspy.InputField()
    answer: int = dspy.OutputField(desc="printed number of the chosen option")


class ReasonAndAnswer(dspy.Signature):
    """Reason about a multiple-choice question, then answer it."""

    question: Question = dspy.InputField()
    rationale: str = dspy.OutputField(desc="brief reasoning about the options")
    answer: int = dspy.OutputField(desc="printed number of the chosen option")


class ReasonFirst(dspy.Signature):
    """Reason about a multiple-choice question up to the point of answering."""

    question: Question = dspy.InputField()
    rationale: str = dspy.OutputField(desc="brief reasoning about the options")


def after_thinking(signature: type[dspy.Signature]) -> type[dspy.Signature]:
    """Return the signature with thinking that was cut off and is closed; its answer is chosen."""
    field = dspy.InputField(desc="the assistant's own thinking so far")
    extended: type[dspy.Signature] = signature.append("thinking", field, str)
    return extended


class AnswerAfterReasoning(dspy.Signature):
    """Answer a multiple-choice question after the reasoning that is given."""

    question: Question = dspy.InputField()
    rationale: str = dspy.InputField(desc="the assistant's own reasoning so far")
    answer: int = dspy.OutputField(desc="printed number of the chosen option")


class CitePassage(dspy.Signature):
    """Name the passage that supports the answer that was given."""

    question: Question = dspy.InputField()
    reply: str = dspy.InputField(desc="the assistant's own reply so far, with its answer")
    count: int = dspy.InputField(desc="how many passages are shown")
    citation: int = dspy.OutputField(desc="number of the passage, 0 for none")


def behind_passages(signature: type[dspy.Signature]) -> type[dspy.Signature]:
    """Return the signature with passages that stand before the question."""
    field = dspy.InputField(desc="passages that may help, most relevant first")
    extended: type[dspy.Signature] = signature.prepend("passages", field, str)
    return extended


_READING: ContextVar[Reading] = ContextVar("reading", default="strict")


@contextmanager
def read_as(reading: Reading) -> Iterator[None]:
    """Have the replies in the block read in this way."""
    token = _READING.set(reading)
    try:
        yield
    finally:
        _READING.reset(token)


class ExamAdapter(SingleCallAdapter):
    """Formats and parses the signatures of `medexam.signatures.adapter`.

    The instructions are the system turn, or a user turn of their own behind an empty system turn. A demonstration is a
    user turn and an assistant turn, as in the paper's figure 7. Besides the signature's outputs, a
    prediction carries `generation`, the reply that they were read from; `answer` is None when it held no legal option.
    """

    def __init__(
        self, answer_format: AnswerFormat = "free", answer_form: AnswerForm = "braces", turn: Turn = "system"
    ) -> None:
        super().__init__()
        self.answer_format = answer_format
        self.answer_form = answer_form
        self.turn = turn
        """Whose turn the instructions are."""
        self.weighs = False
        """Whether a guided answer is the option that the model finds likeliest, told with all options' probabilities as
        `reading`, instead of one that it writes."""

    def format(self, signature: Signature, demos: list[Fields], inputs: Fields) -> list[dict[str, str]]:
        """Write the turns of a prompt; the last is the assistant's where the reply is begun for it."""
        turns = [{"role": self.turn, "content": _instructions(signature)}]
        if self.turn != "system":
            turns.insert(0, {"role": "system", "content": ""})
        for demo in demos:
            turns.append({"role": "user", "content": _question(demo).printed})
            turns.append({"role": "assistant", "content": self._solved(signature, demo)})
        content = "\n\n".join(filter(None, (inputs.get("passages"), _question(inputs).printed)))
        turns.append({"role": "user", "content": content})
        if beginning := self._beginning(self._shape(signature), inputs):
            turns.append({"role": "assistant", "content": beginning})
        return turns

    def build_dialogue(self, settings: Fields, signature: Signature, demos: list[Fields], inputs: Fields) -> Dialogue:
        """Build the prompt as turns, with the question's picture if it is shown, and the choice of a guided answer."""
        shape, question = self._shape(signature), _question(inputs)
        choices, continuations = None, None
        if shape.cites:
            choices = tuple(map(str, range(inputs["count"] + 1)))
        elif shape.chooses:
            choices = tuple(map(str, question.option_numbers))
            if self.weighs:
                choices, continuations = None, ContinuationRequest(texts=choices, given_opening=True, template=True)
        return Dialogue.of(
            self.format(signature, demos, inputs),
            Sampling.of(settings),
            choices=choices,
            continuations=continuations,
            pictures=() if question.picture is None else (question.picture,),
        )

    def read_outputs(self, signature: Signature, inputs: Fields, generation: Generation) -> Fields:
        """Read the answer and the rationale that a reply holds, the reply itself, and what was weighed."""
        shape, ending = self._shape(signature), generation.ending
        if (shape.chooses or shape.cites) and ending not in WITHHELD:
            closing = CLOSING if shape.cites else answer_closing(self.answer_form)
            full_reply = f"{self._beginning(shape, inputs)}{generation.reply}{closing}"
            generation, ending = replace(generation, reply=full_reply), Ending.COMPLETE
        outputs = {"generation": generation, **self.read_reply(signature, inputs, generation.reply or "", ending)}
        if shape.chooses and self.weighs:
            outputs["reading"] = generation.reading
        return outputs

    def read_reply(
        self,
        signature: Signature,
        inputs: Fields,
        reply: str,
        ending: Ending = Ending.COMPLETE,
    ) -> Fields:
        """Read the signature's outputs that a reply holds; one that was refused or filtered holds no answer.

        Within `read_as("lenient")`, where the strict reader reads no answer, the lenient one's.
        """
        thinking, content = split_thinking(reply)
        content = end_turn(content)
        shape = self._shape(signature)
        outputs: Fields = {}
        if "answer" in shape.outputs:
            question = _question(inputs)
            reasoned = "rationale" in shape.outputs or "rationale" in inputs
            answer_text = content
            if ending in WITHHELD:
                answer_text = ""
            elif shape.chooses:
                # Nothing that the model reasoned before can deny or end what it was then left to choose.
                answer_text = reply[max(reply.rfind(answer_opening(self.answer_form)), 0) :]
            cut = ending is Ending.CUT
            answer = parse_answer(
                answer_text, question.option_numbers, reasoned=reasoned, cut=cut and not shape.chooses
            )
            if answer is None and _READING.get() == "lenient" and ending in (Ending.COMPLETE, Ending.CUT):
                texts = {option.number: option.text for option in question.options}
                # A careful marker takes no passage's number for an option's.
                words = drop_citations(content) if inputs.get("passages") else content
                answer = read_leniently(words, texts, reasoned=reasoned, cut=cut)
            outputs["answer"] = answer
        if shape.cites:
            outputs["citation"] = read_citation(content, inputs["count"])
        if "rationale" in shape.outputs:
            outputs["rationale"] = _rationale(thinking, content)
        return outputs

    def _shape(self, signature: Signature) -> "_Shape":
        return _find_shape(cast("Any", signature), self.answer_format == "guided")

    def _beginning(self, shape: "_Shape", inputs: Fields) -> str:
        if shape.closes_thinking:
            return join_thinking(inputs["thinking"], answer_opening(self.answer_form))
        if shape.cites:
            return f"{inputs['reply']} {OPENING}"
        rationale = f"{inputs['rationale']}\n\n" if inputs.get("rationale") and shape.shows_rationale else ""
        return rationale + answer_opening(self.answer_form) if shape.chooses else rationale

    def _solved(self, signature: Signature, demo: Fields) -> str:
        parts = [demo["rationale"]] if demo.get("rationale") and "rationale" in signature.fields else []
        if demo.get("answer") is not None:
            parts.append(render_answer(demo["answer"], self.answer_form))
        return "\n\n".join(parts)


class _Shape(NamedTuple):
    """What a signature asks for; DSPy collects its fields anew at each look."""

    outputs: frozenset[str]
    cites: bool
    closes_thinking: bool
    shows_rationale: bool
    chooses: bool
    """Whether the answer is one of the options' numbers and nothing else."""


@lru_cache(maxsize=256)
def _find_shape(signature: Any, guided: bool) -> _Shape:
    inputs, outputs = frozenset(signature.input_fields), frozenset(signature.output_fields)
    closes = "thinking" in inputs
    chooses = closes or (guided and outputs == {"answer"})
    return _Shape(outputs, "citation" in outputs, closes, "rationale" in inputs, chooses)


def _instructions(signature: Signature) -> str:
    return _cleaned(cast("Any", signature), signature.__doc__)


@lru_cache(maxsize=256)
def _cleaned(signature: Any, docstring: str | None) -> str:  # noqa: ARG001
    """Return the instructions that `docstring` holds, which DSPy frees from their indentation at each look."""
    return str(signature.instructions)


def _question(fields: Fields) -> Question:
    question = getattr(fields["question"], "source", fields["question"])
    return question if isinstance(question, Question) else Question.model_validate(question)


def _rationale(thinking: str | None, content: str) -> str | None:
    content = plain_forms(content)
    answers = find_answers(content)
    reasoning = content[: answers[-1][0]] if answers else content
    return "\n\n".join(part for part in (thinking, reasoning.strip()) if part) or None
