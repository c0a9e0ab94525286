"""Translation as a benchmark: texts that are asked for in another language, and whether each comes back whole.

A run's texts stand in `texts.jsonl` of its translation's folder, each under a key of its content: a text that changes
is another item. On the way back a text has the one that it was translated from beside it, which is its reference.
"""

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

from medexam import Prediction
from medexam.benchmarks import Predictions, WordsBenchmark
from medexam.datasets import ExampleRecord, read_examples
from medexam.errors import DatasetError
from medexam.files import write_whole
from medexam.metrics import Measure, ScoredRun, TaskMetrics, count_tasks, mean_measure, scored_tasks
from medexam.model_calls import is_cut
from medexam.questions import Language, Task, TaskGold, TaskSet
from medexam.specs import DatasetSpec
from medexam_companions.translation.layout import QuestionText, item_key, render_layout, text_of_task
from medexam_companions.translation.scores import score_bleu
from medexam_companions.translation.validity import TranslationCandidate, TranslationFault, judge_text

BENCHMARK = "translation"
"""Its name in a spec."""
TEXTS = "texts.jsonl"
BY_CONTENT = "texts are known by their content"
"""Stands for the fingerprint of any set of texts: their keys tell two of them apart."""


class Translation(WordsBenchmark):
    """How many texts come back as the question that they were; of the way back also BLEU, where sacrebleu is there."""

    board = ("valid",)

    def load(self, spec: DatasetSpec) -> TaskSet:
        """Load every text of the file; raises `DatasetError` if it is missing or damaged."""
        if spec.path is None:
            raise DatasetError("a translation's texts are in a file: set dataset.path")
        records = read_examples(spec.path).values()
        tasks = tuple(
            Task(
                each.key,
                each.inputs["language"],
                spec.language,
                each.inputs["stem"],
                options=tuple(each.inputs["options"]),
            )
            for each in records
        )
        return TaskSet(
            name=spec.called,
            language=spec.language,
            version="own",
            source=str(spec.path),
            fingerprint=BY_CONTENT,
            golds_fingerprint=BY_CONTENT,
            questions=tasks,
            golds={each.key: TaskGold(answers=tuple(each.labels.values())) for each in records},
        )

    def score(self, items: TaskSet, predictions: Predictions) -> ScoredRun[TaskMetrics]:
        """Score what came back; a text without a reply is no valid translation."""
        tasks = scored_tasks(items.questions, predictions)
        candidates = {task.key: judge_task("", task, predictions[task.key]) for task in tasks}
        scores = {
            "valid": {key: float(candidate.valid) for key, candidate in candidates.items()},
            **{
                fault.value: {key: float(fault in candidate.faults) for key, candidate in candidates.items()}
                for fault in TranslationFault
            },
            "copied": {key: float(candidate.same_as_source) for key, candidate in candidates.items()},
        }
        measures = {name: mean_measure(by_key) for name, by_key in scores.items()}
        references = {key: text for key in candidates for text in items.golds[key].answers}
        if references and find_spec("sacrebleu") is not None:
            bleu = score_bleu([render_layout(candidates[key].text) for key in references], list(references.values()))
            measures["bleu"] = Measure(value=bleu.score / 100, n=len(references))
        counts = count_tasks(items.questions, predictions)
        by_group = dict.fromkeys((task.group for task in tasks), measures)  # A run's texts are in one language.
        return ScoredRun(TaskMetrics(**counts, measures=measures, by_group=by_group, own={}), scores)


def judge_task(setup: str, task: Task, prediction: Prediction) -> TranslationCandidate:
    """Judge the candidate of a set-up that a prediction holds."""
    cut_off = is_cut(prediction.finish_reason)
    return judge_text(setup, text_of_task(task), prediction.text or "", prediction.reply, cut_off=cut_off)


def add_texts(
    folder: Path, texts: Iterable[QuestionText], language: str, references: Mapping[str, QuestionText] | None = None
) -> tuple[str, ...]:
    """Add texts in a language to the file in `folder`, and return their keys as items.

    `references` maps a question to the text that its text was translated from; None on the way there. Raises
    `DatasetError` if the file is damaged or cannot be written.
    """
    path, records = folder / TEXTS, {}
    for text in texts:
        options = tuple(f"{number}. {words}" for number, words in text.options)
        labels = {} if references is None else {"reference": render_layout(references[text.key])}
        inputs = {"language": language, "stem": text.stem, "options": options}
        key = item_key(text, language)
        records[key] = ExampleRecord(key, inputs, labels)
    stored = read_examples(path) if path.exists() else {}
    if records.keys() - stored.keys():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, "".join(record.to_line() for record in (stored | records).values()))
        except OSError as error:
            raise DatasetError(
                f"cannot write {path} ({error.strerror or error}): choose another folder with --out"
            ) from None
    return tuple(records)


def dataset_part(folder: Path, language: str) -> dict[str, Any]:
    """Return the `dataset` part of a run on the texts in `folder`; a language without a code has that of English."""
    code = language if language in get_args(Language) else "en"
    return {"name": BENCHMARK, "language": code, "path": str((folder / TEXTS).absolute())}
