"""Translation as a benchmark: texts that are asked for in another language, and whether each comes back whole.

A run's texts stand in a file of its translation's folder, each under a key of its content: a text that changes is
another item.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from medexam import Prediction
from medexam.datasets import ExampleRecord, read_examples
from medexam.errors import DatasetError
from medexam.files import write_whole
from medexam.measures import Predictions, ScoredRun, WordsBenchmark, scored_items
from medexam.model_calls import is_cut
from medexam.questions import Task, TaskGold, TaskSet
from medexam.specs import DatasetSpec
from medexam_companions.translation.layout import QuestionText, render_layout, text_of_task
from medexam_companions.translation.validity import TranslationCandidate, TranslationFault, judge_text

BENCHMARK = "translation"
"""Its name in a spec."""
BY_CONTENT = "texts are known by their content"
"""Stands for the fingerprint of any set of texts: their keys tell two of them apart."""


class Translation(WordsBenchmark):
    """How many texts come back as the question that they were."""

    board = ("valid",)

    def load(self, spec: DatasetSpec) -> TaskSet:
        """Load every text of the file; raises `DatasetError` if it is missing or damaged."""
        if spec.path is None:
            raise DatasetError("a translation's texts are in a file: set dataset.path")
        tasks = tuple(
            Task(key, spec.language, spec.language, each.inputs["stem"], options=tuple(each.inputs["options"]))
            for key, each in read_examples(spec.path).items()
        )
        return TaskSet(
            name=spec.called,
            language=spec.language,
            version="own",
            source=str(spec.path),
            fingerprint=BY_CONTENT,
            golds_fingerprint=BY_CONTENT,
            questions=tasks,
            golds={task.key: TaskGold() for task in tasks},
        )

    def score(self, items: TaskSet, predictions: Predictions) -> ScoredRun:
        """Score what came back; a text without a reply is no valid translation."""
        tasks = scored_items(items.questions, predictions)
        candidates = {task.key: judge_task("", task, predictions[task.key]) for task in tasks}
        scores = {
            "valid": {key: float(candidate.valid) for key, candidate in candidates.items()},
            **{
                fault.value: {key: float(fault in candidate.faults) for key, candidate in candidates.items()}
                for fault in TranslationFault
            },
            "copied": {key: float(candidate.same_as_source) for key, candidate in candidates.items()},
        }
        return self.score_means(items, predictions, scores)


def judge_task(setup: str, task: Task, prediction: Prediction) -> TranslationCandidate:
    """Judge the candidate of a set-up that a prediction holds."""
    cut_off = is_cut(prediction.finish_reason)
    return judge_text(setup, text_of_task(task), prediction.text or "", prediction.reply, cut_off=cut_off)


def write_texts(path: Path, texts: Iterable[QuestionText], language: str) -> None:
    """Write texts in a language as the items of a run; raises `OSError`."""
    lines = [
        ExampleRecord(
            # It ends with the digest of what the model is shown.
            f"{text.key}/{language}/{hashlib.sha256(render_layout(text).encode()).hexdigest()[:12]}",
            {"stem": text.stem, "options": [f"{number}. {words}" for number, words in text.options]},
            {},
        ).to_line()
        for text in texts
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, "".join(lines))
