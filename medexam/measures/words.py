"""Answers in words: how well a span matches its references, and the means over tasks and whole questions.

Exact match, F1, precision and recall are over words, as in SQuAD v1.1, whose rule is made for English: in Spanish it
deletes the preposition "a", so that "hepatitis A" equals "hepatitis", and keeps the articles and the marks beyond
ASCII. The second pair of scores uses MLQA's Spanish rule. Both rules glue what a hyphen, a slash or a decimal mark
joins ("3,5" equals "35"), and both tell accents apart.
"""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from medexam.distributions import rate_interval
from medexam.measures.intervals import number_as_seen, resample
from medexam.measures.results import Measure, Measures, Metrics, Resampling, Scores
from medexam.measures.scoring import count_costs
from medexam.predictions import Prediction, Status
from medexam.questions import ItemT, Task


def scored_items(items: Iterable[ItemT], predictions: Mapping[str, Prediction]) -> list[ItemT]:
    """Select the items with a prediction that has not failed, in order."""
    return [item for item in items if item.key in predictions and predictions[item.key].status is not Status.FAILED]


def group_tasks(tasks: Iterable[Task]) -> dict[str, list[Task]]:
    """Map each group to its tasks, both in the order of the data."""
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        groups.setdefault(task.group, []).append(task)
    return groups


def task_scores(tasks: Sequence[Task], predictions: Mapping[str, Prediction], measures: Measures) -> Scores:
    """Count how these tasks came out, beside their measures."""
    statuses = [prediction.status for task in tasks if (prediction := predictions.get(task.key)) is not None]
    failed = statuses.count(Status.FAILED)
    return Scores(
        selected=len(tasks),
        n=len(statuses) - failed,
        unanswered=statuses.count(Status.UNANSWERED),
        failed=failed,
        missing=len(tasks) - len(statuses),
        measures=measures,
    )


def task_metrics(
    tasks: Sequence[Task],
    predictions: Mapping[str, Prediction],
    measures: Measures,
    by: Mapping[str, Mapping[str, Scores]],
    **more: Any,
) -> Metrics:
    """Count outcomes and costs beside measures; facets without a group are left out. `more` are fields of `Metrics`."""
    return Metrics(
        **dict(task_scores(tasks, predictions, measures)),
        by={facet: dict(groups) for facet, groups in by.items() if groups},
        **count_costs(filter(None, (predictions.get(task.key) for task in tasks))),
        **more,
    )


def mean_measure(scores: Mapping[str, float], cluster_of: Callable[[str], str] = str) -> Measure:
    """Compute the mean of the scores of items, by key, with its interval.

    `cluster_of` an item's key names what it is resampled with, such as the question that a task is a variant of. Where
    every cluster has one item and every score is 0 or 1, the interval is Wilson's; so it is, over clusters, where all
    items score 0, or all 1.
    """
    if not scores:
        return Measure()
    clusters = number_as_seen(list(map(cluster_of, scores)))
    values, count = np.fromiter(scores.values(), float, len(scores)), int(clusters.max()) + 1
    distinct = set(scores.values())
    mean = Measure(value=sum(scores.values()) / len(scores), n=len(scores))
    if count > 1 and distinct <= {0.0, 1.0} and (len(distinct) == 1 or count == len(scores)):
        successes = count * int(values[0]) if len(distinct) == 1 else round(values.sum())
        return mean.model_copy(update={"interval": rate_interval(successes, count), "resampled": Resampling.CLUSTERS})
    ((interval, over),) = resample(values[:, None], clusters)
    return mean.model_copy(update={"interval": interval, "resampled": over})


def question_of(key: str) -> str:
    """Return the question that a task poses: `SET/test/17` of its variant `SET/test/17/CQ#E`.

    A task without variants is a question of its own.
    """
    question, _, variant = key.rpartition("/")
    return question if "#" in variant else key


def split_by_support(tasks: Sequence[Task], predictions: Mapping[str, Prediction]) -> dict[str, list[Task]]:
    """Map "supported by passages" and "not supported" to the tasks whose answer was checked by passages.

    Empty if none was checked. A withdrawn answer is not supported.
    """
    parts: dict[str, list[Task]] = {"supported by passages": [], "not supported": []}
    for task in scored_items(tasks, predictions):
        if (supported := predictions[task.key].supported) is not None:
            parts["supported by passages" if supported else "not supported"].append(task)
    return {name: part for name, part in parts.items() if part}


Normalisation = Literal["squad", "spanish"]
"""Whose punctuation and articles do not count: SQuAD v1.1's English ones, or MLQA's Spanish ones."""

Words = tuple[str, ...]


_ASCII_MARKS = frozenset(string.punctuation)
_ARTICLES: dict[Normalisation, re.Pattern[str]] = {
    "squad": re.compile(r"\b(?:an?|the)\b"),
    "spanish": re.compile(r"\b(?:un|una|unos|unas|el|la|los|las)\b"),
}


class SpanScores(NamedTuple):
    """One prediction against its references, from 0 to 1."""

    exact_match: float
    """1 where it equals a reference after normalising, else 0."""
    f1: float
    """The highest F1 over the references."""
    precision: float
    """Share of its words that the reference with the highest F1 has; 0 of none."""
    recall: float
    """Share of that reference's words that it has; 0 of none."""


def score_span(prediction: str, references: Sequence[str], normalisation: Normalisation = "squad") -> SpanScores:
    """Score `prediction`: the maximum of exact match and of F1 over `references`, each on its own.

    The rule of Rajpurkar et al. (2016), "SQuAD: 100,000+ questions for machine comprehension of text", after Unicode's
    NFC, without which a decomposed accent splits its word. Where nothing is left of both sides, the exact match is 1
    and F1 is 0, as in v1.1; the v2 rule gives 1. Raises `ValueError` without references, and if
    `references` is a string.
    """
    if isinstance(references, str):
        raise ValueError(f"references is the text {references!r}: put it into a list, also a single one")
    if not references:
        raise ValueError("a span needs at least one reference: leave questions without an answer out")
    answer_words = comparable_words(prediction, normalisation)
    reference_words = [comparable_words(reference, normalisation) for reference in references]
    f1, precision, recall = max(_overlap(answer_words, words) for words in reference_words)
    return SpanScores(float(answer_words in reference_words), f1, precision, recall)


def comparable_words(text: str, normalisation: Normalisation = "squad") -> Words:
    """Reduce a text to what is compared: NFC, lower case, no punctuation, no articles, split at spaces; in this order.

    `squad` drops the 32 ASCII marks and a, an, the. `spanish` drops all of Unicode's punctuation and un, una, unos,
    unas, el, la, los, las, as Lewis et al. (2020), "MLQA: Evaluating cross-lingual extractive question answering"; it
    keeps "lo", "al" and "del", and signs that are no punctuation, such as the ordinal mark in "1º".
    """
    text = unicodedata.normalize("NFC", text).lower()
    for mark in set(text):
        if mark in _ASCII_MARKS or (normalisation == "spanish" and unicodedata.category(mark).startswith("P")):
            text = text.replace(mark, "")
    return tuple(_ARTICLES[normalisation].sub(" ", text).split())


def _overlap(answer_words: Words, reference_words: Words) -> tuple[float, float, float]:
    overlap = (Counter(answer_words) & Counter(reference_words)).total()
    if not overlap:
        return 0.0, 0.0, 0.0
    both = len(answer_words) + len(reference_words)
    return 2 * overlap / both, overlap / len(answer_words), overlap / len(reference_words)
