"""What a stored run answered, question by question, as every format of an export takes it.

Questions that failed or are pending are left out: nobody has answered them. A numbered option is named by its letter,
counted from A as the exam prints them, since other harnesses show letters.
"""

import hashlib
from collections.abc import Mapping, Sequence
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


@dataclass(frozen=True)
class ExportedAnswer:
    """One question and what a program answered."""

    item: Any
    """A `Question`, or a `Task` that is answered in words."""
    gold: Any
    prediction: Prediction
    scores: Mapping[str, float]
    """Of answers in words: measure -> score, 0 to 1; empty for a question without a reply."""

    @cached_property
    def values(self) -> dict[str, Any]:
        """What the files of other harnesses hold of it, by the names in `formats.yaml`.

        `answer` is the letter of the chosen option, or the answer in words; `reply` is the answer if the model wrote
        none. Both are empty if there is nothing. `options` are texts in the order of the exam.
        """
        prediction, item = self.prediction, self.item
        in_words = isinstance(item, Task)
        answer = prediction.text if in_words else self._letter(prediction.answer)
        counts = prediction.prompt_tokens, prediction.completion_tokens
        usage = dict(
            zip(("input_tokens", "output_tokens", "total_tokens"), (*counts, sum(c or 0 for c in counts)), strict=True)
        )
        values = {
            "key": item.key,
            "options": [getattr(option, "text", option) for option in item.options],
            "reply": prediction.reply if prediction.reply is not None else answer or "",
            "answer": answer or "",
            "usage": None if None in counts else usage,
            "latency_s": prediction.latency_s,
            "latency_ms": None if prediction.latency_s is None else 1000 * prediction.latency_s,
            "stop_reason": "max_tokens" if prediction.finish_reason == "length" else "stop",
        }
        if in_words:
            names = ("question", "context", "given_answer", "given_reasoning")
            texts = {name: getattr(item, name) for name in names}
            target = "\n".join(expected_texts(item, self.gold))
            return {**values, **texts, "printed": item.question, "target": target, "right": False}
        target, right = str(self._letter(self.gold.number)), bool(self.gold.accepts(prediction.answer))
        return {
            **values,
            "question": item.asked,
            "printed": item.printed,
            "target": target,
            "exam": item.exam.name,
            "year": item.exam.year,
            "discipline": item.exam.discipline,
            "hash": hashlib.sha256((item.asked + target).encode()).hexdigest(),
            "right": right,
            "score": float(right),
            "verdict": "C" if right else "N" if answer is None else "I",
        }

    def _letter(self, number: int | None) -> str | None:
        return None if number is None else ascii_uppercase[self.item.option_numbers.index(number)]


@dataclass(frozen=True)
class ExportedRun:
    """A run with the questions that it answers."""

    run: StoredRun
    items: Any
    answers: tuple[ExportedAnswer, ...]
    """In the order of the questions."""
    means: dict[str, float | None]
    """Measure -> its mean over the exported answers; of answers in words the measures of the run."""
    values: dict[str, Any]
    """What the files of other harnesses hold of it, by the names in `formats.yaml`."""

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
        metrics: Any = run.metrics
        means = {"accuracy": sum(answer.values["right"] for answer in answers) / len(answers)}
        if items.in_words:
            means = {name: measure.value for name, measure in metrics.measures.items()}
        return cls(run, items, answers, means, _describe(run, answers, means.get("accuracy") or 0.0))

    @property
    def in_words(self) -> bool:
        """Whether the questions are answered in words."""
        return bool(self.items.in_words)


def _describe(run: StoredRun, answers: Sequence[ExportedAnswer], accuracy: float) -> dict[str, Any]:
    record, environment, cell, n = run.record, run.environment, run.record.cell, len(answers)
    engine = (environment.get("engine") or {}).get("engine")
    is_set = cell.program.asks_model and cell.model.temperature is not None
    ended_at = str(environment.get("ended_at") or "1970-01-01T00:00:00+00:00")
    ended_s = datetime.fromisoformat(ended_at).timestamp()
    # With its developer if the spec names one.
    model, spec_name = run.model or f"medexam/{run.program}", str(cell.model.name or "")
    if cell.program.asks_model and not run.mixed and spec_name.strip("/").count("/") == 1:
        model = spec_name
    bare = model.strip("/")
    return {
        "task": file_name("_".join((cell.dataset.called, cell.dataset.language, run.program))),
        "model": model,
        "model_id": bare if bare.count("/") == 1 else f"unknown/{bare.rpartition('/')[2]}",
        "engine": {"name": str(engine)} if engine else None,
        "decoding": {"temperature": cell.model.temperature} if is_set else {},
        "dataset": cell.dataset.called,
        "language": cell.dataset.language,
        "source": record.dataset_source,
        "dataset_version": record.dataset_version,
        "dataset_fingerprint": record.dataset_fingerprint,
        "program": cell.program.model_dump(mode="json"),
        "program_label": run.program,
        "program_name": f"medexam {run.program}",
        "spec_digest": record.spec_digest,
        "asked_by": "the printed question; medexam's own prompt is that of its program",
        "version": str(environment.get("medexam") or __version__),
        "started_at": str(environment.get("started_at") or ended_at),
        "ended_at": ended_at,
        "ended_s": ended_s,
        "retrieved": str(ended_s),
        "status": "success" if run.complete else "cancelled",
        "selected": len(record.questions),
        "n": n,
        "keys": [answer.item.key for answer in answers],
        "accuracy": accuracy,
        # From the sample's variance, as other harnesses state it.
        "standard_error": (accuracy * (1 - accuracy) / (n - 1)) ** 0.5 if n > 1 else 0.0,
    }


def expected_texts(task: Task, gold: TaskGold) -> list[str]:
    """List what is expected: the right answers, or the explanation where a wrong answer is shown."""
    explanation = [text for text in (*gold.incorrect_step, gold.incorrect_explanation) if text]
    return explanation if task.given_answer else list(gold.answers)
