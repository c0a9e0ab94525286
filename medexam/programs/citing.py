"""Citations: the reply names the passage that supports its answer."""

from typing import Any

import dspy

from medexam.programs.asking import AnsweringProgram
from medexam.programs.base import asked_by, shown_question
from medexam.programs.program_output import ProgramOutput
from medexam.programs.retrieving import PassageFinder
from medexam.programs.wrapping import BehindText, behind_passages, fitted
from medexam.questions import Question
from medexam.signatures import split_thinking
from medexam.signatures.answer_format import render_answer
from medexam.signatures.citations import CLOSING, OPENING, count_numbered, number_passages, read_citation
from medexam.signatures.thinking import end_turn


class CitingPassages(BehindText):
    """A program that sees numbered passages and names one behind its answer, `{Answer: 3} [2]`.

    Free, one reply holds both; guided, the number is chosen in a second call that continues the first reply, among
    those of the passages that are shown and 0 for none. A prediction carries `hits` and `cited`.
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

    async def answer(self, question: Any) -> ProgramOutput:
        """Ask the program behind the passages; then for the citation."""
        hits = self._read(question)
        passages_text = number_passages([hit.passage.text for hit in hits])
        outcome = await fitted(passages_text, lambda excerpt: self._cited(question, excerpt, len(hits)))
        outcome.hits = list(hits)
        return outcome

    async def _cited(self, question: Question, excerpt: str, hit_count: int) -> ProgramOutput:
        passages = f"{excerpt}\n\n{self._note}" if excerpt else ""
        count = count_numbered(excerpt, hit_count)
        with asked_by(passages=passages):
            outcome = await self.program.answer(question)
            citation = read_citation((outcome.generation and outcome.generation.reply) or "", count)
            if self.cite is not None and outcome.answer is not None and count:
                reply = render_answer(outcome.answer, self.program.spec.answer_form)
                if outcome.rationale:
                    reply = f"{outcome.rationale}\n\n{reply}"
                outcome.generation = await self.program.ask_about(
                    self.cite, shown_question(question), f"{reply} {OPENING}", [*map(str, range(count + 1))], CLOSING
                )
                citation = read_citation(end_turn(split_thinking(outcome.generation.reply or "")[1]), count)
        return outcome.copy(cited=citation)
