"""What a stored run answered, question by question, as every format of an export takes it.

Questions that failed or are pending are left out: nobody has answered them. An answer is named by the letter of its
option, counted from A as the exam prints them, since other harnesses show letters.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from string import ascii_uppercase

from medexam import Prediction, Question, __version__
from medexam.errors import SpecError
from medexam.experiments import AnyRun, load_items
from medexam.files import file_name
from medexam.predictions import Status
from medexam.questions import ExamSet, Gold
from medexam.specs import CellSpec

_HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")


@dataclass(frozen=True, slots=True)
class ExportedAnswer:
    """One question and what a program answered."""

    question: Question
    gold: Gold
    prediction: Prediction

    @property
    def right(self) -> bool:
        """Whether a right option was chosen."""
        return self.gold.accepts(self.prediction.answer)

    @property
    def options(self) -> list[str]:
        """The texts of the options in the order of the exam."""
        return [option.text for option in self.question.options]

    @property
    def letter(self) -> str | None:
        """The letter of the chosen option; None if none was chosen."""
        return None if self.prediction.answer is None else self._letter(self.prediction.answer)

    @property
    def target(self) -> str:
        """The letter of the right option."""
        return self._letter(self.gold.number)

    @property
    def said(self) -> str:
        """The reply; the chosen letter if the model wrote none, and nothing if it chose none either."""
        return self.prediction.reply if self.prediction.reply is not None else self.letter or ""

    @property
    def token_usage(self) -> dict[str, int]:
        """Tokens read and written, as other harnesses name them; empty if the engine reported none."""
        input_tokens, output_tokens = self.prediction.prompt_tokens, self.prediction.completion_tokens
        if input_tokens is None or output_tokens is None:
            return {}
        return {
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
            "total_tokens": input_tokens + output_tokens,
        }

    def _letter(self, number: int) -> str:
        return ascii_uppercase[self.question.option_numbers.index(number)]


@dataclass(frozen=True)
class ExportedRun:
    """A run with the questions that it answers."""

    run: AnyRun
    items: ExamSet
    answers: tuple[ExportedAnswer, ...]
    """In the order of the exams."""

    @classmethod
    def read(cls, run: AnyRun) -> "ExportedRun":
        """Read the answers and questions of a run with numbered options; raises `SpecError` if it holds none.

        Raises `DatasetError` if its data set cannot be read or holds other texts now.
        """
        items = load_items(run.folder)
        predictions = run.folder.read_predictions()
        answers = [
            ExportedAnswer(question, items.golds[question.key], predictions[question.key])
            for question in items.questions
            if question.key in predictions and predictions[question.key].status is not Status.FAILED
        ]
        if not answers:
            raise SpecError(f"{run.folder.name} has no answer yet, so there is nothing to export: run its spec first")
        return cls(run, items, tuple(answers))

    def __iter__(self) -> Iterator[ExportedAnswer]:
        return iter(self.answers)

    @property
    def cell(self) -> CellSpec:
        """What was asked for."""
        return self.run.record.cell

    @property
    def task(self) -> str:
        """Data set, language and program, as the name of a task and of its file."""
        return file_name("_".join((self.cell.dataset.called, self.cell.dataset.language, self.run.program)))

    @property
    def model(self) -> str:
        """The model that answered, with its developer if the spec names one; `medexam/PROGRAM` if none was asked."""
        spec_name, run_model = str(self.cell.model.name or ""), self.run.model
        if self.cell.program.asks_model and not self.run.mixed and _HUB_NAME.fullmatch(spec_name):
            return spec_name
        return run_model or f"medexam/{self.run.program}"

    @property
    def medexam_version(self) -> str:
        """The version of this package that asked."""
        return str(self.run.environment.get("medexam") or __version__)

    @property
    def started_at(self) -> str:
        """When the run began, in ISO 8601 with its time zone."""
        return str(self.run.environment.get("started_at") or self.ended_at)

    @property
    def ended_at(self) -> str:
        """When the run was last asked, in ISO 8601 with its time zone."""
        return str(self.run.environment.get("ended_at") or "1970-01-01T00:00:00+00:00")

    @cached_property
    def accuracy(self) -> float:
        """Share of the exported answers that are right, 0 to 1."""
        return sum(answer.right for answer in self.answers) / len(self.answers)

    @cached_property
    def standard_error(self) -> float:
        """Of the accuracy, from the sample's variance as other harnesses state it; 0 for one answer."""
        n = len(self.answers)
        return (self.accuracy * (1 - self.accuracy) / (n - 1)) ** 0.5 if n > 1 else 0.0
