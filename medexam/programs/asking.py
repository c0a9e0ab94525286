"""The paper's prompting strategies (section 3.2.1): zero-shot, few-shot and chain-of-thought; and citations.

The instructions of a predictor are the words of a prompt file, so optimizers that rewrite instructions rewrite the
prompt. A program never asks a second time because of what a reply looks like. A call may begin the reply for the model
and may leave it nothing but one of given strings, such as the question's own option numbers.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import dspy

from medexam.model_calls import WITHHELD, ContinuationRequest, Ending, Generation, join_thinking
from medexam.programs.base import READING, WAY, ExamProgram, asked_by, keep_passages, user_turn
from medexam.programs.fields import AskedText
from medexam.programs.retrieving import PassageFinder
from medexam.programs.wrapping import BehindText, behind_passages, fitted
from medexam.questions import Question
from medexam.signatures.answer_format import (
    answer_closing,
    answer_opening,
    find_answers,
    parse_answer,
    plain_forms,
    render_answer,
)
from medexam.signatures.lenient import read_leniently
from medexam.signatures.thinking import end_turn, is_cut_in_thinking, split_thinking
from medexam.signatures.word_files import Words
from medexam.specs.programs.words import WordsSpec

_QUESTION = (Question, dspy.InputField())
_RATIONALE = (str, dspy.OutputField(desc="brief reasoning about the options"))
_GIVEN = (str, dspy.InputField(desc="the assistant's own reasoning so far"))
_ANSWER = (int, dspy.OutputField(desc="printed number of the chosen option"))
_OPENING, _CLOSING = "[", "]"
"""What stands around the number of a passage, behind a space."""
_CITED = re.compile(r"\[\s*(\d{1,3})\s*\]")


class AnsweringProgram(ExamProgram):
    """Ask for the answer alone (figures 6 and 7), or for brief reasoning first (figure 8).

    Free: one reply holds both. Guided reasoning: the model reasons until it is about to answer or its budget ends, and
    the answer is then chosen among the legal options. The instructions are the system turn, or a user turn of their own
    behind an empty system turn. A demonstration is a user turn and an assistant turn.
    """

    def __init__(self, spec: WordsSpec, words: Words, max_tokens: int) -> None:
        super().__init__()
        self.spec, self.turn, self.reasons = spec, words.turn, spec.reasons
        self.guided = spec.answer_format == "guided"
        self._opening, self._closing = answer_opening(spec.answer_form), answer_closing(spec.answer_form)
        self.weighs = False
        """Whether a guided answer is the option that the model finds likeliest, told with all options' probabilities,
        instead of one that it writes."""
        self.reasons_apart = spec.reasons and self.guided
        self.calls = 1 + (spec.answer_after_budget or self.reasons_apart)
        (instructions,) = words.parts.values()
        outputs = {**({"rationale": _RATIONALE} if spec.reasons else {}), "answer": _ANSWER}
        if self.reasons_apart:
            self._stop = self._opening.rstrip(" :")
            first = dspy.Signature({"question": _QUESTION, "rationale": _RATIONALE}, instructions)
            self.reason = dspy.Predict(first, max_tokens=max_tokens, stop=[self._stop])
            outputs = {"rationale": _GIVEN, "answer": _ANSWER}
        settings = {} if self.reasons_apart else {"max_tokens": max_tokens}
        self.respond = dspy.Predict(dspy.Signature({"question": _QUESTION, **outputs}, instructions), **settings)
        self.respond.demos = [] if self.reasons_apart else [*words.examples]

    async def aforward(self, question: Question) -> dspy.Prediction:
        """Ask once, and again to close thinking that was cut off; twice if it reasons apart."""
        question, reasons = WAY.get().inputs.get("question", question), self.reasons
        opening, rationale, is_chosen = self._opening, None, self.guided
        if self.reasons_apart:
            first = await self.ask_about(self.reason, question)
            reasoning = read_rationale(first.text or "")
            _trace(self.reason, question, {}, rationale=reasoning)
            rationale = (reasoning or "").split(self._stop)[0].rstrip()
            opening = f"{rationale}\n\n{opening}" if rationale else opening
        given = {} if rationale is None else {"rationale": rationale}
        if is_chosen:
            generation, answer = await self._choose(question, opening)
        else:
            generation = await self.ask_about(self.respond, question)
            answer = self._read(generation, question)
            if self.spec.answer_after_budget and is_cut_in_thinking(generation.text, generation.finish_reason):
                # The two calls are one reply then.
                is_chosen, (thinking, _) = True, split_thinking(generation.text or "")
                generation, answer = await self._choose(question, join_thinking(thinking or "", opening))
        outputs: dict[str, Any] = {"answer": answer}
        if reasons and not self.reasons_apart:
            outputs["rationale"] = rationale = read_rationale(generation.text or "")
        _trace(self.respond, question, given, **outputs)
        scores, reading = {}, generation.logprobs if is_chosen and self.weighs else None
        if reading is not None and (self.reasons_apart or not reasons):
            totals = [continuation.total for continuation in reading.continuations]
            by_number = dict(zip(question.option_numbers, totals, strict=True))
            scores = {
                "option_scores": by_number,
                "score_unit": "nats",
                "score_norm": "sum",
                "read_by": reading.read_by,
                "read_why": reading.why,
                "label_mass": reading.mass,
            }
        return dspy.Prediction(answer=answer, rationale=rationale or None, generation=generation, **scores)

    async def ask_about(
        self,
        predictor: dspy.Predict,
        question: Question,
        beginning: str = "",
        choices: Sequence[str] | None = None,
    ) -> Generation:
        """Ask one of its predictors about a question, with its picture if it is shown; the reply is what follows the
        beginning.
        """
        turns = [{"role": self.turn, "content": predictor.signature.instructions}]
        if self.turn != "system":
            turns.insert(0, {"role": "system", "content": ""})
        for demo in vars(predictor)["demos"] if self.nearest is None else self.nearest.find(question):
            solved = [demo["rationale"]] if demo.get("rationale") and "rationale" in predictor.signature.fields else []
            if demo.get("answer") is not None:
                solved.append(render_answer(demo["answer"], self.spec.answer_form))
            example = Question.model_validate(getattr(demo["question"], "source", demo["question"]))
            turns.append({"role": "user", "content": example.printed})
            turns.append({"role": "assistant", "content": "\n\n".join(solved)})
        turns.append(user_turn(question.printed))
        asked: dict[str, Any] = {"pictures": () if question.picture is None else (question.picture,)}
        if choices is not None and self.weighs and predictor is self.respond:
            asked["continuations"] = ContinuationRequest(texts=tuple(choices), given_opening=True, template=True)
        elif choices is not None:
            asked["choices"] = tuple(choices)
        return await self.ask(predictor, turns, opening=beginning, **asked)

    async def _choose(self, question: Question, beginning: str) -> tuple[Generation, int | None]:
        """Have one of the options' numbers chosen; return the whole reply and the number, None if it was withheld."""
        choices = [*map(str, numbers := question.option_numbers)]
        generation = await self.ask_about(self.respond, question, beginning, choices)
        if (choice := (generation.text or "").strip()) not in choices:
            return generation, None
        answer = numbers[choices.index(choice)]
        return replace(generation, text=f"{beginning}{choice}{self._closing}"), answer

    def _read(self, generation: Generation, question: Question) -> int | None:
        """Read the answer of a free reply; one that was refused or filtered holds none.

        Under the setting `READING` of `lenient`, where the strict reader reads no answer, the lenient one's.
        """
        reply, ending = generation.text or "", generation.ending
        if ending in WITHHELD:
            return None
        content = end_turn(split_thinking(reply)[1])
        how = {"reasoned": self.reasons, "cut": ending is Ending.CUT}
        answer = parse_answer(content, question.option_numbers, **how)
        if answer is None and dspy.settings.get(READING) == "lenient" and ending is not Ending.ABORTED:
            texts = {option.number: option.text for option in question.options}
            # A careful marker takes no passage's number for an option's.
            answer = read_leniently(
                _CITED.sub("", content) if WAY.get().inputs.get("passages") else content, texts, **how
            )
        return answer


