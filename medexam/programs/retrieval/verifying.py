"""Retrieve and verify: passages that do not help are dropped, and the answer is checked against those that are left.

Who judges is a `Verifier`: the model itself, asked yes or no, or a reader of natural language inference.
"""

import asyncio
import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import dspy

from medexam.predictions import Prediction, Reading, Reason
from medexam.programs.base import AskingProgram, Call, Steps
from medexam.programs.program_output import PassageVerdict, ProgramOutput
from medexam.programs.retrieval.passages import BehindText, PassageFinder, join_passages
from medexam.programs.retrieval.side_questions import SideQuestion
from medexam.questions import Question
from medexam.retrievers.base import Hit
from medexam.signatures import Generation, TaskWords, fill
from medexam.tasks import Task

VERDICT_TOKENS = 16
"""Budget of a yes or no."""


Verdicts = Generator[Call, dspy.Prediction, list[PassageVerdict]]
"""A verifier's steps over passages."""
Check = Generator[Call, dspy.Prediction, bool]
"""A verifier's steps over an answer."""


class Verifier(Protocol):
    """Judges the passages of a question, and an answer by them."""

    calls: int
    """Calls of the model for a passage, and for an answer."""

    def judge(self, question: Question | Task, hits: Sequence[Hit], generations: list[Generation]) -> Verdicts:
        """Judge each passage; what the model said is added to `generations`."""
        ...

    def check(
        self, question: Question | Task, answer: int | str, hits: Sequence[Hit], generations: list[Generation]
    ) -> Check:
        """Check whether these passages support the answer, the number of an option or words."""
        ...


class ModelVerifier(dspy.Module):
    """The model that answers also judges: each passage, then the answer, yes or no."""

    calls = 1

    def __init__(self, words: TaskWords) -> None:
        super().__init__()
        self.helps = SideQuestion(words, "helps", VERDICT_TOKENS)
        self.supports = SideQuestion(words, "supports", VERDICT_TOKENS)
        self._choices = (words.groups["answer_yes"], words.groups["answer_no"])
        self._wrong_answer = words.groups.get("wrong_answer", "")

    def judge(self, question: Question | Task, hits: Sequence[Hit], generations: list[Generation]) -> Verdicts:
        """Ask one call a passage."""
        verdicts = []
        printed = question.printed if isinstance(question, Question) else self._print_task(question)
        for hit in hits:
            prediction = yield from self.helps.steps(printed, hit.passage.text, choices=self._choices)
            generations.append(prediction.generation)
            verdicts.append(PassageVerdict(prediction.answer == self._choices[0]))
        return verdicts

    def check(
        self, question: Question | Task, answer: int | str, hits: Sequence[Hit], generations: list[Generation]
    ) -> Check:
        """Ask one call."""
        if isinstance(question, Question):
            asked = question.asked
            text = next(option.text for option in question.options if option.number == answer)
        else:
            asked, text = self._print_task(question), str(answer)
        prediction = yield from self.supports.steps(asked, join_passages(hits), answer=text, choices=self._choices)
        generations.append(prediction.generation)
        return bool(prediction.answer == self._choices[0])

    def _print_task(self, task: Task) -> str:
        """Write a task as one question: its context and options, and what is wrong where its answer is given."""
        text = "\n".join([*([f"{task.context}\n"] if task.context else []), task.question, *task.options])
        if not task.given_answer:
            return text
        given = "\n".join([task.given_answer, *task.given_reasoning])
        return fill(self._wrong_answer, replace(task, question=text, given_answer=given))


Supports = Mapping[str, Mapping[int, float]]
"""Id of a passage -> printed number of each option -> the highest log-probability, in nats, with which one of its
sentences entails the question with that option."""


class SupportReader(Protocol):
    """Reads how far the passages of a question entail its options; may take seconds, called from any thread."""

    def read_supports(self, question: Question) -> Supports:
        """Read that of each passage that has a sentence."""
        ...


