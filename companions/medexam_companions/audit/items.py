"""The answers of stored runs for people to judge, and which of them are judged; nothing is asked of a model."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medexam import Prediction
from medexam.datasets import draw_lot
from medexam.errors import SpecError
from medexam.experiments import RunFolder, answer_digest, load_items
from medexam.measures import find_stored_benchmark
from medexam.predictions import Status
from medexam.questions import Question, Task

Shown = tuple[str, str, str, str, dict[str, float]]


@dataclass(frozen=True, slots=True)
class AuditItem:
    """One answer that people are to judge."""

    key: str
    """The question's key, unique within a run."""
    run: str
    """The run's id; never shown to a rater."""
    group: str
    """What the question belongs to: a format, such as `short`, or a discipline."""
    question: str
    """As shown to the rater, as are `reference`, the right answer or answers, and `reply`, the model's answer."""
    reference: str
    reply: str
    scores: Mapping[str, float]
    """Automatic measure -> finite score of this answer, the higher the better; a measure may lack answers."""
    digest: str = ""
    """Tells the reply and what was expected from others."""


def read_audit_items(folder: RunFolder) -> list[AuditItem]:
    """Read every answer in words that a run holds, in the order of its questions.

    What a program reasoned is part of its answer. Questions whose asking failed are left out. Raises `DatasetError`
    where a data set cannot be read.
    """
    record, data = folder.read_record(), load_items(folder)
    benchmark = find_stored_benchmark(record.cell.dataset, in_words=data.in_words)
    predictions = folder.read_predictions()
    measures, items = benchmark.score(data, predictions).items if data.in_words else {}, []
    for item in data.questions:
        prediction, gold = predictions.get(item.key), data.golds[item.key]
        if prediction is None or prediction.status is Status.FAILED or prediction.reply is None:
            continue
        shown = _show_task(item, gold, prediction, measures) if data.in_words else _show(item, gold, prediction)
        digest = answer_digest(prediction, benchmark.expected(gold))
        items.append(AuditItem(item.key, record.run_id, *shown, digest))
    return items


def read_all_items(folders: Sequence[RunFolder]) -> list[AuditItem]:
    """Read the answers of several runs; raises `SpecError` where two runs share an id or one holds no reply."""
    (run_id, times), *_ = Counter(folder.read_record().run_id for folder in folders).most_common(1)
    if times > 1:
        raise SpecError(f"two of the folders hold run {run_id}: name each run once")
    items: list[AuditItem] = []
    for folder in folders:
        if not (answers := read_audit_items(folder)):
            raise SpecError(
                f"{folder.path} holds no reply to judge: name runs whose model writes text, such as chain_of_thought"
            )
        items += answers
    return items


def _show_task(task: Task, gold: Any, prediction: Prediction, measures: Mapping[str, Mapping[str, float]]) -> Shown:
    """Return group, question, reference, reply and scores of an answer in words."""
    scores = {name: by_task[task.key] for name, by_task in measures.items() if task.key in by_task}
    parts = (task.context, task.question, "\n".join(task.options), task.given_answer, "\n".join(task.given_reasoning))
    # Of inverse formats the explanation is expected, for their answer is the wrong one shown.
    expected = (*gold.incorrect_step, gold.incorrect_explanation) if task.given_answer else gold.answers
    reply = (prediction.reply or "") if prediction.text is None else prediction.text
    return task.group, "\n\n".join(filter(None, parts)), "\n".join(expected).strip(), reply, scores


def _show(question: Question, gold: Any, prediction: Prediction) -> Shown:
    """Return the same of the choice of an option."""
    right = next(option for option in question.options if option.number == gold.number)
    scores = {"accuracy": float(gold.accepts(prediction.answer))}
    probabilities = prediction.option_probabilities
    if probabilities is not None and prediction.answer in probabilities:
        scores["probability"] = probabilities[prediction.answer]
    reference = f"{right.number}. {right.text}"
    return question.exam.discipline, question.printed, reference, prediction.reply or "", scores


def choose_sample(items: Sequence[AuditItem], per_group: int, seed: int) -> tuple[AuditItem, ...]:
    """Choose at most `per_group` answers of each run in each group, in the order of `items`.

    Questions that most runs have answered come first, and among them lots decide, so that all runs are judged on the
    same questions as far as they share enough. A larger `per_group` with the same seed holds every answer of a smaller
    one.
    """
    runs_with = Counter(item.key for item in items)
    parts: defaultdict[tuple[str, str], list[AuditItem]] = defaultdict(list)
    for item in items:
        parts[item.run, item.group].append(item)
    sample = {
        (item.run, item.key)
        for part in parts.values()
        for item in sorted(part, key=lambda item: (-runs_with[item.key], draw_lot(seed, item.key)))[:per_group]
    }
    return tuple(item for item in items if (item.run, item.key) in sample)
