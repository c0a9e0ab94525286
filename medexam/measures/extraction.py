"""How well an answer in words is the one that was wanted, or the extracted part of a text.

F1 and exact match by SQuAD's rules, English and Spanish, where the data hold right answers. Where they hold argument
components instead, how far the answer lies in them: a measure of another task, named apart. An exam's questions without
their options are compared with the right option's text.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module

from medexam.errors import MedExamError
from medexam.measures.results import ScoredRun, Scores
from medexam.measures.span_outcomes import count_outcomes
from medexam.measures.spans import comparable_words, score_span
from medexam.measures.tasks import (
    group_tasks,
    mean_measure,
    question_of,
    scored_tasks,
    select_scores,
    split_by_support,
    task_metrics,
    task_scores,
)
from medexam.predictions import Prediction
from medexam.questions import Task, TaskGold
from medexam.text import plain_letters

WHOLE = "whole questions"
"""The subset of stems that end in a question mark and name no options."""
_NAMES_OPTIONS = re.compile(
    r"\b(following|of (these|those)|options?|statements?|siguientes?|opcion(es)?|afirmacion(es)?|senale|indique"
    r"|seguintes?|opcions?|afirmacions?|sinale|seguent[ei]|opzion[ei]|affermazion[ei]|indichi"
    r"|следующ\w*|перечислен\w*|утвержден\w*|вариант\w*|укажите)\b"
)
WITHOUT_REPEATS = "without questions that stand in train"
SPANS, ANSWERS = "Extracted spans", "Answers"
"""What is counted by group: what became of extracted spans, and why answers are none or needed mending."""
_WORD = re.compile(r"\w+")


def score_extraction(
    tasks: Sequence[Task], golds: Mapping[str, TaskGold], predictions: Mapping[str, Prediction]
) -> ScoredRun:
    """Score the quoted parts on exactly these tasks, by key.

    With right answers: `f1` and `exact_match` (SQuAD v1.1), the same with `_spanish` normalisation, and `precision` and
    `recall` over words. With argument components: `component_f1`, `component_precision` and `component_recall` over
    words. Always: `quoted`, the share of answers that stand in the context, and `literal`, of those that did so without
    mending. An unanswered task scores 0.
    The tally `Extracted spans` counts what became of each span that has a right answer.
    """
    scored = _score_all(tasks, golds, predictions, _score)
    groups = dict.fromkeys(task.group for task in tasks)
    spans = {group: counts for group in groups if (counts := _outcomes(tasks, golds, predictions, group))}
    tallies = scored.metrics.tallies | ({SPANS: spans} if spans else {})
    return replace(scored, metrics=scored.metrics.model_copy(update={"tallies": tallies}))


def score_short_answers(
    tasks: Sequence[Task], golds: Mapping[str, TaskGold], predictions: Mapping[str, Prediction]
) -> ScoredRun:
    """Score answers in words on exactly these tasks, by key: `f1` and `exact_match` (SQuAD v1.1).

    Of Spanish tasks also the same with `_spanish` normalisation. An unanswered task scores 0.
    """
    return _score_all(tasks, golds, predictions, _score_words)


def _score_all(
    tasks: Sequence[Task],
    golds: Mapping[str, TaskGold],
    predictions: Mapping[str, Prediction],
    score: Callable[[Task, TaskGold, Prediction], Mapping[str, float]],
    subsets: Mapping[str, Callable[[Task], bool]] | None = None,
    notes: tuple[str, ...] = (),
) -> ScoredRun:
    scored = scored_tasks(tasks, predictions)
    items: dict[str, dict[str, float]] = {}
    for task in scored:
        for name, value in score(task, golds[task.key], predictions[task.key]).items():
            items.setdefault(name, {})[task.key] = value
    groups = group_tasks(tasks)
    fresh = [task for task in tasks if not golds[task.key].repeats_training]
    parts = {name: [task for task in tasks if is_in(task)] for name, is_in in (subsets or {}).items()}
    parts |= {WITHOUT_REPEATS: fresh} if len(fresh) < len(tasks) else {}
    parts |= split_by_support(tasks, predictions) if "f1" in items else {}
    counts = {group: answer_counts for group in groups if (answer_counts := _counts(scored, predictions, group))}
    facets = {"group": groups, "subset": parts}

    def score_some(some: Sequence[Task]) -> Scores:
        keys = [task.key for task in some]
        means = {name: mean_measure(select_scores(scores, keys), question_of) for name, scores in items.items()}
        return task_scores(some, predictions, means)

    by = {facet: {name: score_some(some) for name, some in each.items() if some} for facet, each in facets.items()}
    tallies = {ANSWERS: counts} if counts else {}
    measures = score_some(tasks).measures
    return ScoredRun(task_metrics(tasks, predictions, measures, by, tallies=tallies, notes=notes), items)


def _score(task: Task, gold: TaskGold, prediction: Prediction) -> dict[str, float]:
    scores = {}
    if gold.answers:
        span_scores = score_span(prediction.text or "", gold.answers)
        scores = _score_text(prediction, gold, spanish=True)
        scores |= {"precision": span_scores.precision, "recall": span_scores.recall}
    if gold.components:
        scores |= _score_components(task, gold, prediction)
    scores["quoted"] = float(prediction.span is not None)
    scores["literal"] = float(prediction.alignment == "literal")
    return scores


def _score_words(task: Task, gold: TaskGold, prediction: Prediction) -> dict[str, float]:
    return _score_text(prediction, gold, spanish=task.language == "es")


def _score_text(prediction: Prediction, gold: TaskGold, *, spanish: bool) -> dict[str, float]:
    """Compare the answer's words with the right ones by SQuAD's rule, and with `spanish` by the Spanish one too."""
    answer = prediction.text or ""
    span_scores = score_span(answer, gold.answers)
    scores = {"f1": span_scores.f1, "exact_match": span_scores.exact_match}
    if spanish:
        span_scores = score_span(answer, gold.answers, "spanish")
        scores |= {"f1_spanish": span_scores.f1, "exact_match_spanish": span_scores.exact_match}
    return scores


def _score_components(task: Task, gold: TaskGold, prediction: Prediction) -> dict[str, float]:
    """Score the words of the answer that lie in a component, among the answer's words and among all that lie in one."""
    words = [match.span() for match in _WORD.finditer(task.context)]
    gold_words = {
        place
        for place in words
        if any(component.start <= place[0] and place[1] <= component.end for component in gold.components)
    }
    start, end = prediction.span or (0, 0)
    answer_words = {place for place in words if start <= place[0] and place[1] <= end}
    overlap = len(answer_words & gold_words)
    return {
        "component_f1": 2 * overlap / (len(answer_words) + len(gold_words)) if overlap else 0.0,
        "component_precision": overlap / len(answer_words) if answer_words else 0.0,
        "component_recall": overlap / len(gold_words) if gold_words else 0.0,
    }


