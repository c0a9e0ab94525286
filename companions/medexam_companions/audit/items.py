"""The answers of stored runs for people to judge, and which of them are judged; nothing is asked of a model."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medexam import Prediction
from medexam.benchmarks import Benchmark, find_stored_benchmark
from medexam.datasets import draw_lot
from medexam.errors import SpecError
from medexam.experiments import RunFolder, RunRecord, answer_digest, load_items
from medexam.predictions import Status
from medexam.questions import AnySet, Gold, Question, Task, TaskGold


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
    """As shown to the rater."""
    reference: str
    """The right answer or answers, as shown to the rater."""
    reply: str
    """The model's answer, as shown to the rater."""
    scores: Mapping[str, float]
    """Automatic measure -> finite score of this answer, the higher the better; a measure may lack answers."""


def audit_items(
    run: str, benchmark: Benchmark[Any, Any, Any], items: AnySet, predictions: Mapping[str, Prediction]
) -> Iterator[AuditItem]:
    """Yield every answer in words of the run with this id; what a program reasoned is part of it."""
    measures = benchmark.score(items, predictions).items if items.in_words else {}
    for item in items.questions:
        prediction, gold = predictions.get(item.key), items.golds[item.key]
        if prediction is None or prediction.status is Status.FAILED or prediction.reply is None:
            continue
        if isinstance(item, Task):
            scores = {name: by_task[item.key] for name, by_task in measures.items() if item.key in by_task}
            reply = prediction.reply if prediction.text is None else prediction.text
            yield AuditItem(item.key, run, item.group, _show_task(item), _expected(item, gold), reply, scores)
        else:
            yield _choice_item(run, item, gold, prediction)


def _choice_item(run: str, question: Question, gold: Gold, prediction: Prediction) -> AuditItem:
    right = next(option for option in question.options if option.number == gold.number)
    scores = {"accuracy": float(gold.accepts(prediction.answer))}
    probabilities = prediction.option_probabilities
    if probabilities is not None and prediction.answer in probabilities:
        scores["probability"] = probabilities[prediction.answer]
    reference = f"{right.number}. {right.text}"
    group, reply = question.exam.discipline, prediction.reply or ""
    return AuditItem(question.key, run, group, question.printed, reference, reply, scores)


def _show_task(task: Task) -> str:
    parts = (task.context, task.question, "\n".join(task.options), task.given_answer, "\n".join(task.given_reasoning))
    return "\n\n".join(part for part in parts if part)


def _expected(task: Task, gold: TaskGold) -> str:
    """Write what the answer should be; of inverse formats the explanation, for their answer is the wrong one shown."""
    if task.given_answer:
        return "\n".join((*gold.incorrect_step, gold.incorrect_explanation)).strip()
    return "\n".join(gold.answers)


def read_audit_items(folders: Sequence[RunFolder]) -> list[AuditItem]:
    """Read every answer in words that the runs in `folders` hold, in the order of the runs and of their questions.

    What a program reasoned is part of its answer. Questions whose asking failed are left out. Raises `SpecError` where
    two runs share an id or a run holds no reply, and `DatasetError` where a data set cannot be read or lacks one.
    """
    records = [folder.read_record() for folder in folders]
    _check_ids(records)
    items: list[AuditItem] = []
    for folder, record in zip(folders, records, strict=True):
        data = load_items(folder)
        benchmark = find_stored_benchmark(record.cell.dataset, in_words=data.in_words)
        with folder.opened_predictions() as predictions:
            answers = list(audit_items(record.run_id, benchmark, data, predictions))
        if not answers:
            raise SpecError(
                f"run {record.run_id} holds no reply to judge ({record.cell.program.label}): name runs whose model "
                "writes text, such as chain_of_thought"
            )
        items += answers
    return items


def read_current_answers(folder: RunFolder) -> tuple[dict[str, AuditItem], dict[str, str]]:
    """Read a run's answers in words by question, and the digest of every answer, with or without words.

    Raises `DatasetError` where the data set cannot be read.
    """
    record = folder.read_record()
    data = load_items(folder)
    benchmark = find_stored_benchmark(record.cell.dataset, in_words=data.in_words)
    with folder.opened_predictions() as predictions:
        items = {item.key: item for item in audit_items(record.run_id, benchmark, data, predictions)}
        digests = {
            key: answer_digest(prediction, benchmark.expected(data.golds[key]))
            for key, prediction in predictions.items()
            if key in data.golds
        }
    return items, digests


def _check_ids(records: Sequence[RunRecord]) -> None:
    (run_id, times), *_ = Counter(record.run_id for record in records).most_common(1)
    if times > 1:
        raise SpecError(f"two of the folders hold run {run_id}: name each run once")


def best_answers(items: Sequence[AuditItem], top: int, measure: str | None = None) -> tuple[AuditItem, ...]:
    """Keep the `top` best answers to each question over all runs, in the order of `items`.

    `measure` says what is best, by default the first that all answers have; of equal answers the first stay. A question
    without a scored answer has none. Raises `SpecError` if answers lack the measure.
    """
    names = [name for name in items[0].scores if all(name in item.scores for item in items)] if items else []
    chosen = measure or next(iter(names), None)
    if items and (chosen is None or not any(chosen in item.scores for item in items)):
        known = sorted({name for item in items for name in item.scores})
        raise SpecError(
            f"no measure {chosen or 'of all answers'} says which are best: choose one of {', '.join(known)}"
        )
    by_question: defaultdict[str, list[AuditItem]] = defaultdict(list)
    for item in items:
        if chosen in item.scores:
            by_question[item.key].append(item)
    kept: set[tuple[str, str]] = set()
    for answers in by_question.values():
        answers.sort(key=lambda item: -item.scores[str(chosen)])
        kept |= {(item.run, item.key) for item in answers[:top]}
    return tuple(item for item in items if (item.run, item.key) in kept)


def choose_sample(items: Sequence[AuditItem], per_group: int, seed: int) -> tuple[AuditItem, ...]:
    """Choose at most `per_group` answers of each run in each group, in the order of `items`.

    Questions that most runs have answered come first, and among them lots decide, so that all runs are judged on the
    same questions as far as they share enough. A larger `per_group` with the same seed keeps every answer of a smaller
    one.
    """
    runs_with = Counter(item.key for item in items)
    parts: defaultdict[tuple[str, str], list[AuditItem]] = defaultdict(list)
    for item in items:
        parts[item.run, item.group].append(item)
    sample: set[tuple[str, str]] = set()
    for part_items in parts.values():
        part_items.sort(key=lambda item: (-runs_with[item.key], draw_lot(seed, item.key)))
        sample |= {(item.run, item.key) for item in part_items[:per_group]}
    return tuple(item for item in items if (item.run, item.key) in sample)
