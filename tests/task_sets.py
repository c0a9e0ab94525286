"""Questions that are answered in words, scored without files."""

from collections.abc import Mapping, Sequence

from medexam.measures import ScoredRun, WordsBenchmark
from medexam.predictions import Prediction
from medexam.questions import Task, TaskGold, TaskSet


def score_tasks(
    kind: type[WordsBenchmark],
    tasks: Sequence[Task],
    golds: Mapping[str, TaskGold],
    predictions: Mapping[str, Prediction],
) -> ScoredRun:
    """Score these tasks as a benchmark of the kind scores its own."""
    prints = {"version": "1", "source": "made", "fingerprint": "f", "golds_fingerprint": "g"}
    items = TaskSet(name="made", language="en", questions=tuple(tasks), golds=golds, **prints)
    return kind("made").score(items, predictions)