def _outcomes(
    tasks: Sequence[Task], golds: Mapping[str, TaskGold], predictions: Mapping[str, Prediction], group: str
) -> dict[str, int]:
    """Count the scored tasks of a group by kind; empty if none has a right answer."""
    pairs = [
        (predictions[task.key].text or "", golds[task.key].answers)
        for task in scored_tasks(tasks, predictions)
        if task.group == group and golds[task.key].answers
    ]
    return {outcome.value: n for outcome, n in count_outcomes(pairs).items()} if pairs else {}


def _counts(tasks: Sequence[Task], predictions: Mapping[str, Prediction], group: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for task in tasks:
        prediction = predictions[task.key]
        category = prediction.alignment or (prediction.reason.value if prediction.reason else None)
        if task.group == group and category is not None:
            counts[category] = counts.get(category, 0) + 1
    return counts


def score_open_answers(
    tasks: Sequence[Task], golds: Mapping[str, TaskGold], predictions: Mapping[str, Prediction]
) -> ScoredRun:
    """Score answers in words on exactly these tasks, by key: those of short answers, and `bleu` if NLTK is installed.

    `whole questions` is the subset that can be answered without options.
    """
    subsets = {WHOLE: lambda task: is_whole_question(task.question)}
    try:
        bleu = load_bleu()
    except MedExamError as error:
        return _score_all(tasks, golds, predictions, _score_words, subsets, (str(error),))

    def score(task: Task, gold: TaskGold, prediction: Prediction) -> dict[str, float]:
        return _score_words(task, gold, prediction) | {"bleu": bleu(prediction.text or "", gold.answers)}

    return _score_all(tasks, golds, predictions, score, subsets)


def is_whole_question(stem: str) -> bool:
    """Return whether a stem can be answered without options: it ends in a question mark and names none."""
    return stem.rstrip(" \"'»”)").endswith("?") and _NAMES_OPTIONS.search(plain_letters(stem)) is None


def load_bleu() -> Callable[[str, Sequence[str]], float]:
    """Load NLTK's sentence BLEU over the words that F1 compares, of an answer and its references; from 0 to 1.

    Smoothing method 1. Of an answer of fewer than four words, n-grams up to its length count, so that an equal one has
    1. Raises `MedExamError` if NLTK is not installed.
    """
    try:
        bleu = import_module("nltk.translate.bleu_score")
    except ImportError:
        raise MedExamError("BLEU needs nltk, which is not installed: pip install nltk") from None
    smoothing = bleu.SmoothingFunction().method1

    def score(answer: str, references: Sequence[str]) -> float:
        words = comparable_words(answer)
        if not words:
            return 0.0
        reference_words = [comparable_words(reference) for reference in references]
        return float(bleu.sentence_bleu(reference_words, words, smoothing_function=smoothing, auto_reweigh=True))

    return score
