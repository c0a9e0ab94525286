"""What a stored run answered, question by question, as every format of an export takes it.

Questions that failed or are pending are left out: nobody has answered them. A numbered option is named by its letter,
counted from A as the exam prints them, since other harnesses show letters.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from string import ascii_uppercase
from typing import Any

from medexam import Prediction, Question, __version__
from medexam.errors import SpecError
from medexam.experiments import AnyRun, load_items
from medexam.files import file_name
from medexam.predictions import Status
from medexam.questions import Gold, Task, TaskGold
from medexam.specs import CellSpec


@dataclass(frozen=True)
class ExportedAnswer:
    """One question and what a program answered."""

    item: Any
    """A `Question`, or a `Task` that is answered in words."""
    gold: Any
    prediction: Prediction
    scores: Mapping[str, float]
    """Measure -> score of this answer, 0 to 1; empty for a question in words without a reply."""
    answer: str | None
    """The letter of the chosen option, or the answer in words; None if there is none."""
    target: str
    """The letter of the right option, or what is expected."""

    @classmethod
    def of_choice(cls, question: Question, gold: Gold, prediction: Prediction) -> "ExportedAnswer":
        """Describe the answer to a question with numbered options."""
        letters = dict(zip(question.option_numbers, ascii_uppercase, strict=False))
        answer = None if prediction.answer is None else letters[prediction.answer]
        scores = {"accuracy": float(gold.accepts(prediction.answer))}
        return cls(question, gold, prediction, scores, answer, letters[gold.number])

    @classmethod
    def of_words(
        cls, task: Task, gold: TaskGold, prediction: Prediction, scores: Mapping[str, float]
    ) -> "ExportedAnswer":
        """Describe an answer in words."""
        return cls(task, gold, prediction, scores, prediction.text, "\n".join(expected_texts(task, gold)))

    @property
    def right(self) -> bool:
        """Whether a right option was chosen."""
        return self.scores.get("accuracy") == 1

    @property
    def options(self) -> list[str]:
        """The texts of the options in the order of the exam."""
        return [getattr(option, "text", option) for option in self.item.options]

    @property
    def reply(self) -> str:
        """The reply; the answer if the model wrote none, and nothing if there is none either."""
        return self.prediction.reply if self.prediction.reply is not None else self.answer or ""

    @property
    def token_usage(self) -> dict[str, int]:
        """Tokens read and written, as other harnesses name them; empty if the engine reported none."""
        counts = self.prediction.prompt_tokens, self.prediction.completion_tokens
        if counts[0] is None or counts[1] is None:
            return {}
        return {"input_tokens": counts[0], "output_tokens": counts[1], "total_tokens": counts[0] + counts[1]}


@dataclass(frozen=True)
class ExportedRun:
    """A run with the questions that it answers."""

    run: AnyRun
    items: Any
    answers: tuple[ExportedAnswer, ...]
    """In the order of the questions."""

    @classmethod
    def read(cls, run: AnyRun) -> "ExportedRun":
        """Read the answers and questions of a run; raises `SpecError` if it holds none.

        Raises `DatasetError` if its data set cannot be read or holds other texts now.
        """
        items: Any = load_items(run.folder)
        predictions = {
            key: prediction
            for key, prediction in run.folder.read_predictions().items()
            if prediction.status is not Status.FAILED
        }
        answered = [item for item in items.questions if item.key in predictions]
        if not answered:
            raise SpecError(f"{run.folder.name} has no answer yet, so there is nothing to export: run its spec first")
        triples = [(item, items.golds[item.key], predictions[item.key]) for item in answered]
        if not items.in_words:
            return cls(run, items, tuple(ExportedAnswer.of_choice(*triple) for triple in triples))
        measures = run.benchmark.score(items, predictions).items
        scores = {
            item.key: {name: by_key[item.key] for name, by_key in measures.items() if item.key in by_key}
            for item in answered
        }
        return cls(run, items, tuple(ExportedAnswer.of_words(*each, scores[each[0].key]) for each in triples))

    @property
    def in_words(self) -> bool:
        """Whether the questions are answered in words."""
        return bool(self.items.in_words)

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
        spec_name = str(self.cell.model.name or "")
        if self.cell.program.asks_model and not self.run.mixed and spec_name.strip("/").count("/") == 1:
            return spec_name
        return self.run.model or f"medexam/{self.run.program}"

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
    def means(self) -> dict[str, float | None]:
        """Measure -> its mean over the exported answers; of answers in words the measures of the run."""
        metrics: Any = self.run.metrics
        if self.in_words:
            return {name: measure.value for name, measure in metrics.measures.items()}
        return {"accuracy": sum(answer.right for answer in self.answers) / len(self.answers)}

    @property
    def accuracy(self) -> float:
        """Share of the exported answers that are right, 0 to 1."""
        return float(self.means["accuracy"] or 0)

    @property
    def standard_error(self) -> float:
        """Of the accuracy, from the sample's variance as other harnesses state it; 0 for one answer."""
        n = len(self.answers)
        return float((self.accuracy * (1 - self.accuracy) / (n - 1)) ** 0.5) if n > 1 else 0.0


def expected_texts(task: Task, gold: TaskGold) -> list[str]:
    """List what is expected: the right answers, or the explanation where a wrong answer is shown."""
    explanation = [text for text in (*gold.incorrect_step, gold.incorrect_explanation) if text]
    return explanation if task.given_answer else list(gold.answers)
