"""The paper's prompting strategies (section 3.2.1): zero-shot, few-shot and chain-of-thought."""

from typing import Any

import dspy

from medexam.model_calls import ContinuationLogprobs, Generation
from medexam.predictions import OptionScores
from medexam.programs.base import ExamProgram
from medexam.programs.program_output import ProgramOutput
from medexam.questions import Question
from medexam.signatures import is_cut_in_thinking, split_thinking
from medexam.signatures.adapter import (
    AnswerAfterReasoning,
    AnswerQuestion,
    ExamAdapter,
    ReasonAndAnswer,
    ReasonFirst,
    after_thinking,
)
from medexam.signatures.answer_format import answer_opening
from medexam.signatures.word_files import Words


class AnsweringProgram(ExamProgram):
    """Ask for the answer alone (figures 6 and 7), or for brief reasoning first (figure 8).

    Free: one reply holds both. Guided reasoning: the model reasons until it is about to answer or its budget ends, and
    the answer is then chosen among the legal options.
    """

    def __init__(self, words: Words, adapter: ExamAdapter, max_tokens: int, *, reasons: bool, closes: bool) -> None:
        """Make the program; `closes`: a free reply's thinking that is cut off is closed, and a further call answers."""
        super().__init__(adapter)
        (instructions,) = words.parts.values()
        self.closes = closes
        self.reasons = reasons
        self.reasons_apart = reasons and adapter.answer_format == "guided"
        self.calls = 1 + (closes or self.reasons_apart)
        if self.reasons_apart:
            self._stop = answer_opening(adapter.answer_form).rstrip(" :")
            stop = [self._stop]
            self.reason = dspy.Predict(ReasonFirst.with_instructions(instructions), max_tokens=max_tokens, stop=stop)
            self.respond = dspy.Predict(AnswerAfterReasoning.with_instructions(instructions))
        else:
            signature = ReasonAndAnswer if reasons else AnswerQuestion
            self.respond = dspy.Predict(signature.with_instructions(instructions), max_tokens=max_tokens)
            self.respond.demos = [*words.examples]

    async def answer(self, question: Question) -> ProgramOutput:
        """Ask once, and again to close thinking that was cut off; twice if it reasons apart."""
        inputs: dict[str, Any] = {"question": question}
        if self.reasons_apart:
            reasoning = await self.ask(self.reason, **inputs)
            inputs["rationale"] = (reasoning.rationale or "").split(self._stop)[0].rstrip()
        prediction = await self.ask(self.respond, **inputs)
        generation: Generation = prediction.generation
        if self.closes and is_cut_in_thinking(generation.reply, generation.finish_reason):
            # The two calls are one reply then.
            thinking, _ = split_thinking(generation.reply or "")
            signature = after_thinking(self.respond.signature)
            prediction = await self.ask(self.respond, **inputs, thinking=thinking or "", signature=signature)
        reading: ContinuationLogprobs | None = prediction.get("reading")
        scores = None
        if reading is not None and (self.reasons_apart or not self.reasons):
            totals = [continuation.total for continuation in reading.continuations]
            by_number = dict(zip(question.option_numbers, totals, strict=True))
            scores = OptionScores(by_number, "nats", "sum", reading.read_by, reading.why, label_mass=reading.mass)
        return ProgramOutput(
            answer=prediction.answer,
            rationale=inputs.get("rationale") or prediction.get("rationale"),
            generation=prediction.generation,
            scores=scores,
        )
