"""A run's predictions on ClinIQLink as `TaskMetrics`, by both profiles side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.util import find_spec

import numpy as np

from medexam import Prediction
from medexam.metrics import (
    Measure,
    Measures,
    ScoredRun,
    TaskMetrics,
    count_tasks,
    mean_measure,
    scored_tasks,
    support_measures,
)
from medexam.questions import Task, TaskGold
from medexam_companions.cliniqlink.measures.answers import ItemAnswer
from medexam_companions.cliniqlink.measures.flaws import find_flaws
from medexam_companions.cliniqlink.measures.items import CLOSED, PAPER, PUBLISHED, Format, Malformed, ScoringItem
from medexam_companions.cliniqlink.measures.ngrams import NgramScores
from medexam_companions.cliniqlink.measures.scoring import ClinIQLinkScores, FormatScores, score_cliniqlink
from medexam_companions.cliniqlink.measures.semantic import TextEncoder, Vectors
from medexam_companions.cliniqlink.measures.texts import drop_assistant, reply_text

SEED = 0
"""Draws the pairs of the paragraph layer's baseline."""
NGRAMS = ("bleu", "meteor", "rouge")
_NGRAM_PACKAGES = ("nltk", "rouge_score")


def score_cliniqlink_run(
    tasks: Sequence[Task],
    golds: Mapping[str, TaskGold],
    predictions: Mapping[str, Prediction],
    *,
    encoder: TextEncoder,
    references: Sequence[str],
) -> ScoredRun[TaskMetrics]:
    """Score the predictions on exactly these tasks, by key.

    `published` and `paper` are the two profiles: over all tasks the unweighted mean of the seven formats, which for the
    paper's is None while a format has no item. `forgiving` reads closed answers kindly; what it has more than the
    others is lost to the format alone. Answers are read as the released submission program stores them; an unanswered
    task is an empty one. `references` are the right answers of the whole benchmark. The means over the items of a
    format have intervals, the published list score, which is none, has not.
    """
    scored = scored_tasks(tasks, predictions)
    counts = count_tasks(tasks, predictions)
    if not scored:
        return ScoredRun(TaskMetrics(**counts, measures={}, by_group={}), {})
    items = [to_item(task, golds[task.key]) for task in scored]
    replies = {task.key: drop_assistant(predictions[task.key].text or "") for task in scored}
    cached_encoder = _Remembering(encoder)
    missing = [package for package in _NGRAM_PACKAGES if find_spec(package) is None]
    published = score_cliniqlink(
        items, replies, cached_encoder, profile=PUBLISHED, references=references, seed=SEED, ngrams=not missing
    )
    paper = score_cliniqlink(items, replies, cached_encoder, profile=PAPER, references=references, seed=SEED)
    notes = [f"{package} is not installed: BLEU, METEOR and ROUGE need medexam[cliniqlink]" for package in missing]
    notes += [f"not on this machine: {resource}" for resource in published.ngrams_missing]
    baseline = published.baseline
    by_item = _by_item(published, paper)
    kinds = [kind for kind in Format if any(task.group == kind for task in tasks)]
    metrics = TaskMetrics(
        **counts,
        measures=_overall(published, paper),
        by_group={kind.value: _measures(kind, published.formats[kind], paper.formats[kind]) for kind in kinds},
        by_subset=support_measures(by_item["paper"], predictions, "paper"),
        counts={kind.value: format_counts for kind in kinds if (format_counts := _counts(published.formats[kind]))},
        settings={}
        if baseline is None
        else {"baseline": baseline.cosine, "baseline_references": baseline.references, "baseline_seed": baseline.seed},
        notes=tuple(notes),
    )
    return ScoredRun(metrics, by_item)


class _Remembering:
    """An encoder that encodes each text once, so that a second profile costs next to nothing."""

    def __init__(self, encoder: TextEncoder) -> None:
        self._encoder = encoder
        self._vectors: dict[str, Vectors] = {}

    def encode(self, texts: Sequence[str]) -> Vectors:
        fresh = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if fresh:
            self._vectors.update(zip(fresh, self._encoder.encode(fresh), strict=True))
        return np.stack([self._vectors[text] for text in texts])

    def pieces(self, text: str) -> Sequence[str]:
        return self._encoder.pieces(text)


def _by_item(published: ClinIQLinkScores, paper: ClinIQLinkScores) -> dict[str, dict[str, float]]:
    """Map measure -> item -> score: the two profiles, the layers of the semantic score, and the n-gram measures."""
    items: dict[str, dict[str, float]] = {
        profile.profile: {key: score for scores in profile.formats.values() for key, score in scores.items.items()}
        for profile in (paper, published)
    }
    for format_scores in paper.formats.values():
        for key, similarity in format_scores.layers.items():
            for layer in ("pieces", "sentence", "paragraph"):
                items.setdefault(layer, {})[key] = getattr(similarity, layer)
    for format_scores in published.formats.values():
        for key, ngrams in format_scores.item_ngrams.items():
            for name, score in _ngrams(ngrams).items():
                if score is not None:
                    items.setdefault(name, {})[key] = score
    return items


def to_item(task: Task, gold: TaskGold) -> ScoringItem:
    """Describe a task and what is expected of it in the scorer's words."""
    return ScoringItem(
        Format(task.group),
        task.key,
        task.question,
        gold.answers,
        options=task.options,
        incorrect_explanation=gold.incorrect_explanation,
        incorrect_step=gold.incorrect_step,
        paragraph=gold.paragraph,
    )


def find_task_flaws(task: Task, gold: TaskGold, text: str | None) -> tuple[Malformed, ...]:
    """Find the kinds of malformed output that an answer is of; an unanswered task is an empty one."""
    return find_flaws(ItemAnswer(to_item(task, gold), reply_text(drop_assistant(text or ""))))


def _overall(published: ClinIQLinkScores, paper: ClinIQLinkScores) -> Measures:
    values = {
        "published": published.overall,
        "paper": paper.overall,
        "published_forgiving": published.forgiving_overall,
        "paper_forgiving": paper.forgiving_overall,
        **_ngrams(published.ngrams),
    }
    return _plain(values, sum(scores.n for scores in published.formats.values()))


def _measures(kind: Format, published: FormatScores, paper: FormatScores) -> Measures:
    values: dict[str, float | None] = {}
    if kind in CLOSED:
        values |= {"published_forgiving": published.forgiving, "paper_forgiving": paper.forgiving}
    if published.lists is not None:
        values["micro_f1"] = published.lists.micro_f1
    if published.ranking is not None:
        values |= asdict(published.ranking)
    if published.step_rate is not None:
        values["step_rate"] = published.step_rate
    n = published.n
    own = Measure(value=published.score, n=n) if kind is Format.LIST else mean_measure(published.items)
    return {"published": own, "paper": mean_measure(paper.items), **_plain(values | _ngrams(published.ngrams), n)}


def _ngrams(scores: NgramScores | None) -> dict[str, float | None]:
    return {} if scores is None else {name: getattr(scores, name) for name in NGRAMS}


def _plain(values: Mapping[str, float | None], n: int) -> Measures:
    """Build measures without intervals."""
    return {name: Measure(value=value, n=n) for name, value in values.items()}


def _counts(scores: FormatScores) -> dict[str, int]:
    counts = {f"malformed: {kind.value}": count for kind, count in scores.malformed.items()}
    counts |= {f"match: {kind.value}": count for kind, count in scores.matches.items()}
    return counts | ({"dropped": scores.without_options} if scores.without_options else {})
