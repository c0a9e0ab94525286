"""Retrieve-then-answer (the paper's section 3.2.2): any program, with passages before its question.

Which passages belong to a question is looked up once, before anything is asked; programs only ask for them by question.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from medexam.programs.base import AskingProgram, WrappingProgram, asked_by
from medexam.programs.controls import Control
from medexam.programs.program_output import ProgramOutput
from medexam.programs.retrieval.fitting import fitted
from medexam.questions import Question, Task
from medexam.retrievers.base import Hit
from medexam.signatures.adapter import behind_passages


class PassageFinder(Protocol):
    """Finds the passages of a question."""

    def find(self, question: Question | Task) -> Sequence[Hit]:
        """Find the passages to show, most relevant first."""
        ...

    def find_per_option(self, question: Question) -> Mapping[int, Sequence[Hit]]:
        """Find printed number of each option -> its passages: those of the stem with that option, or those of all."""
        ...

    def asked(self, question: Question) -> Question:
        """Return the question in the language in which it is looked up."""
        ...


class BehindText(WrappingProgram):
    """A program that sees a text before its question.

    Where it does not fit the model's context, it is cut from the end by halves; the question never is. A prediction
    carries `passages_cut`, the characters that were left out.
    """

    def __init__(self, program: AskingProgram) -> None:
        super().__init__(program)
        for predictor in program.predictors():
            predictor.signature = behind_passages(predictor.signature)

    async def answer_behind(self, question: Question | Task, text: str) -> ProgramOutput:
        """Ask the program behind the text, or behind as much of it as fits."""

        async def ask(excerpt: str) -> ProgramOutput:
            with asked_by(passages=excerpt):
                return await self.program.answer(question)

        return await fitted(text, ask)


class WithPassages(BehindText):
    """A program that sees passages before its question; a prediction carries `hits` besides."""

    def __init__(self, program: AskingProgram, finder: PassageFinder) -> None:
        super().__init__(program)
        self._finder = finder

    async def answer(self, question: Question | Task) -> ProgramOutput:
        """Ask the program behind the passages."""
        hits = list(self._finder.find(question))
        return (await self.answer_behind(question, join_passages(hits))).copy(hits=hits)


def join_passages(hits: Sequence[Hit]) -> str:
    """Join the texts of passages as prompts show them, a blank line apart."""
    return "\n\n".join(hit.passage.text for hit in hits)


def shown_text(value: Any) -> str:
    """Return a field as prompts show it: a passage or a list of them as their texts, a blank line apart."""
    if isinstance(value, list | tuple):
        return "\n\n".join(map(shown_text, value))
    return value.passage.text if isinstance(value, Hit) else str(value)


class OptionRelevance(Control):
    """The option whose best passage is the most relevant; of equal ones the first.

    Unanswered where no option finds a passage. The IR solver of Vilares and Gómez-Rodríguez (2019).
    """

    def __init__(self, finder: PassageFinder) -> None:
        super().__init__()
        self._finder = finder

    def say(self, question: Question) -> ProgramOutput:
        """Return the answer; `hits` holds the passage that decided, if any."""
        best = {number: hits[0] for number, hits in self._finder.find_per_option(question).items() if hits}
        answer = max(best, key=lambda number: best[number].score, default=None)
        hits = [] if answer is None else [best[answer]]
        return ProgramOutput(answer=answer, rationale=None, hits=hits)
