"""The paper's prompting strategies (section 3.2.1): zero-shot, few-shot and chain-of-thought."""

from collections.abc import Generator, Sequence
from dataclasses import replace

import dspy

from medexam.model_calls import ContinuationLogprobs, Ending, read_ending
from medexam.predictions import Prediction, Reading
from medexam.programs.base import Call, ExamProgram, Steps
from medexam.programs.likelihood import UNITS, OptionScores
from medexam.questions import Question
from medexam.signatures import (
    AnswerAfterReasoning,
    AnswerQuestion,
    ExamAdapter,
    Generation,
    Prompt,
    Reason,
    ReasonAndAnswer,
    SolvedQuestion,
    add_usage,
    after_thinking,
    answer_opening,
    is_cut_in_thinking,
    split_thinking,
)
from medexam.specs.programs.replies import DIRECT_TOKENS, REASONING_TOKENS


class DirectAnswer(ExamProgram):
    """Ask for the answer alone: zero-shot without examples (figure 6), few-shot with them (figure 7)."""

    def __init__(
        self, prompt: Prompt, adapter: ExamAdapter, max_tokens: int = DIRECT_TOKENS, *, closes: bool = False
    ) -> None:
        """`closes`: thinking that is cut off is closed, and the answer is chosen in one further call."""
        super().__init__(adapter)
        self.closes = closes
        self.calls = 1 + closes
        self.respond = dspy.Predict(AnswerQuestion.with_instructions(prompt.instructions), max_tokens=max_tokens)
        self.respond.demos = _demonstrations(prompt.examples)

    def steps(self, question: Question) -> Steps:
        """One call, and the one that closes its thinking."""
        said = yield from _ask(Call(self.respond, {"question": question}), closes=self.closes)
        return dspy.Prediction(
            answer=said.answer, rationale=None, generations=[said.generation], scores=_scores(question, said)
        )

    def read_again(self, question: Question, stored: Prediction, reading: Reading = "strict") -> dspy.Prediction | None:
        """The answer in the reply."""
        if stored.reply is None:
            return None
        ending = read_ending(stored.finish_reason)
        read = self.adapter.read_reply(self.respond.signature, {"question": question}, stored.reply, ending, reading)
        return dspy.Prediction(answer=read["answer"], rationale=None)


class ChainOfThought(ExamProgram):
    """Reason briefly, then answer (figure 8).

    Free: one reply holds both. Guided: the model reasons until it is about to answer or its budget ends, and the
    answer is then chosen among the legal options.
    """

    def __init__(
        self, prompt: Prompt, adapter: ExamAdapter, max_tokens: int = REASONING_TOKENS, *, closes: bool = False
    ) -> None:
        """`closes`: thinking of a free reply that is cut off is closed, and the answer is chosen in a further call."""
        super().__init__(adapter)
        words = prompt.instructions
        self.closes = closes
        self.guided = adapter.answer_format == "guided"
        if self.guided:
            self.calls = 2
            self._stop = answer_opening(adapter.answer_form).rstrip(" :")
            self.reason = dspy.Predict(Reason.with_instructions(words), max_tokens=max_tokens, stop=[self._stop])
            self.respond = dspy.Predict(AnswerAfterReasoning.with_instructions(words))
        else:
            self.calls = 1 + closes
            self.respond = dspy.Predict(ReasonAndAnswer.with_instructions(words), max_tokens=max_tokens)
            self.respond.demos = _demonstrations(prompt.examples)

    def steps(self, question: Question) -> Steps:
        """One call when free, and the one that closes its thinking; two when guided."""
        if not self.guided:
            said = yield from _ask(Call(self.respond, {"question": question}), closes=self.closes)
            return dspy.Prediction(answer=said.answer, rationale=said.rationale, generations=[said.generation])
        thought = yield Call(self.reason, {"question": question})
        rationale = (thought.rationale or "").split(self._stop)[0].rstrip()
        said = yield Call(self.respond, {"question": question, "rationale": rationale})
        generations = [thought.generation, said.generation]
        return dspy.Prediction(
            answer=said.answer, rationale=rationale or None, generations=generations, scores=_scores(question, said)
        )

    def read_again(self, question: Question, stored: Prediction, reading: Reading = "strict") -> dspy.Prediction | None:
        """The answer in the reply, and its reasoning where the reply is free."""
        if stored.reply is None:
            return None
        inputs = {"question": question, **({"rationale": stored.rationale or ""} if self.guided else {})}
        ending = Ending.COMPLETE if self.guided else read_ending(stored.finish_reason)
        read = self.adapter.read_reply(self.respond.signature, inputs, stored.reply, ending, reading)
        return dspy.Prediction(answer=read["answer"], rationale=read.get("rationale", stored.rationale))


def _ask(call: Call, *, closes: bool) -> Generator[Call, dspy.Prediction, dspy.Prediction]:
    """What a call says; if `closes` and its thinking was cut off, that is closed and the answer chosen behind it.

    The two calls are one reply then, with the tokens of both.
    """
    said = yield call
    cut: Generation = said.generation
    if not closes or not is_cut_in_thinking(cut.reply, cut.finish_reason):
        return said
    thinking, _ = split_thinking(cut.reply or "")
    signature = after_thinking(call.predictor.signature)
    chosen = yield replace(call, inputs={**call.inputs, "thinking": thinking or "", "signature": signature})
    chosen["generation"] = add_usage(chosen.generation, cut)
    return chosen


def _scores(question: Question, said: dspy.Prediction) -> OptionScores | None:
    """How likely each option's number was; None where the adapter does not weigh."""
    reading: ContinuationLogprobs | None = said.get("reading")
    if reading is None:
        return None
    totals = [continuation.total for continuation in reading.continuations]
    return OptionScores(
        option_scores=dict(zip(question.option_numbers, totals, strict=True)),
        score_unit=UNITS["sum"],
        score_norm="sum",
        tied=totals.count(max(totals)),
        label_mass=reading.mass,
        order_scores=None,
        read_by=reading.read_by,
        read_why=reading.why,
    )


def _demonstrations(examples: Sequence[SolvedQuestion]) -> list[dspy.Example]:
    fields = [{"question": e.question, "answer": e.answer, "rationale": e.rationale} for e in examples]
    return [dspy.Example(**{k: v for k, v in f.items() if v is not None}).with_inputs("question") for f in fields]