def read_rationale(reply: str) -> str | None:
    """Read the thinking of a reply, and what it says before its last answer; None for neither."""
    thinking, content = split_thinking(reply)
    content = plain_forms(end_turn(content))
    answers = find_answers(content)
    reasoning = content[: answers[-1][0]] if answers else content
    return "\n\n".join(part for part in (thinking, reasoning.strip()) if part) or None


def _trace(predictor: dspy.Predict, question: Question, inputs: dict[str, Any], **outputs: Any) -> None:
    """Note a call where DSPy's optimizers look for what a predictor was asked and said, which some show as text."""
    if dspy.settings.trace is not None:
        asked = {"question": AskedText(question.printed, question), **inputs}
        if (passages := WAY.get().inputs.get("passages")) is not None:
            asked["passages"] = passages
        dspy.settings.trace.append((predictor, asked, dspy.Prediction(**outputs)))


class CitingPassages(BehindText):
    """A program that sees numbered passages and names one behind its answer, `{Answer: 3} [2]`.

    Free, one reply holds both; guided, the number is chosen in a second call that continues the first reply, among
    those of the passages that are shown and 0 for none. A prediction carries `passages` and `cited`.
    """

    program: AnsweringProgram

    def __init__(self, program: AnsweringProgram, finder: PassageFinder | None, note: str) -> None:
        """Make the program: `note` asks for the citation, and stands behind the passages."""
        super().__init__(program, finder)
        self._note = note
        self.cite = None
        if program.guided:
            words = program.respond.signature.instructions
            signature = dspy.Signature("question, reply, count: int -> citation: int", words)
            self.cite = dspy.Predict(behind_passages(signature))
            self.cite.demos = program.respond.demos

    def calls_for(self, question: Question) -> int:
        """Count the program's own, and one for the citation where it is guided."""
        return self.program.calls_for(question) + (self.cite is not None)

    async def aforward(self, question: Any) -> dspy.Prediction:
        """Ask the program behind the passages; then for the citation."""
        hits = self._read(question)
        passages_text = "\n\n".join(
            f"{_OPENING}{number}{_CLOSING} {hit.passage.text}" for number, hit in enumerate(hits, 1)
        )
        outcome = await fitted(passages_text, lambda excerpt: self._cited(question, excerpt, len(hits)))
        return outcome.copy(passages=keep_passages(hits))

    async def _cited(self, question: Question, excerpt: str, hit_count: int) -> dspy.Prediction:
        passages = f"{excerpt}\n\n{self._note}" if excerpt else ""
        # A text that was cut at its end shows fewer of them.
        starts = [f"{_OPENING}{number}{_CLOSING} " for number in range(1, hit_count + 1)]
        count = sum(excerpt.startswith(start) or f"\n\n{start}" in excerpt for start in starts)
        with asked_by(passages=passages):
            outcome = await self.program.aforward(question)
            citation = _read_citation(getattr(outcome.get("generation"), "text", None) or "", count)
            if self.cite is not None and outcome.answer is not None and count:
                reply = render_answer(outcome.answer, self.program.spec.answer_form)
                if outcome.rationale:
                    reply = f"{outcome.rationale}\n\n{reply}"
                current, beginning = WAY.get().inputs.get("question", question), f"{reply} {_OPENING}"
                choices, citation = [*map(str, range(count + 1))], None
                generation = await self.program.ask_about(self.cite, current, beginning, choices)
                if (choice := generation.text) in choices:
                    citation, generation = int(choice), replace(generation, text=f"{beginning}{choice}{_CLOSING}")
                outcome.generation = generation
        return outcome.copy(cited=citation)


def _read_citation(reply: str, count: int) -> int | None:
    """Read the number that stands in square brackets behind the last answer of a reply. 0 says that no passage supports
    the answer.

    None without an answer or a number behind it, and for a number above `count`, the passages that were shown.
    """
    answers = find_answers(reply)
    match = _CITED.search(reply, answers[-1][1]) if answers else None
    number = int(match.group(1)) if match else None
    return number if number is not None and number <= count else None
