"""What the user's own metrics say of a stored run: by their code where it may be run, else as they were scored."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from medexam.benchmarks import Benchmark
from medexam.errors import SpecError
from medexam.experiments.store.freshness import NOT_RUN, answers_unchanged, digest_metrics, find_changes
from medexam.experiments.store.parquet import read_own_scores
from medexam.experiments.store.run_folder import RunFolder
from medexam.experiments.store.stored_run import describe_unscored
from medexam.metrics import ScoredRun
from medexam.metrics.own import Metric, OwnScores, load_metric, own_measure, own_scores, scored_keys
from medexam.metrics.results import RunMetrics
from medexam.predictions import Prediction
from medexam.questions import AnySet
from medexam.specs.experiment import is_entry
from medexam.specs.names import short_name

Predictions = Mapping[str, Prediction]
AnyBenchmark = Benchmark[Any, Any, Any]
M = TypeVar("M", bound=RunMetrics)


@dataclass(frozen=True)
class OwnScored:
    """The scores of single questions, and where they come from."""

    scores: OwnScores
    digests: Mapping[str, str]
    """Metric that the run names -> digest of its source, or `NOT_RUN`."""
    warnings: tuple[str, ...]
    """One for each metric whose code could not be run."""


def score_own(folder: RunFolder, items: AnySet, predictions: Predictions) -> OwnScored:
    """Score the run's questions by each metric that the run names.

    A metric whose code is gone, cannot be imported or is another user's keeps the scores that the folder holds, if they
    are of these answers. Raises `SpecError` if a metric fails on a question.
    """
    scores: dict[str, Mapping[str, float]] = {}
    digests, warnings = {}, []
    folder_scores = read_own_scores(folder) if folder.read_record().cell.metrics and answers_unchanged(folder) else {}
    for name, digest_or_error in digest_metrics(folder).items():
        label = short_name(name)
        metric = _load(name, digest_or_error)
        if isinstance(metric, SpecError):
            metric_scores = {
                entry: entry_scores for entry, entry_scores in folder_scores.items() if is_entry(entry, name)
            }
            scores, digests[name] = scores | metric_scores, NOT_RUN
            warnings.append(describe_unscored(label, metric, has_scores=bool(metric_scores)))
        else:
            scores |= own_scores(name, metric, items, predictions)
            digests[name] = str(digest_or_error)
    return OwnScored(scores, digests, tuple(warnings))


def current_own(folder: RunFolder, items: AnySet, predictions: Predictions) -> OwnScores:
    """Return the scores that the folder holds, if nothing has changed since they were made; else make them anew."""
    if not folder.read_record().cell.metrics:
        return {}
    return score_own(folder, items, predictions).scores if find_changes(folder).changed else read_own_scores(folder)


def score_all(
    folder: RunFolder, benchmark: AnyBenchmark, items: AnySet, predictions: Predictions
) -> tuple[ScoredRun[Any], OwnScored]:
    """Compute the benchmark's scores with those of the user's own metrics among them, and return what is known of these
    too.
    """
    scored, own = benchmark.score(items, predictions), score_own(folder, items, predictions)
    if own.scores:
        scored = replace(scored, metrics=with_own(scored.metrics, benchmark, items, predictions, own.scores))
    return replace(scored, own=own.scores), own


def with_own(metrics: M, benchmark: AnyBenchmark, items: AnySet, predictions: Predictions, scores: OwnScores) -> M:
    """Return `metrics` with the mean of each of the user's own over the scored questions of `items`."""
    keys = scored_keys(items, predictions)
    clusters = {item.key: benchmark.cluster(item) for item in items.questions}
    return metrics.model_copy(
        update={"own": {name: own_measure(metric_scores, keys, clusters) for name, metric_scores in scores.items()}}
    )


def _load(name: str, digest_or_error: str | SpecError) -> Metric | SpecError:
    if isinstance(digest_or_error, SpecError):
        return digest_or_error
    try:
        return load_metric(name)
    except SpecError as error:
        return error