class ReadSupports(dspy.Module):
    """A step that asks a local reader; called with `question=`, it returns `supports`."""

    def __init__(self, reader: SupportReader) -> None:
        super().__init__()
        self._reader = reader

    def forward(self, question: Question) -> dspy.Prediction:
        """Read."""
        return dspy.Prediction(supports=self._reader.read_supports(question))

    async def aforward(self, question: Question) -> dspy.Prediction:
        """Read in a thread of its own."""
        return dspy.Prediction(supports=await asyncio.to_thread(self._reader.read_supports, question))


class ReaderVerifier(dspy.Module):
    """A model of natural language inference judges: a passage by the option that it entails most, an answer by its own.

    The hypothesis is the stem with the option, the premise a sentence.
    """

    calls = 0

    def __init__(self, reader: SupportReader, least: float) -> None:
        """Make the verifier; `least` is the probability from which something is entailed."""
        super().__init__()
        self.read = ReadSupports(reader)
        self._least = least

    def judge(self, question: Question | Task, hits: Sequence[Hit], generations: list[Generation]) -> Verdicts:  # noqa: ARG002
        """Ask for one reading of all passages."""
        supports: Supports = (yield Call(self.read, {"question": question})).supports
        passage_supports = [math.exp(max(supports.get(hit.passage.id, {}).values(), default=-math.inf)) for hit in hits]
        return [PassageVerdict(support >= self._least, support) for support in passage_supports]

    def check(
        self,
        question: Question | Task,
        answer: int | str,
        hits: Sequence[Hit],
        generations: list[Generation],  # noqa: ARG002
    ) -> Check:
        """Ask for the same reading."""
        supports: Supports = (yield Call(self.read, {"question": question})).supports
        logprobs = (supports.get(hit.passage.id, {}).get(int(answer), -math.inf) for hit in hits)
        return math.exp(max(logprobs, default=-math.inf)) >= self._least


class VerifiedPassages(BehindText):
    """A program that is asked behind the passages that a verifier kept, and whose answer is checked against them.

    A prediction carries `hits`, all passages that were found, with a verdict on each in `verdicts`, and `supported`.
    Without an answer nothing is checked; without a kept passage nothing supports it.
    """

    replayed = True

    def __init__(
        self,
        program: AskingProgram,
        finder: PassageFinder,
        verifier: ModelVerifier | ReaderVerifier,
        *,
        k: int,
        abstains: bool,
    ) -> None:
        """Make the program; `k` passages are judged, and `abstains`: an answer without support is withdrawn."""
        super().__init__(program)
        self._finder = finder
        self.verifier = verifier
        self._k = k
        self._abstains = abstains

    def calls_for(self, question: Question | Task) -> int:
        """Count the most that it may take: a verdict on each passage and on the answer, and the program's own."""
        return self.verifier.calls * (self._k + 1) + self.program.calls_for(question)

    def steps(self, question: Question | Task) -> Steps:
        """Yield verdicts, the program's own steps behind what is kept, and the check."""
        hits = list(self._finder.find(question))
        generations: list[Generation] = []
        verdicts = yield from self.verifier.judge(question, hits, generations)
        helpful_hits = [hit for hit, verdict in zip(hits, verdicts, strict=True) if verdict.kept]
        outcome = yield from self.steps_behind(question, join_passages(helpful_hits))
        generations += outcome.generations
        supported = None
        answer = outcome.answer if isinstance(question, Question) else outcome.text
        if answer is not None:
            supported = False
            if helpful_hits:
                supported = yield from self.verifier.check(question, answer, helpful_hits, generations)
        fields = {"generations": generations, "keeps_replies": True, "last_generation": outcome.generations[-1]}
        fields |= {"hits": hits, "verdicts": verdicts, "supported": supported} | self._withdrawn(supported)
        return outcome.copy(**fields)

    def read_again(
        self, question: Question | Task, stored: Prediction, reading: Reading = "strict"
    ) -> ProgramOutput | None:
        """Read as the program's own does; an answer that was withdrawn stays so."""
        outcome = self.program.read_again(question, stored, reading)
        return outcome and outcome.copy(**self._withdrawn(stored.supported))

    def _withdrawn(self, supported: bool | None) -> dict[str, object]:
        """Return what replaces an answer that nothing supports; nothing where it is kept."""
        if supported is not False or not self._abstains:
            return {}
        return {"answer": None, "text": None, "reason": Reason.ABSTAINED, "scores": None}
