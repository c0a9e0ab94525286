"""The answers of stored runs for people to judge, and which of them are judged; nothing is asked of a model."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medexam import Prediction
from medexam.benchmarks import Benchmark, find_stored_benchmark
from medexam.datasets import draw_lot
from medexam.errors import SpecError
from medexam.experiments import RunFolder, answer_digest, load_items
from medexam.predictions import Status
from medexam.questions import AnySet, Question, Task


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
    with folder.opened_predictions() as predictions:
        return list(_audit_items(record.run_id, benchmark, data, predictions))


def read_all_items(folders: Sequence[RunFolder]) -> list[AuditItem]:
    """Read the answers of several runs; raises `SpecError` where two runs share an id or one holds no reply."""
    (run_id, times), *_ = Counter(folder.read_record().run_id for folder in folders).most_common(1)
    if times > 1:
        raise SpecError(f"two of the folders hold run {run_id}: name each run once")
    items: list[AuditItem] = []
    for folder in folders:
        if not (answers := read_audit_items(folder)):
            record = folder.read_record()
            raise SpecError(
                f"run {record.run_id} holds no reply to judge ({record.cell.program.label}): name runs whose model "
                "writes text, such as chain_of_thought"
            )
        items += answers
    return items


def _audit_items(
    run: str, benchmark: Benchmark[Any, Any, Any], items: AnySet, predictions: Mapping[str, Prediction]
) -> Iterator[AuditItem]:
    measures = benchmark.score(items, predictions).items if items.in_words else {}
    for item in items.questions:
        prediction, gold = predictions.get(item.key), items.golds[item.key]
        if prediction is None or prediction.status is Status.FAILED or prediction.reply is None:
            continue
        digest = answer_digest(prediction, benchmark.expected(gold))
        if isinstance(item, Task):
            scores = {name: by_task[item.key] for name, by_task in measures.items() if item.key in by_task}
            reply = prediction.reply if prediction.text is None else prediction.text
            parts = (item.context, item.question, "\n".join(item.options), item.given_answer)
            question = "\n\n".join(filter(None, (*parts, "\n".join(item.given_reasoning))))
            # Of inverse formats the explanation is expected, for their answer is the wrong one shown.
            expected = (*gold.incorrect_step, gold.incorrect_explanation) if item.given_answer else gold.answers
            reference = "\n".join(expected).strip() if item.given_answer else "\n".join(expected)
            yield AuditItem(item.key, run, item.group, question, reference, reply, scores, digest)
        else:
            yield _choice_item(run, item, gold, prediction, digest)


def _choice_item(run: str, question: Question, gold: Any, prediction: Prediction, digest: str) -> AuditItem:
    right = next(option for option in question.options if option.number == gold.number)
    scores = {"accuracy": float(gold.accepts(prediction.answer))}
    probabilities = prediction.option_probabilities
    if probabilities is not None and prediction.answer in probabilities:
        scores["probability"] = probabilities[prediction.answer]
    reference = f"{right.number}. {right.text}"
    group, reply = question.exam.discipline, prediction.reply or ""
    return AuditItem(question.key, run, group, question.printed, reference, reply, scores, digest)


def best_answers(items: Sequence[AuditItem], top: int, measure: str | None = None) -> tuple[AuditItem, ...]:
    """Select the `top` best answers to each question over all runs, in the order of `items`.

    `measure` says what is best, by default the first that all answers have; of equal answers the first stay. A question
    without a scored answer has none. Raises `SpecError` if answers lack the measure.
    """
    names = [name for name in items[0].scores if all(name in item.scores for item in items)] if items else []
    name = measure or next(iter(names), None)
    if items and (name is None or not any(name in item.scores for item in items)):
        measures = sorted({name for item in items for name in item.scores})
        raise SpecError(
            f"no measure {name or 'of all answers'} says which are best: choose one of {', '.join(measures)}"
        )
    by_question: defaultdict[str, list[AuditItem]] = defaultdict(list)
    for item in items:
        if name in item.scores:
            by_question[item.key].append(item)
    best = {
        (item.run, item.key)
        for answers in by_question.values()
        for item in sorted(answers, key=lambda item: -item.scores[str(name)])[:top]
    }
    return tuple(item for item in items if (item.run, item.key) in best)


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
