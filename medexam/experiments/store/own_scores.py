"""What the user's own metrics say of a stored run: by their code where that is run, else as they were scored."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from medexam.experiments.store.freshness import answers_unchanged
from medexam.experiments.store.parquet import read_own_scores
from medexam.experiments.store.run_folder import RunFolder
from medexam.measures import Benchmark, ScoredRun
from medexam.measures.own import load_metric, own_measure, own_scores
from medexam.measures.results import ItemScores, Metrics
from medexam.measures.words import scored_items
from medexam.predictions import Prediction
from medexam.questions import AnySet
from medexam.specs.experiment import is_entry

Predictions = Mapping[str, Prediction]
AnyBenchmark = Benchmark[Any, Any]


def score_own(folder: RunFolder, items: AnySet, predictions: Predictions, code: Collection[str] = ()) -> ItemScores:
    """Score the run's questions by the metrics in `code`; its other metrics keep the scores that the folder holds.

    They lose them where its answers or golds have changed. Raises `SpecError` if a metric fails on a question.
    """
    names = folder.read_record().cell.metrics
    stored = read_own_scores(folder) if set(names) - set(code) and answers_unchanged(folder) else {}
    scores: dict[str, Mapping[str, float]] = {}
    for name in names:
        if name in code:
            scores |= own_scores(name, load_metric(name), items, predictions)
        else:
            scores |= {entry: entry_scores for entry, entry_scores in stored.items() if is_entry(entry, name)}
    return scores


def score_all(
    folder: RunFolder, benchmark: AnyBenchmark, items: AnySet, predictions: Predictions, code: Collection[str] = ()
) -> ScoredRun:
    """Compute the benchmark's scores with those of the user's own metrics among them, as `score_own` gives these."""
    scored, own = benchmark.score(items, predictions), score_own(folder, items, predictions, code)
    if own:
        scored = replace(scored, metrics=with_own(scored.metrics, benchmark, items, predictions, own))
    return replace(scored, own=own)


def with_own(
    metrics: Metrics, benchmark: AnyBenchmark, items: AnySet, predictions: Predictions, scores: ItemScores
) -> Metrics:
    """Return `metrics` with the mean of each of the user's own over the scored questions of `items`."""
    keys = [item.key for item in scored_items(items.questions, predictions)]
    clusters = {item.key: benchmark.cluster(item) for item in items.questions}
    return metrics.model_copy(
        update={"own": {name: own_measure(metric_scores, keys, clusters) for name, metric_scores in scores.items()}}
    )
