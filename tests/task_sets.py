"""Questions that are answered in words, scored without files."""

from collections.abc import Mapping, Sequence

from medexam.measures import ScoredRun, WordsBenchmark
from medexam.predictions import Prediction, Reason, Status
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


CONTEXT = "Asthma wheezes. He has no fever. So a cold is likely."
SAME = {"program": "extract_explanation", "spec_digest": "d"}


def make_task(key: str, group: str = "given", context: str = CONTEXT) -> Task:
    return Task(key, group, "en", "Why?", context=context)


def make_span(task: Task, text: str, alignment: str = "literal") -> Prediction:
    start = task.context.index(text)
    span = (start, start + len(text))
    return Prediction(question=task.key, status=Status.ANSWERED, text=text, span=span, alignment=alignment, **SAME)


def make_nothing(key: str) -> Prediction:
    return Prediction(question=key, status=Status.UNANSWERED, reason=Reason.NOT_IN_CONTEXT, **SAME)
