"""Citations: the reply names the passage that supports its answer."""

import dspy

from medexam.programs.asking import AnsweringProgram
from medexam.programs.base import asked_by
from medexam.programs.program_output import ProgramOutput
from medexam.programs.retrieving import PassageFinder
from medexam.programs.wrapping import BehindText, fitted
from medexam.questions import Question
from medexam.signatures import render_answer
from medexam.signatures.adapter import CitePassage, behind_passages
from medexam.signatures.citations import count_numbered, number_passages, read_citation


class CitingPassages(BehindText):
    """A program that sees numbered passages and names one behind its answer, `{Answer: 3} [2]`.

    Free, one reply holds both; guided, the number is chosen in a second call that continues the first reply, among
    those of the passages that are shown and 0 for none. A prediction carries `hits` and `cited`.
    """

    def __init__(self, program: AnsweringProgram, finder: PassageFinder, note: str) -> None:
        """Make the program: `note` asks for the citation, and stands behind the passages."""
        super().__init__(program)
        self._finder = finder
        self._note = note
        self.cite = None
        if program.adapter.answer_format == "guided":
            words = program.respond.signature.instructions
            self.cite = dspy.Predict(behind_passages(CitePassage.with_instructions(words)))
            self.cite.demos = program.respond.demos

    def calls_for(self, question: Question) -> int:
        """Count the program's own, and one for the citation where it is guided."""
        return self.program.calls_for(question) + (self.cite is not None)

    async def answer(self, question: Question) -> ProgramOutput:
        """Ask the program behind the passages; then for the citation."""
        hits = self._finder.find(question)
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
            reply = render_answer(outcome.answer, self.adapter.answer_form)
            if outcome.rationale:
                reply = f"{outcome.rationale}\n\n{reply}"
            prediction = await self.ask(self.cite, question=question, passages=passages, reply=reply, count=count)
            outcome.generation = prediction.generation
            citation = prediction.citation
        return outcome.copy(cited=citation)
