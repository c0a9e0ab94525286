"""What a stored run answered, question by question, as every format of an export takes it.

Questions that failed or are pending are left out: nobody has answered them. A numbered option is named by its letter,
counted from A as the exam prints them, since other harnesses show letters.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from string import ascii_uppercase
from typing import Any

from medexam import Prediction, __version__
from medexam.errors import SpecError
from medexam.experiments import StoredRun, load_items
from medexam.files import file_name
from medexam.predictions import Status
from medexam.questions import Task, TaskGold
from medexam.specs import CellSpec


@dataclass(frozen=True)
class ExportedAnswer:
    """One question and what a program answered."""

    item: Any
    """A `Question`, or a `Task` that is answered in words."""
    gold: Any
    prediction: Prediction
    scores: Mapping[str, float]
    """Of answers in words: measure -> score, 0 to 1; empty for a question without a reply."""

    @property
    def in_words(self) -> bool:
        """Whether the question has no numbered options."""
        return isinstance(self.item, Task)

    @property
    def right(self) -> bool:
        """Whether a right option was chosen."""
        return not self.in_words and bool(self.gold.accepts(self.prediction.answer))

    @property
    def options(self) -> list[str]:
        """The texts of the options in the order of the exam."""
        return [getattr(option, "text", option) for option in self.item.options]

    @property
    def answer(self) -> str | None:
        """The letter of the chosen option, or the answer in words; None if there is none."""
        return self.prediction.text if self.in_words else self._letter(self.prediction.answer)

    @property
    def reply(self) -> str:
        """The reply; the answer if the model wrote none, and nothing if there is none either."""
        return self.prediction.reply if self.prediction.reply is not None else self.answer or ""

    def _letter(self, number: int | None) -> str | None:
        return None if number is None else ascii_uppercase[self.item.option_numbers.index(number)]

    @property
    def values(self) -> dict[str, Any]:
        """What the files of other harnesses hold of it, by the names in `formats.yaml`."""
        prediction, item = self.prediction, self.item
        counts = prediction.prompt_tokens, prediction.completion_tokens
        usage = dict(
            zip(("input_tokens", "output_tokens", "total_tokens"), (*counts, sum(c or 0 for c in counts)), strict=True)
        )
        values = {
            "key": item.key,
            "options": self.options,
            "reply": self.reply,
            "answer": self.answer or "",
            "usage": None if None in counts else usage,
            "latency_s": prediction.latency_s,
            "latency_ms": None if prediction.latency_s is None else 1000 * prediction.latency_s,
            "stop_reason": "max_tokens" if prediction.finish_reason == "length" else "stop",
        }
        if self.in_words:
            names = ("question", "context", "given_answer", "given_reasoning")
            texts = {name: getattr(item, name) for name in names}
            return {**values, **texts, "printed": item.question, "target": "\n".join(expected_texts(item, self.gold))}
        target = str(self._letter(self.gold.number))
        return {
            **values,
            "question": item.asked,
            "printed": item.printed,
            "target": target,
            "exam": item.exam.name,
            "year": item.exam.year,
            "discipline": item.exam.discipline,
            "hash": hashlib.sha256((item.asked + target).encode()).hexdigest(),
            "right": self.right,
            "score": float(self.right),
            "verdict": "C" if self.right else "N" if self.answer is None else "I",
        }


@dataclass(frozen=True)
class ExportedRun:
    """A run with the questions that it answers."""

    run: StoredRun
    items: Any
    answers: tuple[ExportedAnswer, ...]
    """In the order of the questions."""

    @classmethod
    def read(cls, run: StoredRun) -> "ExportedRun":
        """Read the answers and questions of a run; raises `SpecError` if it holds none.

        Raises `DatasetError` if its data set cannot be read or holds other texts now.
        """
        items: Any = load_items(run.folder)
        predictions = {
            key: prediction
            for key, prediction in run.folder.read_predictions().items()
            if prediction.status is not Status.FAILED
        }
        measures = run.benchmark.score(items, predictions).items if items.in_words else {}
        answers = tuple(
            ExportedAnswer(
                item,
                items.golds[item.key],
                predictions[item.key],
                {name: scores[item.key] for name, scores in measures.items() if item.key in scores},
            )
            for item in items.questions
            if item.key in predictions
        )
        if not answers:
            raise SpecError(f"{run.folder.name} has no answer yet, so there is nothing to export: run its spec first")
        return cls(run, items, answers)

    @property
    def in_words(self) -> bool:
        """Whether the questions are answered in words."""
        return bool(self.items.in_words)

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
    def model_id(self) -> str:
        """`DEVELOPER/MODEL`; a model whose developer is not known is one of `unknown`."""
        model = self.model.strip("/")
        return model if model.count("/") == 1 else f"unknown/{model.rpartition('/')[2]}"

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

    @cached_property
    def values(self) -> dict[str, Any]:
        """What the files of other harnesses hold of it, by the names in `formats.yaml`."""
        run, record, dataset, n = self.run, self.run.record, self.cell.dataset, len(self.answers)
        engine = (run.environment.get("engine") or {}).get("engine")
        is_set = self.cell.program.asks_model and self.cell.model.temperature is not None
        ended_s, accuracy = datetime.fromisoformat(self.ended_at).timestamp(), self.means.get("accuracy") or 0.0
        return {
            "task": self.task,
            "model": self.model,
            "model_id": self.model_id,
            "engine": {"name": str(engine)} if engine else None,
            "decoding": {"temperature": self.cell.model.temperature} if is_set else {},
            "dataset": dataset.called,
            "language": dataset.language,
            "source": record.dataset_source,
            "dataset_version": record.dataset_version,
            "dataset_fingerprint": record.dataset_fingerprint,
            "program": self.cell.program.model_dump(mode="json"),
            "program_label": run.program,
            "program_name": f"medexam {run.program}",
            "spec_digest": record.spec_digest,
            "asked_by": "the printed question; medexam's own prompt is that of its program",
            "version": str(run.environment.get("medexam") or __version__),
            "started_at": str(run.environment.get("started_at") or self.ended_at),
            "ended_at": self.ended_at,
            "ended_s": ended_s,
            "retrieved": str(ended_s),
            "status": "success" if run.complete else "cancelled",
            "selected": len(record.questions),
            "n": n,
            "keys": [answer.item.key for answer in self.answers],
            "accuracy": accuracy,
            # From the sample's variance, as other harnesses state it.
            "standard_error": (accuracy * (1 - accuracy) / (n - 1)) ** 0.5 if n > 1 else 0.0,
        }


def expected_texts(task: Task, gold: TaskGold) -> list[str]:
    """List what is expected: the right answers, or the explanation where a wrong answer is shown."""
    explanation = [text for text in (*gold.incorrect_step, gold.incorrect_explanation) if text]
    return explanation if task.given_answer else list(gold.answers)
