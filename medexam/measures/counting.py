"""Counts: how each question came out, and what the answers cost; and how far two raters agree beyond chance."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medexam.predictions import Prediction, Status
from medexam.predictions.prediction import Answered
from medexam.questions import AnswerKey, Gold

RIGHT, WRONG, UNANSWERED, FAILED, MISSING = range(5)
"""How a question came out."""
Outcomes = NDArray[np.int8]
COUNTS = ("selected", "n", "right", "wrong", "unanswered", "failed", "missing")
"""Names of all that `count_outcomes` finds."""
TIMES = ("latency_p50_s", "latency_p95_s", "answering_p50_s", "answering_p95_s")
"""Names of the times that `count_costs` finds, in seconds; two runs of the same cell differ in nothing else."""
COUNTED = ("prompt_tokens_counted", "completion_tokens_counted")
"""Names of the numbers of predictions whose tokens are known."""
COSTS = ("prompt_tokens", "completion_tokens", "thinking_tokens", *COUNTED, *TIMES)
"""Names of all that `count_costs` finds."""


def find_outcomes(keys: Sequence[str], key: AnswerKey, predictions: Mapping[str, Answered]) -> Outcomes:
    """Find how each question came out, in the order of `keys`; raises `DatasetError` if `key` lacks one."""
    outcomes = (find_outcome(key[question_key], predictions.get(question_key)) for question_key in keys)
    return np.fromiter(outcomes, np.int8, len(keys))


def find_outcome(gold: Gold, prediction: Answered | None) -> int:
    """Return how a question came out; None: it has no prediction."""
    if prediction is None:
        return MISSING
    status = prediction.status
    if status is Status.ANSWERED:
        return RIGHT if gold.accepts(prediction.answer) else WRONG
    return FAILED if status is Status.FAILED else UNANSWERED


def count_outcomes(outcomes: Outcomes) -> dict[str, int]:
    """Count the outcomes of some questions, as fields of `Scores`."""
    right, wrong, unanswered, failed, missing = np.bincount(outcomes, minlength=MISSING + 1).tolist()
    n = right + wrong + unanswered
    return dict(zip(COUNTS, (len(outcomes), n, right, wrong, unanswered, failed, missing), strict=True))


def count_costs(keys: Iterable[str], predictions: Mapping[str, Prediction]) -> dict[str, Any]:
    """Count each of `COSTS`: tokens and time over the predictions of `keys`; None if no prediction reports it. And the
    questions `without_passages`.

    `answering_` is latency without the waiting before. Failed predictions have no latency.
    """
    replies, without_passages = 0, 0
    prompts, completions, thinking = _TokenSum(), _TokenSum(), _TokenSum()
    latencies, answering = array("d"), array("d")
    for key in keys:
        prediction = predictions.get(key)
        if prediction is None:
            continue
        replies += prediction.last_call is not None
        prompts.add(prediction.prompt_tokens)
        completions.add(prediction.completion_tokens)
        thinking.add(prediction.thinking_tokens)
        if prediction.status is Status.FAILED:
            continue
        without_passages += prediction.passages == ()
        if prediction.latency_s is not None:
            latencies.append(prediction.latency_s)
            if prediction.waiting_s is not None:
                answering.append(prediction.latency_s - prediction.waiting_s)
    tokens = (prompts.total, completions.total, thinking.total)
    report_counts = (prompts.counted_of(replies), completions.counted_of(replies))
    times = (*_percentiles(latencies), *_percentiles(answering))
    return dict(zip(COSTS, (*tokens, *report_counts, *times), strict=True)) | {"without_passages": without_passages}


@dataclass
class _TokenSum:
    """Tokens over predictions, as far as they are known."""

    total: int | None = None
    """None if no prediction reports them."""
    reports: int = 0
    """Predictions that report them."""

    def add(self, tokens: int | None) -> None:
        """Add one more prediction."""
        if tokens is not None:
            self.total = (self.total or 0) + tokens
            self.reports += 1

    def counted_of(self, replies: int) -> int | None:
        """Return how many predictions the sum counts; None if it counts none, or all that have a reply."""
        return self.reports if 0 < self.reports < replies else None


def _percentiles(seconds: "array[float]") -> tuple[float, float] | tuple[None, None]:
    """Compute the median and 95th percentile; None of nothing."""
    if not seconds:
        return None, None
    p50, p95 = np.percentile(seconds, (50, 95))
    return float(p50), float(p95)


def cohens_kappa(table: NDArray[np.float64], *, quadratic: bool = False) -> float:
    """Measure how far two raters agree beyond chance, 1 at the most; `table[i, j]` counts items in `i` and `j`.

    `quadratic`: a disagreement weighs by the square of its distance, for ordered categories (Cohen 1968); otherwise
    all weigh the same (Cohen 1960). Not defined, and nan, if all items are in one category.
    """
    shares = table / table.sum()
    expected = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    places = np.arange(len(table))
    distance = np.abs(np.subtract.outer(places, places))
    weights = distance**2 if quadratic else (distance > 0)
    return float(1 - (weights * shares).sum() / (weights * expected).sum())
